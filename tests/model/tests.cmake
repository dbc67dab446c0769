# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Random programs against the abstract machine. WEFT_SEED=N repeats a run; the seed is in the log.
weft_part(model coro QUICK)

foreach(library ${weft_compilers} gcc-O0 gcc-tiny)
	weft_program(differential ${library} SOURCES machine.c differential.c FLAGS -Wall -Wextra)
	set(operations 2000000)
	if(library STREQUAL gcc)
		set(operations 10000000)
	endif()
	weft_test(${library} COMMAND @differential.${library} --operations ${operations} ON ${weft_policies} SECONDS 200)
endforeach()
weft_test(mprotect COMMAND @differential.gcc --operations 1000000 ON commit GUARDS mprotect)

# A machine with a wrong rule is detected within few operations.
foreach(rule RANGE 1 6)
	weft_test(canary.rule-${rule} COMMAND @differential.gcc --operations 1000000 --wrong ${rule} FAILS SAYS "differs|replay:")
endforeach()
