# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The policy "copy": clones, checkpoints, valid uses of pointers, regions that threads share, in random programs and in
# single tests; with both compilers, poisoned, with failing allocations, under valgrind.
weft_part(copy coro SLOW)

set(returning
    all_choices
    identity
    fresh_ones
    refusals
    clone_into
    late_replies
    reply_after_clone
    bounds
    deep_recursion
    every_order
    under_signals
    forks
    new_threads
    ended_threads
    handed_over
    exclusion
    small_ones
    lazily
    occupied)
set(points
    all_choices
    nested
    ends
    refusals
    inside
    left
    turned_back_inside
    clones
    bounds
    large
    pending
    other_threads
    at_the_start
    unwinding
    backtraces)

foreach(library ${weft_compilers} gcc-debug-O0 gcc-tiny-inject)
	foreach(program contract points random)
		weft_program(${program} ${library} SOURCES ${program}.c FLAGS -Wall -Wextra)
	endforeach()
	foreach(case IN LISTS returning)
		weft_test(contract.${case}.${library} COMMAND @contract.${library} ${case})
	endforeach()
	foreach(case IN LISTS points)
		weft_test(points.${case}.${library} COMMAND @points.${library} ${case})
	endforeach()
	weft_test(contract.inside.${library} COMMAND @contract.${library} inside ENDS 134 SAYS
		"^weft: cannot resume or clean up coroutine \"inner\" .#[0-9]+.: its frames belong where those of the running coroutine \"outer\" [^\n]*$")
	weft_test(contract.deadlock.${library} COMMAND @contract.${library} deadlock ENDS 134
		SAYS "^weft: cannot resume coroutine \"(zero|one)\" [^\n]*: another thread runs a coroutine where [^\n]*$")
	weft_test(contract.overflow.${library} COMMAND @contract.${library} overflow ENDS 139
		SAYS "^weft: stack overflow in coroutine \"too deep\" .#[0-9]+.: copy, 1 MiB reserved. [^\n]*WEFT_STACK=copy:2048K$")
	foreach(seed 1 2 3)
		weft_test(random.${seed}.${library} COMMAND @random.${library} ${seed} 20000 SECONDS 100)
		weft_test(random.${seed}.four-threads.${library} COMMAND @random.${library} ${seed} 5000 4 SECONDS 100)
	endforeach()
endforeach()

# With debug checks, dead frames are poisoned; without, pointers to another coroutine's dead frames find the old
# contents.
weft_test(poisoned COMMAND @contract.gcc-debug-O0 poisoned)
weft_test(canary.poisoned COMMAND @contract.gcc poisoned FAILS SAYS "0xdb")

# Every n-th request for memory fails.
foreach(every 3 4 7 20)
	foreach(threads 1 4)
		weft_test(starved.${every}.${threads}-threads COMMAND @random.gcc-tiny-inject ${every} 20000 ${threads} ENV WEFT_FAIL_EVERY=${every})
	endforeach()
endforeach()
weft_test(canary.starved COMMAND @random.gcc 1 20000 ENV WEFT_FAIL_EVERY=7 FAILS SAYS "refusals")

if(WEFT_VALGRIND)
	set(memcheck ${WEFT_VALGRIND} -q --error-exitcode=99)
	foreach(program contract points random nested)
		weft_program(${program} gcc-valgrind SOURCES ${program}.c)
	endforeach()
	foreach(case identity late_replies reply_after_clone deep_recursion every_order ended_threads)
		weft_test(contract.${case}.memcheck COMMAND ${memcheck} @contract.gcc-valgrind ${case} SECONDS 100)
	endforeach()
	foreach(case all_choices nested ends inside clones unwinding)
		weft_test(points.${case}.memcheck COMMAND ${memcheck} @points.gcc-valgrind ${case} SECONDS 100)
	endforeach()
	weft_test(random.memcheck COMMAND ${memcheck} @random.gcc-valgrind 1 400 SECONDS 100)
	weft_test(random.three-threads.memcheck COMMAND ${memcheck} @random.gcc-valgrind 1 200 3 SECONDS 100)

	# The cost of a level of weft_run.
	set(levels ${weft_tests}/copy/levels.py)
	weft_program(all-levels gcc-valgrind SOURCES nested.c CANARY each_level_looks_at_all)
	weft_test(levels COMMAND ${levels} @nested.gcc-valgrind)
	weft_test(canary.levels COMMAND ${levels} @all-levels.gcc-valgrind FAILS SAYS "deep levels cost more")
