# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Each layer by itself: a program for each layer that includes the library's own headers. Optimized by one compiler,
# unoptimized and with debug checks by the other compiler, with both kinds of guards, on every contiguous policy.
weft_part(unit all QUICK FIRST)

set(layers stack coro effect handler routing then)
list(GET weft_compilers -1 other)
if(other STREQUAL gcc)
	weft_skip(clang "not installed, nor is anything tested with it: apt-get install --no-install-recommends clang-16")
endif()
foreach(library gcc ${other}-debug-O0)
	foreach(layer line config ${layers} misuse)
		set(wrap)
		if(layer STREQUAL stack)
			# A test there interrupts the thread that drops a slot's memory.
			set(wrap -Wl,--wrap=madvise)
		endif()
		weft_program(${layer} ${library} SOURCES ${layer}.c unit.c FLAGS ${weft_strict} LINK ${wrap} -lcmocka)
		weft_test(${layer}.${library} COMMAND @${layer}.${library})
	endforeach()
endforeach()
foreach(layer line config ${layers} misuse)
	weft_test(${layer}.gcc COMMAND @${layer}.gcc GUARDS mprotect)
endforeach()
foreach(layer IN LISTS layers)
	weft_test(${layer}.gcc COMMAND @${layer}.gcc ON ${weft_policies} copy)
endforeach()

weft_program(canary gcc SOURCES canary.c unit.c LINK -lcmocka)
weft_test(canary.fails COMMAND @canary.gcc ENDS 1 SAYS "not ok 1 - fails")
weft_test(canary.crashes COMMAND @canary.gcc crash ENDS 139)
weft_program(unsettled gcc SOURCES handler.c unit.c FLAGS ${weft_strict} LINK -lcmocka CANARY tail_within_ends_the_body)
weft_test(canary.unsettled COMMAND @unsettled.gcc FAILS SAYS "not ok [0-9]+ - decided_within")
foreach(canary slot_at_hand_is_lost slot_at_hand_keeps_its_memory another_kind_is_at_hand)
	weft_program(${canary} gcc SOURCES coro.c unit.c FLAGS ${weft_strict} LINK -lcmocka CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc FAILS SAYS "not ok [0-9]+ - (attributes|(trimmed_)?at_hand)")
endforeach()
weft_program(starts_over_in_a_clause gcc SOURCES handler.c unit.c FLAGS ${weft_strict} LINK -lcmocka CANARY starts_over_in_a_clause)
weft_test(canary.starts_over_in_a_clause COMMAND @starts_over_in_a_clause.gcc FAILS SAYS "unhandled effect \"get\"")

weft_test(runner COMMAND ${weft_tests}/unit/runner SECONDS 120)
