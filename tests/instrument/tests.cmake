# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Instrumented code on every policy: the programs of tests/as in coroutines and threads whose first chunks are tiny, with both
# compilers, at every optimization level and with options that change how code looks; the conformance suite; deep recursion; whole
# programs under look-ahead.
weft_part(instrument tools SLOW)

set(programs calls shapes names)
set(as ${weft_tests}/as)
set(sources_calls host.c ${as}/calls.c)
set(sources_shapes host.c ${as}/shapes.c)
set(sources_names host.c ${as}/names.c ${as}/names2.c)
set(contiguous fixed:2M overcommit:2M commit:2M copy:2M)
set(on_segmented segmented:8K heap:8K ${contiguous})
set(on_mmu mmu:8K ${contiguous})
set(on_lookahead lookahead:8K ${contiguous})

# Options that change prologues, calls, sections or tables.
set(options
    "-O2 -fno-plt -fPIC"
    "-O2 -fno-pic -no-pie"
    "-O2 -static"
    "-O1 -static-pie -fPIE"
    "-O2 -fcf-protection=full -fstack-protector-all"
    "-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables"
    "-O2 -fstack-clash-protection --coverage"
    "-O1 -fsanitize=undefined -fno-sanitize-recover"
    "-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections"
    "-O2 -fno-omit-frame-pointer -mcmodel=medium"
    "-O3 -march=native -mno-red-zone"
    "-Os -g3 -pipe -fverbose-asm")
file(GLOB suite CONFIGURE_DEPENDS ${weft_tests}/conformance/*.c)
weft_object(outside gcc ${as}/outside.c -O1) # never instrumented

foreach(compiler IN LISTS weft_compilers)
	foreach(kind segmented mmu lookahead)
		foreach(program IN LISTS programs)
			foreach(level O0 O1 O2 O3)
				weft_linked(${program}.${level} ${kind} ${compiler} SOURCES ${sources_${program}} OBJECTS ${outside} FLAGS -w -${level} LINK -lm ASSEMBLED)
				weft_test(${program}.${level}.${kind}.${compiler} COMMAND @${program}.${level}.${kind}.${compiler} ON ${on_${kind}} SECONDS 120)
			endforeach()
			foreach(option IN LISTS options)
				separate_arguments(flags UNIX_COMMAND "${option}")
				weft_named(name ${program} ${flags})
				weft_linked(${name} ${kind} ${compiler} SOURCES ${sources_${program}} OBJECTS ${outside} FLAGS -w ${flags} LINK -lm ASSEMBLED)
				weft_test(${name}.${kind}.${compiler} COMMAND @${name}.${kind}.${compiler} ON ${kind}:8K commit:2M SECONDS 120)
			endforeach()
		endforeach()
		weft_linked(conformance ${kind} ${compiler} SOURCES ${suite} FLAGS -O2 LINK -lm ASSEMBLED)
		string(REGEX REPLACE ":[^;]*" "" policies "${on_${kind}}")
		weft_test(conformance.${kind}.${compiler} COMMAND @conformance.${kind}.${compiler} ON ${policies} SECONDS 120)

		# A hundred megabytes deep, with exceptions: C and C++ in one program.
		set(deep ${weft_tests}/install/stacks/deep.cc ${weft_tests}/install/stacks/depth.c)
		set(policies ${kind})
		if(kind STREQUAL segmented)
			list(APPEND policies heap)
		endif()
		foreach(policy IN LISTS policies)
			weft_test(deep.${policy}.${compiler} COMMAND ${weft_root}/weft run --policy ${policy}:8K ${deep} SAYS "^${policy} 180000300000$"
				ENV WEFT_CC=${weft_${compiler}} WEFT_CXX=${weft_${compiler}_cxx} NEEDS ${weft_cc})
		endforeach()
	endforeach()

	# The objects were made again together. The host's checks are in another unit: its path is longer than they are.
	foreach(program IN LISTS programs)
		weft_test(whole-program.${program}.${compiler} COMMAND ${weft_root}/weft lookahead --explain @${program}.O2.lookahead.${compiler}
			SAYS "in all: units (2, [^\n]*largest bound [1-9]|3,)")
	endforeach()
endforeach()

# Code that never grows a stack.
weft_program(without-checks gcc SOURCES ${sources_shapes} OBJECTS ${outside} LINK -lm)
weft_test(canary.without-checks COMMAND @without-checks.gcc ON segmented:8K FAILS SAYS "no stack has grown")