else()
	weft_skip(memcheck "not installed: apt-get install --no-install-recommends valgrind")
endif()

weft_sanitizer_works(works gcc address)
if(works)
	weft_program(asan gcc SOURCES asan.c FLAGS -fsanitize=address)
	weft_program(no-asan gcc SOURCES asan.c)
	weft_test(asan COMMAND @asan.gcc ENV ASAN_OPTIONS=detect_leaks=0)
	weft_test(canary.asan COMMAND @no-asan.gcc ENDS 1 SAYS "^not refused$")
else()
	weft_skip(asan "gcc -fsanitize=address does not work here: apt-get install --no-install-recommends libasan8")
endif()
weft_sanitizer_works(works gcc leak)
if(works)
	weft_program(leak gcc SOURCES leak.c FLAGS -O1 -fsanitize=leak)
	weft_test(leak COMMAND @leak.gcc)
	weft_test(canary.leak COMMAND @leak.gcc lost FAILS SAYS "50 byte.s. leaked in 1 allocation")
else()
	weft_skip(leak "gcc -fsanitize=leak does not work here: apt-get install --no-install-recommends liblsan0, and allow ptrace")
endif()

# Canaries: wrong libraries must be noticed.
function(copy_canary name program)
	weft_program(${name} gcc SOURCES ${program}.c CANARY ${name})
	weft_test(canary.${name} COMMAND timeout 60 @${name}.gcc ${ARGN})
endfunction()
copy_canary(a_clone_takes_itself_for_the_original contract identity ENDS 139)
copy_canary(bodies_end_by_a_resume contract occupied ENDS 134 SAYS "cannot resume or clean up coroutine .waits.")
copy_canary(a_late_reply_is_lost contract reply_after_clone FAILS SAYS "does not hold")
copy_canary(signals_arrive_on_frames_of_others contract under_signals FAILS SAYS "does not hold")
copy_canary(a_region_is_taken_while_it_runs contract exclusion ENDS "1|134|139")
copy_canary(clones_share_what_changes random 1 20000 FAILS SAYS "does not hold")
copy_canary(the_lowest_frames_are_lost random 1 20000 FAILS SAYS "does not hold")
copy_canary(frames_change_places_by_half random 1 20000 FAILS SAYS "does not hold")
copy_canary(shared_frames_change_places random 1 20000 FAILS SAYS "does not hold")
copy_canary(a_region_of_others_is_given_away random 1 20000 FAILS SAYS "does not hold")
copy_canary(a_checkpoint_lacks_a_line points all_choices ENDS 139)
copy_canary(an_end_is_not_undone points ends ENDS 134 SAYS "cannot resume coroutine .searches. .#1.: it is finished")
copy_canary(what_is_inside_outlives_its_frames points inside FAILS SAYS "does not hold")
copy_canary(an_old_way_to_the_resumer points backtraces FAILS SAYS "does not hold")

# Threads that are always interrupted between reading a region's owner and taking the region.
weft_library(gcc-slow gcc -O2 -DWEFT_CANARY_slow_to_take_a_region)
weft_program(random gcc-slow SOURCES random.c)
weft_program(a_region_is_given_away_while_taken gcc-slow SOURCES random.c CANARY a_region_is_given_away_while_taken)
foreach(seed 1 2 3)
	weft_test(random.${seed}.interrupted COMMAND @random.gcc-slow ${seed} 300 4)
endforeach()
weft_test(canary.a_region_is_given_away_while_taken COMMAND timeout 60 @a_region_is_given_away_while_taken.gcc-slow 1 12000 4
	  ENDS "1|134|139")
