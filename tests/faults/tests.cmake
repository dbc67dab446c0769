# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Stacks that cannot grow, missing memory, signals that do not concern Weft; the report and the end of an overflow, on
# every policy, from main and from threads.
weft_part(faults stack QUICK)

set(warnings -Wall -Wextra -Wshadow)
set(guards madvise mprotect)
set(seeds ${weft_tests}/faults/seeds)

# ---- scenarios: each in a process of its own, with its expected result ----

weft_program(faults gcc SOURCES faults.c scenario.c FLAGS ${warnings})
weft_program(faults gcc-tiny SOURCES faults.c scenario.c FLAGS -O0 ${warnings})
weft_test(faults.gcc COMMAND @faults.gcc GUARDS ${guards})
weft_test(faults.hands COMMAND @faults.gcc "at hand" ON commit GUARDS ${guards})
weft_program(overlooked gcc SOURCES faults.c scenario.c CANARY hands_are_overlooked)
weft_test(canary.hands COMMAND @overlooked.gcc "at hand" ON commit FAILS SAYS "not ok [0-9]+ - what is at hand gives way")
weft_test(faults.gcc-tiny COMMAND @faults.gcc-tiny GUARDS madvise)
foreach(library gcc gcc-tiny)
	weft_program(poisoned ${library} SOURCES poisoned.c scenario.c FLAGS -O0 ${warnings} -Wno-dangling-pointer)
endforeach()
weft_test(poisoned COMMAND @poisoned.gcc-tiny)
weft_test(canary.poisoned COMMAND @poisoned.gcc FAILS SAYS "not ok 1 .*not ok 2 ")
# Memory that is not open yet, opened by signals and by userfaultfd.
execute_process(
	COMMAND ${Python3_EXECUTABLE} -c "import ctypes, sys; sys.exit(ctypes.CDLL(None).syscall(323, 1) < 0)"
	RESULT_VARIABLE no_userfaultfd)
set(mechanisms signal)
if(no_userfaultfd)
	weft_skip(userfaultfd "the kernel does not allow it here")
else()
	list(APPEND mechanisms userfaultfd)
endif()
weft_program(closed gcc SOURCES closed.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings})
weft_program(closed gcc-tiny SOURCES closed.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings})
foreach(mechanism IN LISTS mechanisms)
	weft_test(closed.${mechanism} COMMAND @closed.gcc ENV WEFT_COMMIT=${mechanism})
	weft_test(closed.tiny.${mechanism} COMMAND @closed.gcc-tiny ENV WEFT_COMMIT=${mechanism})
endforeach()
weft_test(canary.closed.calls COMMAND @closed.gcc calls ENV WEFT_COMMIT=signal FAILS SAYS "not ok - system calls")
weft_test(canary.closed.signals COMMAND @closed.gcc signals ENV WEFT_COMMIT=signal ENDS 139 SAYS "had no room for the handler")
if(NOT no_userfaultfd)
	weft_test(closed.scenarios COMMAND @faults.gcc ON commit ENV WEFT_COMMIT=userfaultfd)
	weft_test(closed.refused COMMAND @closed.gcc spent ENV WEFT_COMMIT=userfaultfd WEFT_GUARD=mprotect FAILS SAYS
		"^weft: WEFT_COMMIT=userfaultfd is ignored: that needs guards by madvise")
	weft_program(no-budget gcc SOURCES closed.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings} CANARY missing_pages_are_free)
	weft_test(canary.closed.budget COMMAND @no-budget.gcc random ENV WEFT_COMMIT=userfaultfd FAILS SAYS "not ok - random")
	weft_program(child gcc SOURCES closed.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings} CANARY children_have_no_guards)
	weft_test(canary.closed.forks COMMAND @child.gcc forks ENV WEFT_COMMIT=userfaultfd FAILS SAYS "not ok - a child of fork")
endif()
weft_program(needs gcc SOURCES needs.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings})
weft_test(needs COMMAND @needs.gcc GUARDS ${guards})
if(NOT no_userfaultfd)
	weft_test(needs.userfaultfd COMMAND @needs.gcc ENV WEFT_COMMIT=userfaultfd)
