# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Live values, depth, effects, threads and signals on every policy, with both compilers, many flags, as a program and as shared
# libraries, with both kinds of guards.
weft_part(conformance coro QUICK)

set(suite effects.c frames.c many.c registers.c signals.c)
set(warnings -Wall -Wextra)

foreach(compiler IN LISTS weft_compilers)
	set(lto)
	if(compiler STREQUAL clang)
		find_program(WEFT_LLD NAMES ld.lld-16 ld.lld)
		set(lto LINK --ld-path=${WEFT_LLD})
	endif()
	weft_program(O0 ${compiler}-O0 SOURCES ${suite} suite.c FLAGS ${warnings})
	weft_program(lto ${compiler}-lto SOURCES ${suite} suite.c FLAGS ${warnings} ${lto})
	weft_program(cet ${compiler}-cet SOURCES ${suite} suite.c FLAGS ${warnings})
	weft_program(O1 ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -O1)
	weft_program(O2 ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings})
	weft_program(O3 ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -O3)
	weft_program(native ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -O3 -march=native -Wno-psabi)
	weft_program(frame-pointer ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -fno-omit-frame-pointer)
	weft_program(pie ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -fPIE LINK -pie)
	weft_program(no-pie ${compiler} SOURCES ${suite} suite.c FLAGS ${warnings} -fno-pie LINK -no-pie)
	# Library and suite each in a shared object of their own.
	weft_shared(weft ${compiler} WEFT)
	weft_shared(suite ${compiler} SOURCES ${suite} FLAGS ${warnings} SHARED weft.${compiler})
	weft_program(shared ${compiler} SOURCES suite.c FLAGS ${warnings} LINK -rdynamic SHARED suite.${compiler} weft.${compiler})
	foreach(program O0.${compiler}-O0 lto.${compiler}-lto cet.${compiler}-cet)
		weft_test(${program} COMMAND @${program} ON ${weft_policies} copy GUARDS mprotect madvise)
	endforeach()
	foreach(build O1 O2 O3 native frame-pointer pie no-pie shared)
		weft_test(${build}.${compiler} COMMAND @${build}.${compiler} ON ${weft_policies} copy GUARDS mprotect madvise)
	endforeach()
endforeach()

foreach(compiler IN LISTS weft_compilers)
	weft_program(quiet ${compiler} SOURCES quiet/quiet.c FLAGS ${warnings})
	weft_test(quiet.${compiler} COMMAND @quiet.${compiler} ON ${weft_policies} copy GUARDS mprotect madvise)
	weft_linked(quiet segmented ${compiler} SOURCES quiet/quiet.c FLAGS -O1 ${warnings})
	weft_test(quiet.segmented.${compiler} COMMAND @quiet.segmented.${compiler} ON segmented heap)
endforeach()
weft_program(loud gcc SOURCES quiet/quiet.c FLAGS -DWEFT_CANARY_asks_the_kernel)
weft_test(canary.quiet COMMAND @loud.gcc ENDS 159)

# With wrong headers the suite must not pass: its message, or the signal by which it dies.
foreach(canary r12_to_r15_survive vector_registers_survive frame_pointer_is_lost red_zone_is_written who_suspends_has_a_red_zone value_is_lost)
	weft_program(${canary} gcc SOURCES ${suite} suite.c FLAGS -DWEFT_CANARY_${canary})
	set(says "does not hold")
	if(canary MATCHES "frame_pointer|who_suspends")
		set(says "") # they crash, maybe at once
	endif()
	weft_test(canary.${canary} COMMAND timeout 20 @${canary}.gcc FAILS SAYS "${says}")
endforeach()
