# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Programs on stacks of chunks: with every instrumentation, by both compilers, and without; also the conformance suite.
weft_part(linked stack SLOW)

set(flags -w -Wno-psabi)
set(suite)
foreach(name effects frames many registers signals suite)
	list(APPEND suite ${weft_tests}/conformance/${name}.c)
endforeach()
set(scenario ${weft_tests}/faults/scenario.c)
set(on_segmented overcommit segmented segmented:1K segmented:16K heap)
set(on_mmu overcommit mmu mmu:16K)
set(on_lookahead lookahead lookahead:16K heap)

# Plain code, on system stacks.
weft_program(plain gcc SOURCES linked.c aligned.c plain.c ${scenario} FLAGS ${flags})
weft_program(suite gcc SOURCES ${suite})
weft_test(plain COMMAND @plain.gcc ON overcommit commit SECONDS 120)
weft_test(plain.conformance COMMAND @suite.gcc ON segmented heap mmu)

foreach(compiler IN LISTS weft_compilers)
	weft_object(plain ${compiler} plain.c -O1 ${flags}) # never instrumented
	foreach(build segmented-O0 segmented-O2 mmu-O2 lookahead-O2)
		string(REGEX MATCH "^(.*)-(O.)$" all ${build})
		set(kind ${CMAKE_MATCH_1})
		set(level ${CMAKE_MATCH_2})
		weft_linked(linked.${level} ${kind} ${compiler} SOURCES linked.c aligned.c ${scenario} OBJECTS ${plain} FLAGS ${flags} -${level} ASSEMBLED)
		weft_linked(suite.${level} ${kind} ${compiler} SOURCES ${suite} FLAGS ${flags} -${level} ASSEMBLED)
		weft_test(${build}.${compiler} COMMAND @linked.${level}.${kind}.${compiler} ON ${on_${kind}} SECONDS 120)
		set(policies ${kind}:16K heap)
		if(kind STREQUAL mmu)
			set(policies ${kind}:16K)
		endif()
		weft_test(${build}.${compiler}.conformance COMMAND @suite.${level}.${kind}.${compiler} ON ${policies} SECONDS 100)
	endforeach()
endforeach()

# Code that checks, but was not assembled by weft-as, runs in place if it has the name of a function that is known to
# need little.
set(foreign ${CMAKE_CURRENT_BINARY_DIR}/linked/foreign.o)
add_custom_command(
	OUTPUT ${foreign}
	COMMAND gcc -O1 -g -fsplit-stack -fno-builtin -c ${weft_tests}/linked/foreign.c -o ${foreign}
	DEPENDS ${weft_tests}/linked/foreign.c
	VERBATIM)
weft_linked(foreign segmented gcc SOURCES asks_foreign.c OBJECTS ${foreign} FLAGS -O1 -fno-builtin)
weft_test(foreign COMMAND @foreign.segmented.gcc ON segmented:1K heap SAYS "^77416$")

# First resumes, at each distance from the end of a chunk.
foreach(compiler IN LISTS weft_compilers)
	weft_linked(resumes segmented ${compiler} SOURCES resumes.c FLAGS -O2)
	weft_test(resumes.${compiler} COMMAND @resumes.segmented.${compiler} ON segmented:1K segmented heap SAYS "^80200$")
endforeach()

# Uninstrumented functions run where WEFT_NEEDS and --needs say.
foreach(compiler IN LISTS weft_compilers)
	weft_object(needed gcc needed.c -O1)
	foreach(kind segmented mmu lookahead)
		weft_linked(needs ${kind} ${compiler} SOURCES needs.c OBJECTS ${needed} FLAGS -O2)
		weft_linked(list ${kind} ${compiler} SOURCES needs.c OBJECTS ${needed} FLAGS -O0 -g3 --needs ${weft_tests}/linked/needs.list)
		weft_test(needs.${kind}.${compiler} COMMAND @needs.${kind}.${compiler} ON ${kind}:16K)
		weft_test(needs.list.${kind}.${compiler} COMMAND @list.${kind}.${compiler} list ON ${kind}:16K)
	endforeach()
endforeach()
weft_test(canary.needs COMMAND @needs.segmented.gcc list ON segmented:16K FAILS SAYS "what the list says")

# Nested functions by pointer: code is on the stack, on every policy.
foreach(kind segmented mmu lookahead)
	weft_linked(nested ${kind} gcc SOURCES nested.c FLAGS ${flags} -O1)
	set(policies fixed commit copy ${on_${kind}})
	list(REMOVE_DUPLICATES policies)
	weft_test(nested.${kind} COMMAND @nested.${kind}.gcc ON ${policies})
endforeach()
weft_linked(nested-not segmented gcc SOURCES nested.c FLAGS ${flags} -O1 -Wl,-z,noexecstack)
weft_test(canary.nested COMMAND @nested-not.segmented.gcc ON overcommit ENDS 139)

# With a wrong run time, the programs must not pass. canary(NAME CASE [POLICY])
function(canary name case)
	set(policy segmented:16K ${ARGN})
	list(GET policy -1 policy)
	weft_object(plain gcc plain.c -w -Wno-psabi -O1)
	weft_object(scenario gcc ${weft_tests}/faults/scenario.c)
	weft_linked_object(linked segmented gcc linked.c -w -Wno-psabi -O2)
	weft_linked_object(aligned segmented gcc aligned.c -w -Wno-psabi)
	weft_program(${name} gcc OBJECTS ${linked} ${aligned} ${plain} ${scenario} CANARY ${name})
	weft_test(canary.${name} COMMAND timeout 60 @${name}.gcc ${case} ON ${policy} FAILS SAYS "not ok [0-9]+ - [^.]*${case}")
endfunction()
canary(arguments_are_not_copied kinds)
canary(arguments_are_aligned_as_a_stack over-aligned)
canary(longjmp_leaves_chunks_as_they_are longjmp)
canary(registers_with_arguments_are_lost kinds)
canary(blocks_are_given_back_from_where_arguments_are kinds heap)
canary(system_stacks_are_shared callbacks)
canary(frames_go_below_small_chunks "small chunks" segmented)

# ---- mmu: a store that often faults becomes a comparison ----

weft_linked(boundary mmu gcc SOURCES boundary.c FLAGS -O2 -Wall -Wextra)
foreach(threads 1 2 8 64)
	weft_test(boundary.${threads} COMMAND @boundary.mmu.gcc ${threads})
endforeach()
weft_test(canary.boundary COMMAND @boundary.mmu.gcc ENV WEFT_MMU=signal FAILS SAYS "not ok - 1 threads")
weft_test(boundary.trap COMMAND @boundary.mmu.gcc trap)
weft_linked_object(object mmu gcc boundary.c -O2)
weft_program(boundary.foreign gcc OBJECTS ${object} CANARY traps_are_foreign)
weft_test(canary.boundary-trap COMMAND @boundary.foreign.gcc trap ENDS 139)