endif()
weft_program(doubles gcc SOURCES needs.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings} CANARY needs_are_not_learned)
weft_test(canary.needs COMMAND @doubles.gcc constant FAILS SAYS "not ok - constant: 3")
weft_program(trampolines gcc SOURCES needs.c FLAGS -O1 -fno-optimize-sibling-calls ${warnings} CANARY trampolines_are_functions)
weft_test(canary.needs-trampolines COMMAND @trampolines.gcc behind FAILS SAYS "not ok - behind")
weft_program(signals gcc-debug SOURCES signals.c scenario.c FLAGS ${warnings})
weft_test(signals.gcc-debug COMMAND @signals.gcc-debug ON commit)
foreach(compiler IN LISTS weft_compilers)
	weft_program(signals ${compiler} SOURCES signals.c scenario.c FLAGS ${warnings})
	weft_test(signals.${compiler} COMMAND @signals.${compiler} ON commit GUARDS ${guards})
	weft_linked(signals mmu ${compiler} SOURCES signals.c scenario.c FLAGS -O2 -DINSTRUMENTED ${warnings})
	weft_test(signals.mmu.${compiler} COMMAND @signals.mmu.${compiler} GUARDS ${guards})

	weft_program(forks ${compiler} SOURCES forks.c scenario.c FLAGS ${warnings})
	weft_test(forks.${compiler} COMMAND @forks.${compiler} ON commit overcommit GUARDS ${guards})

	# Resuming NULL is reported once.
	foreach(level O0 O1 O2 O3)
		weft_program(null.${level} ${compiler} SOURCES null.c FLAGS -${level} ${warnings})
		foreach(how first plain under any loop late late-under)
			weft_test(null.${level}.${how}.${compiler} COMMAND @null.${level}.${compiler} ${how} ENDS 134|139
				SAYS "^weft: weft_resume.NULL.: there is no coroutine. [^\n]*$")
		endforeach()
	endforeach()

	# NULL instead of a function, a handler or a resumption, or of a coroutine in functions for copied stacks. For a
	# resumption, the fault handler reports it once the thread has coroutines.
	set(no_function "cannot run coroutine #[0-9]+: its function is NULL. [^\n]*$")
	set(no_coroutine ".NULL.: there is no coroutine. [^\n]*$")
	set(no_handler ".NULL.: there is no handler. [^\n]*$")
	set(no_resumption "a resumption is NULL: pass weft_continue[^\n]*$")
	set(no_system "weft_on_system_stack.NULL.: there is no function. [^\n]*$")
	foreach(level O0 O1 O2 O3)
		weft_program(null_arguments.${level} ${compiler} SOURCES null_arguments.c FLAGS -${level} ${warnings})
		foreach(how_and_says
				"checkpoint weft_checkpoint${no_coroutine}" "late-checkpoint weft_checkpoint${no_coroutine}"
				"backtrack weft_checkpoint_restore${no_coroutine}" "late-backtrack weft_checkpoint_restore${no_coroutine}"
				"backtrack_last weft_checkpoint_restore_last${no_coroutine}" "clone_into_null weft_clone_into${no_coroutine}"
				"clone_null_into weft_clone_into${no_coroutine}" "run weft_run${no_handler}" "late-run weft_run${no_handler}"
				"run_with weft_run_with${no_handler}" "run_nothing ${no_function}" "run_nothing_by_clauses ${no_function}"
				"create ${no_function}" "late-create ${no_function}" "create_with ${no_function}" "create_saving ${no_function}"
				"create_inside ${no_function}" "init ${no_function}" "reset ${no_function}" "late-continues ${no_resumption}"
				"late-tail_continues ${no_resumption}" "late-asks_valid ${no_resumption}" "continues_known ${no_resumption}"
				"continues_throwing ${no_resumption}" "on_system_stack ${no_system}" "on_system_stack_inside ${no_system}")
			string(FIND ${how_and_says} " " space)
			string(SUBSTRING ${how_and_says} 0 ${space} how)
			string(SUBSTRING ${how_and_says} ${space} -1 says)
			weft_test(null.${level}.${how}.${compiler} COMMAND @null_arguments.${level}.${compiler} ${how} ENDS 134 SAYS "^weft:${says}")
		endforeach()
	endforeach()
	weft_linked(null_arguments segmented ${compiler} SOURCES null_arguments.c FLAGS -O2 ${warnings})
	foreach(how_and_says "create ${no_function}" "run_nothing ${no_function}" "on_system_stack_inside ${no_system}" "late-continues ${no_resumption}")
		string(FIND ${how_and_says} " " space)
		string(SUBSTRING ${how_and_says} 0 ${space} how)
		string(SUBSTRING ${how_and_says} ${space} -1 says)
		weft_test(null.linked.${how}.${compiler} COMMAND @null_arguments.segmented.${compiler} ${how} ON segmented heap copy ENDS 134 SAYS "^weft:${says}")
	endforeach()

	# Frames larger than a guard: in code that probes its pages, in code that does not, on system stacks beside linked ones.
	weft_program(guards ${compiler} SOURCES guards.c scenario.c FLAGS -fno-stack-clash-protection ${warnings})
	weft_test(guards.${compiler} COMMAND @guards.${compiler} ON ${weft_policies} GUARDS ${guards})
	weft_test(guards.${compiler} COMMAND @guards.${compiler} "large guard" ON copy GUARDS ${guards})
	weft_linked(probed none ${compiler} SOURCES guards.c scenario.c FLAGS -O2 -DPROBED ${warnings})
	weft_test(guards.probed.${compiler} COMMAND @probed.none.${compiler} ON ${weft_policies} copy GUARDS ${guards})
	weft_linked(guards segmented ${compiler} SOURCES guards.c scenario.c FLAGS -O2 -DLINKED ${warnings})
	weft_test(guards.segmented.${compiler} COMMAND @guards.segmented.${compiler} ON segmented heap)
