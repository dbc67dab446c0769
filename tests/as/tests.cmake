# SPDX-License-Identifier: MIT OR Apache-2.0
#
# weft-as: programs instrumented in every way, on a run time that gives each function exactly the stack that it requests
# (strict.c); random call graphs; input that weft-as refuses or passes on unchanged; the structure of its output; the
# table of functions.
weft_part(as tools)

# In the form that a compiler finds: a directory for each policy with an assembler in it. Its path contains a space.
file(GLOB assembler_sources CONFIGURE_DEPENDS ${weft_root}/tools/as/*.c)
set(checked -D_GNU_SOURCE -O1 -fsanitize=undefined -fno-sanitize-recover -Werror ${weft_strict})
weft_program(weft-as gcc BARE SOURCES ${assembler_sources} FLAGS ${checked})
set(bin "${CMAKE_CURRENT_BINARY_DIR}/as/bin dir")
set(assemblers "${bin}/weft-as")
foreach(kind segmented mmu lookahead)
	file(MAKE_DIRECTORY "${bin}/${kind}")
	list(APPEND assemblers "${bin}/${kind}/as")
endforeach()
foreach(assembler IN LISTS assemblers)
	add_custom_command(
		OUTPUT ${assembler}
		COMMAND ${CMAKE_COMMAND} -E create_symlink ${CMAKE_CURRENT_BINARY_DIR}/as/weft-as.gcc ${assembler}
		DEPENDS ${CMAKE_CURRENT_BINARY_DIR}/as/weft-as.gcc
		VERBATIM)
endforeach()

# Code that is never instrumented.
weft_object(strict gcc strict.c -O1 -fPIC)
weft_object(switch gcc strict.S -fPIC)
weft_object(outside gcc outside.c -fPIC)
set(plain ${strict} ${switch} ${outside})

# The ways to compile each program: the name, words for the compiler, words for the linker.
set(levels O0 O1 O2 O3 Os)
set(models
    g
    fPIC
    fPIE
    no-plt
    cet
    native
    frame-pointer
    no-unwind-tables
    alderlake
    gc-sections
    no-ident
    hidden)
foreach(level IN LISTS levels)
	set(how_${level} -${level} -g0)
endforeach()
set(how_g -O2)
set(how_fPIC -O2 -g0 -fPIC)
set(how_fPIE -O2 -g0 -fPIE)
set(link_fPIE -pie)
set(how_no-plt -O2 -g0 -fPIC -fno-plt)
set(how_cet -O2 -g0 -fcf-protection)
set(how_native -O2 -g0 -march=native)
set(how_frame-pointer -O2 -g0 -fno-omit-frame-pointer)
set(how_no-unwind-tables -O2 -g0 -fno-asynchronous-unwind-tables)
set(how_alderlake -O2 -g0 -mtune=alderlake)
set(how_gc-sections -O2 -g0 -ffunction-sections)
set(link_gc-sections -Wl,--gc-sections)
set(how_no-ident -O2 -g0 -fno-ident)
set(how_hidden -O2 -g0 -fvisibility=hidden -fPIC)

# as_object(OUT KIND COMPILER FILE FLAG…)
function(as_object out kind compiler file)
	weft_language(driver standard ${compiler} ${file})
	weft_assembled(object as-${kind} "${driver};-I${weft_root}/include;${standard};${instrument}" "${driver};${instrument};-B${bin}/${kind}/"
		       "${assemblers}" ${file} ${ARGN})
	set(${out} ${object} PARENT_SCOPE)
endfunction()

# as_program(NAME COMPILER KIND SOURCES FLAGS ARGUMENT LINK…): linked without the flags for instrumentation, with which the linker would
# take the compiler's run time for such stacks.
function(as_program name compiler kind sources flags argument)
	set(objects)
	foreach(source IN LISTS sources)
		as_object(object ${kind} ${compiler} ${source} ${flags})
		list(APPEND objects ${object})
	endforeach()
	weft_program(${name} ${compiler} BARE OBJECTS ${objects} ${plain} LINK ${ARGN} -lm)
	weft_test(${name}.${compiler} COMMAND @${name}.${compiler} ${argument})
endfunction()

foreach(compiler IN LISTS weft_compilers)
	set(instrument -w -fsplit-stack -fno-integrated-as)
	if(compiler STREQUAL gcc)
		set(instrument -w -fsplit-stack -dp -fno-ipa-ra -fno-stack-clash-protection)
	endif()
	foreach(kind segmented mmu lookahead)
		# Runs once without splits, and, if the run time supports it, once with a split at every check.
		set(word)
		set(how ${levels} ${models})
		if(kind STREQUAL mmu)
			set(word " (nothing splits)")
			set(how ${levels} gc-sections)
		endif()
		foreach(name IN LISTS how)
			foreach(program calls shapes names)
				set(sources ${program}.c)
				if(program STREQUAL "names")
					list(APPEND sources names2.c)
				endif()
				as_program(${program}.${name}.${kind} ${compiler} ${kind} "${sources}" "${how_${name}}" "${word}" ${link_${name}})
			endforeach()
		endforeach()
		foreach(level O0 O2 Os)
			as_program(cxx.${level}.${kind} ${compiler} ${kind} "cxx.cc;cxx2.cc" -${level} " (nothing splits)" -lstdc++)
		endforeach()
	endforeach()

	# One unit is instrumented, the second is not: the linker takes inline functions from either.
	as_object(instrumented mmu ${compiler} cxx.cc -O2 -g0)
	weft_object(not ${compiler} cxx2.cc -g0)
	weft_program(mixed1 ${compiler} BARE OBJECTS ${instrumented} ${not} ${strict} ${switch} LINK -lstdc++)
	weft_program(mixed2 ${compiler} BARE OBJECTS ${not} ${instrumented} ${strict} ${switch} LINK -lstdc++)
	weft_test(mixed1.${compiler} COMMAND @mixed1.${compiler} " (mixed)")
	weft_test(mixed2.${compiler} COMMAND @mixed2.${compiler} " (mixed)")

	foreach(way segmented lookahead whole)
		weft_test(random.${way}.${compiler} COMMAND ${weft_tests}/as/graphs.py @weft-as.gcc ${way} ${weft_${compiler}} ${plain}
			  NEEDS ${plain} SECONDS 120)
	endforeach()
	foreach(what structure markers refused)
		weft_test(${what}.${compiler} COMMAND ${weft_tests}/as/written.py ${what} ${bin} ${weft_${compiler}} NEEDS ${assemblers})
	endforeach()
endforeach()
weft_test(passing COMMAND ${weft_tests}/as/written.py passing ${bin} NEEDS ${assemblers})

# Functions that weft-as knows to need little stack: of libraries, and of Weft.
weft_program(known gcc BARE SOURCES known.c FLAGS -O1 -Wall -Wextra -I${weft_root}/tools/as LINK -lm -Wl,--no-as-needed -l:libgcc_s.so.1)
weft_test(known COMMAND @known.gcc)
weft_test(canary.known COMMAND @known.gcc 60 FAILS SAYS "uses [0-9]+ bytes, more than 60")
file(GLOB sources CONFIGURE_DEPENDS ${weft_root}/src/coro/*.c ${weft_root}/src/effect/*.c)
set(own)
foreach(source IN LISTS sources)
	weft_object(object gcc ${source} -fPIC -fvisibility=hidden -fno-semantic-interposition -fstack-usage)
	list(APPEND own ${object})
endforeach()
weft_test(own COMMAND ${weft_tests}/as/written.py own ${bin} ${own} NEEDS ${own})

# Some of eight programs detect a mistake in weft-as.
function(canary name way says)
	weft_program(${name} gcc BARE SOURCES ${assembler_sources} FLAGS ${checked} -DWEFT_CANARY_${name})
	weft_test(canary.${name}.${way} COMMAND ${weft_tests}/as/graphs.py @${name}.gcc ${way} gcc -O1 ${plain}
		  ENV WEFT_SEED=1 FAILS SAYS ${says} SECONDS 120)
endfunction()
canary(checks_ask_for_a_third segmented "used more than it asked for")
canary(checks_ask_for_a_third whole "used more than it asked for")
canary(calls_count_no_arguments segmented "sum == first")
