# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Stacks in memory of the caller's: the promises, random programs against a model, code for linked stacks, tasks; with
# sanitizers, under valgrind, unoptimized, with failing allocations.
weft_part(memory all)

set(returning
    sizes
    refusals
    life
    uses
    sideways
    guards
    unguarded
    fails
    kinds
    left_in_a_file
    threads
    wanders
    forks)
list(GET weft_compilers -1 other)
set(noticed "overcommit, 16 KiB of the caller's memory. it was noticed when the coroutine was left, so that memory below may have been written to. raise it with weft_attr.memory_size: 32K, or ask for a guard by weft_attr.guard_size$")

foreach(library gcc ${other}-debug-O0)
	weft_program(contract ${library} SOURCES contract.c FLAGS -Wall -Wextra)
	foreach(case IN LISTS returning)
		weft_test(contract.${case}.${library} COMMAND @contract.${library} ${case})
	endforeach()
	foreach(case pattern stepped_over returned switched overflowed_thread)
		weft_test(contract.${case}.${library} COMMAND @contract.${library} ${case} ENDS 134
			SAYS "^weft: stack overflow in coroutine \"m\" .#[0-9]+.: ${noticed}")
	endforeach()
	weft_test(contract.guard.${library} COMMAND @contract.${library} guard ENDS 139 SAYS
		"^weft: stack overflow in coroutine \"m\" .#1.: overcommit, 20000 B of the caller's memory. fault at 0x[0-9a-f]+. raise it with weft_attr.memory_size: 39K$")
	weft_program(random ${library} SOURCES random.c FLAGS -Wall -Wextra)
	weft_program(tasks ${library} SOURCES tasks.c FLAGS -Wall -Wextra)
	foreach(workers 1 8)
		weft_test(tasks.${workers}.${library} COMMAND @tasks.${library} ${workers})
	endforeach()
endforeach()
# The classes of C++.
foreach(compiler IN LISTS weft_compilers)
	weft_program(classes ${compiler} SOURCES classes.cc FLAGS -Wall -Wextra)
	weft_test(classes.${compiler} COMMAND @classes.${compiler} ON overcommit commit)
endforeach()

# The caller's memory is used with any value of WEFT_STACK.
weft_test(contract.all COMMAND @contract.gcc ON copy heap GUARDS mprotect)
weft_test(contract.uses COMMAND @contract.gcc uses ON fixed commit)
weft_test(tasks.default COMMAND @tasks.gcc ON heap commit)
foreach(seed 1 2)
	weft_test(random.${seed} COMMAND @random.gcc ${seed})
endforeach()
weft_test(random.other COMMAND @random.${other}-debug-O0 4 10000)

# If the library's own allocations fail, the caller's memory is nevertheless usable.
weft_program(random gcc-tiny-inject SOURCES random.c FLAGS -Wall -Wextra)
weft_test(random.refused COMMAND @random.gcc-tiny-inject 5 20000 ENV WEFT_FAIL_EVERY=3)

foreach(sanitizer asan tsan)
	set(kind address)
	if(sanitizer STREQUAL tsan)
		set(kind thread)
	endif()
	weft_sanitizer_works(works gcc ${kind})
	if(NOT works)
		weft_skip(${sanitizer} "gcc has no such runtime here: apt-get install --no-install-recommends gcc libasan8 libtsan2")
		continue()
	endif()
	weft_program(random gcc-${sanitizer} SOURCES random.c FLAGS -Wall -Wextra)
	weft_program(contract gcc-${sanitizer} SOURCES contract.c FLAGS -Wall -Wextra)
	weft_test(random.${sanitizer} COMMAND @random.gcc-${sanitizer} 6 2000 ENV ASAN_OPTIONS=detect_stack_use_after_return=1)
	foreach(case life uses sideways guards wanders)
		weft_test(contract.${case}.${sanitizer} COMMAND @contract.gcc-${sanitizer} ${case})
	endforeach()
endforeach()

if(WEFT_VALGRIND)
	weft_program(random gcc-valgrind SOURCES random.c FLAGS -Wall -Wextra)
	weft_test(random.valgrind COMMAND ${WEFT_VALGRIND} -q --error-exitcode=9 @random.gcc-valgrind 7 1500)
else()
	weft_skip(random.valgrind "not installed: apt-get install --no-install-recommends valgrind")
endif()

foreach(kind segmented mmu lookahead)
	weft_linked(linked ${kind} gcc SOURCES linked.c FLAGS -O2)
	weft_linked(random ${kind} gcc SOURCES random.c FLAGS -O2 "-DLINKED=\"${kind}\"")
	weft_test(linked.${kind} COMMAND @linked.${kind}.gcc ${kind})
	weft_test(random.${kind} COMMAND @random.${kind}.gcc 8 20000)
	weft_test(linked.thread.${kind} COMMAND @linked.${kind}.gcc ${kind} thread ENDS 134
		SAYS "^weft: stack overflow in a thread: its memory is full. raise weft_attr.memory_size$")
endforeach()

# canary(NAME PROGRAM WORDS SAYS)
function(canary name program words says)
	weft_program(${name} gcc SOURCES ${program}.c FLAGS -Wall -Wextra CANARY ${name})
	weft_test(canary.${name} COMMAND timeout 60 @${name}.gcc ${words} FAILS SAYS "${says}")
endfunction()
weft_program(overflows_in_memory_go_unseen gcc SOURCES contract.c FLAGS -Wall -Wextra CANARY overflows_in_memory_go_unseen)
weft_test(canary.overflows_in_memory_go_unseen COMMAND @overflows_in_memory_go_unseen.gcc pattern ENDS 0 SAYS "ok - pattern")
canary(memory_in_use_is_taken random 1 "does not hold: !k")
canary(guards_stay_in_memory contract guards "")
canary(memory_is_left_late tasks 8 "")
canary(record_lies_beyond_memory random 1 "above the memory: byte [0-9]+ of place [0-9]+ was written")