endforeach()
weft_program(foreign_null gcc SOURCES null_arguments.c CANARY calls_of_null_are_foreign)
weft_test(canary.null COMMAND @foreign_null.gcc create ENDS 139)
weft_program(lost gcc SOURCES forks.c scenario.c CANARY waits_for_lost_threads)
weft_test(canary.forks COMMAND @lost.gcc FAILS SAYS "not ok 1 .*not ok 2 .*not ok 3 .*not ok 4 ")
weft_program(dangling gcc SOURCES forks.c scenario.c CANARY looks_at_lost_hands)
weft_test(canary.forks-hands COMMAND @dangling.gcc "at hand" FAILS SAYS "not ok [0-9]+ - another thread has a stack at hand")
weft_program(untold gcc SOURCES signals.c scenario.c CANARY lost_signals_are_not_told)
weft_test(canary.signals COMMAND @untold.gcc room ON commit FAILS SAYS "not ok [0-9]+ - a handler for which a stack has no room")
# A library that ignores every fault would pass most scenarios: a library that does nothing about faults must fail.
weft_program(canary gcc SOURCES canary.c scenario.c)
weft_test(canary.scenarios COMMAND @canary.gcc ENDS 1 SAYS "not ok 1 .*not ok 2 .*not ok 3 ")

# ---- messages that end the process, with minimal stack ----

foreach(compiler IN LISTS weft_compilers)
	foreach(level O0 O1 O2 O3)
		foreach(kind segmented lookahead mmu)
			weft_linked(words.${level} ${kind} ${compiler} SOURCES words.c FLAGS ${warnings} -DINSTRUMENTED -${level} ASSEMBLED)
			weft_test(words.${level}.${compiler} COMMAND @words.${level}.${kind}.${compiler} ON ${kind}:1K)
		endforeach()
		weft_test(words.${level}.${compiler} COMMAND @words.${level}.segmented.${compiler} ON heap copy)
		weft_program(words.${level} ${compiler} SOURCES words.c FLAGS ${warnings} -${level})
		weft_test(words.plain.${level}.${compiler} COMMAND @words.${level}.${compiler} ON fixed:16K commit overcommit copy)
	endforeach()
endforeach()
weft_linked_object(object segmented gcc words.c ${warnings} -DINSTRUMENTED -O2)
weft_program(words.stay gcc OBJECTS ${object} CANARY messages_stay_where_they_are)
weft_test(canary.words COMMAND @words.stay.gcc "resumes its resumer" ON segmented:1K FAILS SAYS "not ok - resumes its resumer")

# ---- every n-th request for memory fails ----

function(inject name program)
	cmake_parse_arguments(PARSE_ARGV 2 the "" "" "EVERY;ON;GUARDS")
	foreach(every IN LISTS the_EVERY)
		weft_test(${name}.every-${every} COMMAND ${seeds} 3 @${program} ENV WEFT_FAIL_EVERY=${every} ON ${the_ON} GUARDS ${the_GUARDS})
	endforeach()
endfunction()

weft_program(inject gcc-tiny-inject SOURCES inject.c FLAGS -O2 ${warnings})
weft_program(inject gcc-inject SOURCES inject.c FLAGS ${warnings})
weft_program(handlers gcc-tiny-inject SOURCES handlers.c FLAGS -O2 ${warnings})
inject(inject inject.gcc-tiny-inject ON commit GUARDS ${guards} EVERY 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 19 23 29 31 37 41 43 53 61 79 97)
inject(usual-pools inject.gcc-inject ON commit fixed GUARDS madvise EVERY 2 3 5 7 11 13 17)
if(NOT no_userfaultfd)
	foreach(every 5 7 17)
		weft_test(inject.userfaultfd.every-${every} COMMAND ${seeds} 3 @inject.gcc-tiny-inject
			ENV WEFT_FAIL_EVERY=${every} WEFT_COMMIT=userfaultfd ON commit)
	endforeach()
endif()
# Handlers as values: with the same seeds.
inject(handlers handlers.gcc-tiny-inject ON commit GUARDS madvise EVERY 3 5 7 11 17 29)
weft_test(canary.nothing-fails COMMAND @inject.gcc-tiny-inject ENV WEFT_FAIL_EVERY=0 ENDS 3)
weft_test(canary.nothing-fails.handlers COMMAND @handlers.gcc-tiny-inject ENV WEFT_FAIL_EVERY=0 ENDS 3)

# Instrumented code, also in threads on linked stacks. These may end with the overflow line, which ends the process.
weft_linked_object(object segmented gcc-tiny-inject inject.c ${warnings})
weft_program(linked gcc-tiny-inject OBJECTS ${object})
foreach(every 5 7 11 13 17 19 23 29 37 53 97)
	weft_test(linked.every-${every} COMMAND ${seeds} 4 ${weft_tests}/faults/or_overflow @linked.gcc-tiny-inject
		ENV WEFT_FAIL_EVERY=${every} ON heap segmented:1K segmented:16K)
endforeach()

# The n-th request fails, for each n. The program decides which, and has that part of the library itself.
weft_linked_object(object segmented gcc-tiny-inject nth.c ${warnings})
weft_program(nth gcc-tiny-inject OBJECTS ${object} WITHOUT internal_alloc_faults)
weft_test(nth COMMAND @nth.gcc-tiny-inject SECONDS 200)
weft_program(broken gcc-tiny-inject OBJECTS ${object} WITHOUT internal_alloc_faults CANARY c_code_on_a_heap_frame)
weft_test(canary.nth COMMAND timeout 60 @broken.gcc-tiny-inject FAILS SAYS "not ok - request")

# ---- overflow ----

weft_program(overflow gcc SOURCES overflow.c FLAGS -fno-optimize-sibling-calls ${warnings})
# overflow(NAME POLICY "WHO" "RESERVED" MORE COMMAND-WORDS…): death by SIGSEGV, after one line. WHO as a regular expression.
function(overflow name stack who reserved more)
	string(REGEX REPLACE ":.*" "" policy ${stack})
	weft_test(${name} COMMAND @overflow.gcc ${ARGN} ON ${stack} GUARDS ${guards} ENDS 139 SAYS
		"^weft: stack overflow in coroutine ${who}: ${policy}, ${reserved} reserved. fault at 0x[0-9a-f]+. raise it with weft_attr\\.stack_size or WEFT_STACK=${policy}:${more}$")
endfunction()
foreach(where main middle thread migrated nested init)
	overflow(overflow.${where} fixed "\"parser\" \\(#[0-9]+\\)" "64 KiB" 128K ${where} parser)
	overflow(overflow.${where} overcommit "\"parser\" \\(#[0-9]+\\)" "256 KiB" 512K ${where} parser)
	# On commit stacks the coroutine fails and the process continues.
	weft_test(overflow.${where} COMMAND @overflow.gcc ${where} parser ON commit GUARDS ${guards} SAYS "^weft_failed 2$")
endforeach()
weft_test(overflow.threads COMMAND @overflow.gcc threads ON commit SAYS "^weft_failed 2.weft_failed 2.weft_failed 2.weft_failed 2$")
overflow(overflow.unnamed overcommit "#[0-9]+" "256 KiB" 512K main)
overflow(overflow.strange-name fixed:1M "\"a name with \"quotes\" and ünïcode\" \\(#[0-9]+\\)" "1 MiB" 2048K main "a name with \"quotes\" and ünïcode")
overflow(overflow.small overcommit:32K "\"parser\" \\(#[0-9]+\\)" "32 KiB" 64K main parser)
# Each thread that gets that far prints its line; at least one thread does, and all lines are complete.
weft_test(overflow.threads COMMAND @overflow.gcc threads parser ON overcommit ENDS 139 SAYS
	"^(weft: stack overflow in coroutine \"parser\" \\(#[0-9]+\\): overcommit, 256 KiB reserved. fault at 0x[0-9a-f]+. raise it with weft_attr\\.stack_size or WEFT_STACK=overcommit:512K.?)+$")
foreach(policy fixed overcommit)
	weft_test(overflow.core-dump COMMAND ${weft_tests}/faults/walk_overflow @overflow.gcc main parser ON ${policy})
endforeach()
weft_test(overflow.core-dump.nested COMMAND ${weft_tests}/faults/walk_overflow @overflow.gcc nested parser ON overcommit)
weft_program(silent gcc SOURCES silent.c FLAGS -w -O1 -fno-optimize-sibling-calls)
weft_test(canary.overflow COMMAND @silent.gcc ENDS 139 SAYS "^$")
