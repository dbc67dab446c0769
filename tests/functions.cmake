# SPDX-License-Identifier: MIT OR Apache-2.0
#
# How tests are declared. A directory of tests has a tests.cmake, which CMakeLists.txt includes. All of them share one scope, so
# that each object is made once, for all tests that need it. Design:
#  1. A *library* is a compiler with flags. The sources of Weft are compiled once for each library; a program names its library.
#  2. A *program* is sources, compiled by its library's compiler with its library's flags and more, linked with its objects.
#  3. A *test* is a command with an environment. It passes if the command ends with 0 and prints no line "not ok". A line "ok" of
#     its output counts as a result, for programs with several results.
#  4. A *canary* is a bug, built in by -DWEFT_CANARY_name in sources that say WEFT_CANARY(name). Its test passes if the command
#     runs, fails, and its output names the fault.
#  5. Nothing is built that no test asks for: the test build.PART builds what the tests of that directory need, and ctest runs it
#     before them (a fixture).
#
#   weft_part(NAME LAYER [QUICK] [FIRST] [SLOW] [DEBUGGED])   begins a part, which tests this layer (ARCHITECTURE.md;
#                                           "tools", "all"); QUICK: ./weft test runs it; FIRST: before other parts; SLOW: it takes minutes;
#                                           DEBUGGED: debuggers look at variables and types, so everything is compiled with -g
#   weft_library(NAME COMPILER FLAG…)       gcc, clang and other names, below
#   weft_named(OUT FLAG…)                   sets OUT to these flags as part of a name
#   weft_library_needs(NAME FILE…)          files to be built before any source is compiled with its flags
#   weft_program(NAME LIBRARY SOURCES FILE… [FLAGS FLAG…] [LINK ARG…] [OBJECTS FILE…] [WITHOUT OBJECT…] [CANARY NAME] [SHARED NAME…]
#                [BARE] [UNEXPORTED])       BARE: without Weft; UNEXPORTED: objects that it loads do not see its effects
#   weft_shared(NAME LIBRARY [WEFT] [SOURCES FILE…] [FLAGS FLAG…] [LINK ARG…] [OBJECTS FILE…] [SHARED NAME…])
#   weft_archive(NAME LIBRARY [CANARY NAME])            Weft alone: NAME.LIBRARY.a
#   weft_linked(NAME KIND COMPILER SOURCES FILE… [FLAGS FLAG…] [OBJECTS FILE…] [LINK ARG…] [ASSEMBLED])   by `weft cc --instrument KIND`,
#                                           KIND none: without; ASSEMBLED: from assembly that all kinds share
#   weft_assembled(OUT PLACE COMPILE ASSEMBLE NEEDED FILE FLAG…)   sets OUT to the path of an object, made from assembly that all kinds share
#   weft_object(OUT LIBRARY FILE [FLAG…])   sets OUT to the path of an object
#   weft_linked_object(OUT KIND LIBRARY FILE [FLAG…])   likewise an object, for OBJECTS of a program
#   weft_test(NAME COMMAND WORD… [ON POLICY…] [GUARDS GUARD…] [ENV NAME=VALUE…] [SECONDS N] [ALONE]
#             [ENDS CODE] [FAILS] [SAYS REGEX] [PRINTS FILE] [NEEDS FILE…])
#   weft_sanitizer_works(OUT COMPILER KIND) is its run time installed?
#   weft_skip(NAME WHY)                     names a test that cannot run here, and the missing package
#
# A WORD like @NAME.LIBRARY (@NAME.KIND.COMPILER if linked) is a program of this part.
# ON and GUARDS: once for each, with WEFT_STACK and WEFT_GUARD. SECONDS: the time limit (60) on the machine that it is stated for.
# ALONE: no test runs beside it, because it measures or fills the memory. ENDS: the exit code, 128 + the number if by a signal, several as 1|134;
# FAILS: any but 0; SAYS: a pattern that the output matches (bash's =~; a dot for each semicolon); PRINTS: a file equal to its standard output;
# NEEDS: files that must be built before.

set(weft_tests ${CMAKE_CURRENT_SOURCE_DIR})
set(weft_root ${PROJECT_SOURCE_DIR})
file(
	GLOB weft_library_sources
	CONFIGURE_DEPENDS ${weft_root}/src/*/*.c ${weft_root}/src/arch/*.S)
# Activities have tests of their own, which name these sources.
list(FILTER weft_library_sources EXCLUDE REGEX "/src/(activity|http)/")
# The sources that programs without tasks need: half of the work of compilers.
set(weft_core_sources ${weft_library_sources})
list(FILTER weft_core_sources EXCLUDE REGEX "/src/(sched|sync|io)/")

# Compilers: the names of a C compiler and of its C++ compiler.
set(weft_gcc gcc)
set(weft_gcc_cxx g++)
set(weft_clangs clang-16 clang clang-17 clang-18 clang-19 clang-20 clang-21 clang-22)
list(TRANSFORM weft_clangs REPLACE clang clang++ OUTPUT_VARIABLE weft_clangxxs)
find_program(WEFT_CLANG NAMES ${weft_clangs})
find_program(WEFT_CLANGXX NAMES ${weft_clangxxs})
set(weft_clang ${WEFT_CLANG})
set(weft_clang_cxx ${WEFT_CLANGXX})
set(weft_compilers gcc)
if(WEFT_CLANG)
	list(APPEND weft_compilers clang)
endif()

# Cross compilers, by the processor's name, for libraries of other architectures; and the emulators.
set(weft_aarch64 aarch64-linux-gnu-gcc)
set(weft_aarch64_cxx aarch64-linux-gnu-g++)
set(weft_riscv64 riscv64-linux-gnu-gcc)
set(weft_riscv64_cxx riscv64-linux-gnu-g++)
set(weft_emulator_riscv64 ${weft_tests}/emulate riscv64)
# Debian's headers and libraries of another architecture are where clang does not look.
set(sysroot /usr/aarch64-linux-gnu)
set(cross --target=aarch64-linux-gnu --gcc-toolchain=/usr -isystem ${sysroot}/include -B${sysroot}/bin -L${sysroot}/lib)
set(weft_aarch64-clang ${weft_clang} ${cross})
set(weft_aarch64-clang_cxx ${weft_clang_cxx} ${cross})
set(weft_emulator_aarch64 ${weft_tests}/emulate aarch64)

set(weft_without_activities "no clang here compiles activities: ./weft test --full fetches clang 22 and the headers of LLVM")

# The limits are stated for a machine that does this piece of work in 0.16 seconds. A slower machine gets more time, up to four times.
set(WEFT_PATIENCE 1 CACHE STRING "Multiplies the time limits of all tests")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
execute_process(
	COMMAND
		${Python3_EXECUTABLE} -c "import time; t = time.monotonic(); sum(i * i for i in range(2000000))
print(int(100 * ${WEFT_PATIENCE} * min(4, max(1, (time.monotonic() - t) / 0.16))))"
	OUTPUT_VARIABLE weft_percent
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)

set(weft_policies fixed overcommit commit)
# Our own sources are compiled with the warnings of the library itself (cmake/flags.cmake).
set(weft_strict ${weft_warnings})
list(TRANSFORM weft_strict REPLACE ".*:(-W[^>]*)>" "\\1")

function(weft_part name layer)
	cmake_parse_arguments(PARSE_ARGV 2 the "QUICK;FIRST;SLOW;DEBUGGED" "" "")
	set(labels ${name} ${layer} full)
	if(the_QUICK)
		list(APPEND labels quick)
	endif()
	if(the_SLOW)
		list(APPEND labels slow)
	endif()
	# Names of functions and lines are enough for reports. Debuggers want types, too.
	set(symbols -g1)
	if(the_DEBUGGED)
		set(symbols -g)
	endif()
	set(weft_symbols ${symbols} PARENT_SCOPE)
	# The layers below tasks are tested without them.
	set(weft_sources weft_library_sources)
	if(layer MATCHES "^(stack|coro|effect|compat|tools)$")
		set(weft_sources weft_core_sources)
	endif()
	set(weft_sources ${weft_sources} PARENT_SCOPE)
	set(weft_part ${name} PARENT_SCOPE)
	set(weft_labels "${labels}" PARENT_SCOPE)
	set(weft_first ${the_FIRST} PARENT_SCOPE)
	file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name})
endfunction()

# At the end of a part: one target with all that its tests need, and the test that builds it.
function(weft_part_end)
	get_property(files GLOBAL PROPERTY weft_files_${weft_part})
	if(NOT files)
		return()
	endif()
	list(REMOVE_DUPLICATES files)
	add_custom_target(tests.${weft_part} DEPENDS ${files})
	add_test(NAME build.${weft_part} COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target tests.${weft_part} -- -k 0)
	math(EXPR limit "1200 * ${weft_percent} / 100")
	set_tests_properties(
		build.${weft_part}
		PROPERTIES FIXTURES_SETUP build.${weft_part}
			   RESOURCE_LOCK build
			   PROCESSORS 2
			   TIMEOUT ${limit}
			   LABELS "${weft_labels};build")
	if(weft_first)
		set_property(GLOBAL APPEND PROPERTY weft_first_tests build.${weft_part})
	else()
		set_property(GLOBAL APPEND PROPERTY weft_later_builds build.${weft_part})
	endif()
endfunction()

# At the very end: nothing else is built before the tests whose verdict is wanted first have ended.
function(weft_order_tests)
	get_property(first GLOBAL PROPERTY weft_first_tests)
	get_property(later GLOBAL PROPERTY weft_later_builds)
	set_tests_properties(${first} PROPERTIES COST 100000)
	set_tests_properties(${later} PROPERTIES DEPENDS "${first}")
endfunction()

function(weft_needs)
	set_property(GLOBAL APPEND PROPERTY weft_files_${weft_part} ${ARGN})
endfunction()

function(weft_library name compiler)
	set_property(GLOBAL PROPERTY weft_compiler_${name} ${compiler})
	set_property(GLOBAL PROPERTY weft_flags_${name} "${ARGN}")
endfunction()

# named(OUT FLAG…): flags as part of a name: -O2 -Wl,-Bsymbolic: .O2.Bsymbolic
function(weft_named out)
	list(TRANSFORM ARGN REPLACE "^(-std=|-Wl,-*|-+)" "." OUTPUT_VARIABLE words)
	string(JOIN "" words ${words})
	set(${out} "${words}" PARENT_SCOPE)
endfunction()

function(weft_library_needs name)
	set_property(GLOBAL APPEND PROPERTY weft_needed_${name} ${ARGN})
endfunction()

# compile(OUT LIBRARY PLACE KIND FILE FLAG…): the object of a file, made once for the same library, place and flags. PLACE keeps apart
# the objects of Weft. KIND is an instrumentation, or empty.
function(weft_compile out library place kind file)
	get_property(compiler GLOBAL PROPERTY weft_compiler_${library})
	get_property(flags GLOBAL PROPERTY weft_flags_${library})
	if(NOT compiler)
		message(FATAL_ERROR "no library is called '${library}': see tests/CMakeLists.txt")
	endif()
	get_filename_component(file ${file} ABSOLUTE BASE_DIR ${weft_tests}/${weft_part})
	weft_language(driver standard ${compiler} ${file} ${ARGN})
	string(MD5 which "${weft_symbols} ${ARGN}")
	string(SUBSTRING "${which}" 0 8 which)
	file(RELATIVE_PATH short ${weft_root} ${file})
	string(MAKE_C_IDENTIFIER "${short}" short)
	set(object ${CMAKE_CURRENT_BINARY_DIR}/objects/${library}/${place}${kind}${which}/${short}.o)
	set(${out} ${object} PARENT_SCOPE)
	get_property(known GLOBAL PROPERTY "weft_object_${object}")
	if(known)
		return()
	endif()
	set_property(GLOBAL PROPERTY "weft_object_${object}" 1)
	get_filename_component(directory ${object} DIRECTORY)
	file(MAKE_DIRECTORY ${directory})
	set(command ${driver} -I${weft_root}/include)
	get_property(needed GLOBAL PROPERTY weft_needed_${library})
	list(APPEND needed ${file})
	if(kind)
		set(command ${CMAKE_COMMAND} -E env WEFT_CC=${driver} ${weft_root}/weft cc --instrument ${kind})
		list(APPEND needed ${weft_cc})
	endif()
	add_custom_command(
		OUTPUT ${object}
		COMMAND ${command} ${standard} ${weft_symbols} -I${weft_root}/src -I${weft_tests} ${flags} ${ARGN} -MD -MF ${object}.d -c ${file} -o ${object}
		DEPENDS ${needed}
		DEPFILE ${object}.d
		COMMENT "${library} ${kind}: ${short} ${ARGN}"
		VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

function(weft_object out library file)
	weft_compile(object ${library} "" "" ${file} ${ARGN})
	set(${out} ${object} PARENT_SCOPE)
endfunction()

function(weft_linked_object out kind library file)
	weft_compile(object ${library} "" ${kind} ${file} ${ARGN})
	set(${out} ${object} PARENT_SCOPE)
endfunction()

# language(DRIVER STANDARD COMPILER FILE FLAG…): sets DRIVER to the compiler for this file, and STANDARD to the flag for its language.
function(weft_language driver standard compiler file)
	set(${driver} ${weft_${compiler}} PARENT_SCOPE)
	set(flag -std=gnu11)
	if(file MATCHES "[.](cc|cpp)$")
		set(${driver} ${weft_${compiler}_cxx} PARENT_SCOPE)
		set(flag -std=c++17)
	endif()
	if("${ARGN}" MATCHES "-std=")
		set(flag)
	endif()
	set(${standard} ${flag} PARENT_SCOPE)
endfunction()

# assembled(OUT PLACE COMPILE ASSEMBLE NEEDED FILE FLAG…): the compiler's output for a file is the same for each instrumentation, whose
# work begins with the assembler, and takes most of the time. COMPILE makes the assembly once, ASSEMBLE makes an object of it at PLACE,
# after the NEEDED files.
function(weft_assembled out place compile assemble needed file)
	get_filename_component(file ${file} ABSOLUTE BASE_DIR ${weft_tests}/${weft_part})
	string(MD5 which "${weft_symbols} ${compile} ${ARGN}")
	string(SUBSTRING "${which}" 0 8 which)
	file(RELATIVE_PATH short ${weft_root} ${file})
	string(MAKE_C_IDENTIFIER "${short}" short)
	set(directory ${CMAKE_CURRENT_BINARY_DIR}/objects/assembly/${which})
	set(text ${directory}/${short}.s)
	set(object ${directory}/${place}.${short}.o)
	set(${out} ${object} PARENT_SCOPE)
	file(MAKE_DIRECTORY ${directory})
	get_property(known GLOBAL PROPERTY "weft_object_${text}")
	if(NOT known)
		set_property(GLOBAL PROPERTY "weft_object_${text}" 1)
		add_custom_command(
			OUTPUT ${text}
			COMMAND ${compile} ${weft_symbols} -I${weft_root}/src -I${weft_tests} ${ARGN} -MD -MF ${text}.d -MT ${text} -S ${file} -o ${text}
			DEPENDS ${file} ${needed}
			DEPFILE ${text}.d
			COMMENT "assembly: ${short} ${ARGN}"
			VERBATIM COMMAND_EXPAND_LISTS)
	endif()
	get_property(known GLOBAL PROPERTY "weft_object_${object}")
	if(NOT known)
		set_property(GLOBAL PROPERTY "weft_object_${object}" 1)
		# The compiler's assembly says which lines it is from; the assembler would say which lines it has.
		set(flags ${ARGN})
		list(FILTER flags EXCLUDE REGEX "^-g")
		add_custom_command(
			OUTPUT ${object}
			COMMAND ${assemble} ${flags} -c ${text} -o ${object}
			DEPENDS ${text} ${needed}
			COMMENT "${place}: ${short} ${ARGN}"
			VERBATIM COMMAND_EXPAND_LISTS)
	endif()
endfunction()

# canaries(OUT FILE): the bugs that can be built into this file.
function(weft_canaries out file)
	get_property(known GLOBAL PROPERTY "weft_canaries_${file}" SET)
	if(NOT known)
		file(STRINGS ${file} lines REGEX "CANARY")
		string(REGEX MATCHALL "CANARY(_OR[(]|[(]|_)[a-zA-Z0-9_]+" names "${lines}")
		list(TRANSFORM names REPLACE "^CANARY(_OR)?[_(]" "")
		set_property(GLOBAL PROPERTY "weft_canaries_${file}" "${names}")
	endif()
	get_property(names GLOBAL PROPERTY "weft_canaries_${file}")
	set(${out} "${names}" PARENT_SCOPE)
endfunction()

# has_canary(OUT CANARY FILE…): the files, among these and Weft's, that have the canary. A canary that no file has would prove nothing.
file(GLOB weft_files ${weft_root}/src/*/*.[chS] ${weft_root}/include/*/*.h* ${weft_root}/include/*/*/*.h ${weft_root}/include/*/*/*/*.h)
function(weft_has_canary out canary)
	get_property(known GLOBAL PROPERTY "weft_has_${canary}_${ARGN}")
	if(known)
		set(${out} ${known} PARENT_SCOPE)
		return()
	endif()
	set(found)
	foreach(file IN LISTS weft_files ARGN)
		weft_canaries(names ${file})
		if(canary IN_LIST names)
			list(APPEND found ${file})
		endif()
	endforeach()
	if(NOT found)
		message(FATAL_ERROR "no source has a canary '${canary}'")
	endif()
	set_property(GLOBAL PROPERTY "weft_has_${canary}_${ARGN}" ${found})
	set(${out} ${found} PARENT_SCOPE)
endfunction()

# sees(OUT FILE AMONG…): true if FILE is among these files or includes any of them, directly or not. Then it has their canary.
set(weft_include_places ${weft_root}/include ${weft_root}/include/compat ${weft_root}/src ${weft_tests})
function(weft_sees out file)
	set(seen)
	set(new ${file})
	while(new)
		list(POP_FRONT new next)
		if(next IN_LIST ARGN)
			set(${out} TRUE PARENT_SCOPE)
			return()
		endif()
		list(APPEND seen ${next})
		get_property(known GLOBAL PROPERTY "weft_includes_${next}" SET)
		if(NOT known)
			get_filename_component(directory ${next} DIRECTORY)
			file(STRINGS ${next} lines REGEX "^# *include [<\"]")
			set(files)
			foreach(line IN LISTS lines)
				string(REGEX REPLACE "^# *include [<\"]([^>\"]*).*" "\\1" name "${line}")
				foreach(place ${directory} ${weft_include_places})
					get_filename_component(found ${name} ABSOLUTE BASE_DIR ${place})
					if(EXISTS ${found})
						list(APPEND files ${found})
						break()
					endif()
				endforeach()
			endforeach()
			set_property(GLOBAL PROPERTY "weft_includes_${next}" "${files}")
		endif()
		get_property(files GLOBAL PROPERTY "weft_includes_${next}")
		list(REMOVE_ITEM files ${seen})
		list(APPEND new ${files})
		list(REMOVE_DUPLICATES new)
	endwhile()
	set(${out} FALSE PARENT_SCOPE)
endfunction()

# canary_flag(OUT CANARY SOURCE FILE…): the flag that compiles SOURCE with the canary, which is in files of Weft or in these. Empty if
# SOURCE does not have the canary, or if CANARY is empty.
function(weft_canary_flag out canary source)
	set(${out} PARENT_SCOPE)
	if(canary)
		weft_has_canary(with ${canary} ${ARGN})
		weft_sees(sees ${source} ${with})
		if(sees)
			set(${out} -DWEFT_CANARY_${canary} PARENT_SCOPE)
		endif()
	endif()
endfunction()

# objects(OUT LIBRARY [CANARY]): the objects of Weft. The sources that have or include the canary are compiled with it.
function(weft_objects out library canary)
	get_property(known GLOBAL PROPERTY ${weft_sources}_${library}_${weft_symbols})
	if(known AND NOT canary)
		set(${out} ${known} PARENT_SCOPE)
		return()
	endif()
	set(objects)
	get_property(compiler GLOBAL PROPERTY weft_compiler_${library})
	set(sources ${${weft_sources}})
	weft_for_processor(sources ${compiler})
	foreach(source IN LISTS sources)
		weft_canary_flag(more "${canary}" ${source})
		weft_compile(object ${library} weft. "" ${source} -fPIC -fexceptions -fvisibility=hidden ${more})
		list(APPEND objects ${object})
	endforeach()
	if(NOT canary)
		set_property(GLOBAL PROPERTY ${weft_sources}_${library}_${weft_symbols} ${objects})
	endif()
	set(${out} ${objects} PARENT_SCOPE)
endfunction()

# link(KIND NAME LIBRARY …): a program, or a shared object.
function(weft_link kind name library)
	cmake_parse_arguments(PARSE_ARGV 3 the "WEFT;UNEXPORTED" "CANARY" "SOURCES;FLAGS;LINK;OBJECTS;WITHOUT;SHARED")
	if(the_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "${weft_part}: ${name}: what is '${the_UNPARSED_ARGUMENTS}'?")
	endif()
	get_property(compiler GLOBAL PROPERTY weft_compiler_${library})
	get_property(flags GLOBAL PROPERTY weft_flags_${library})
	set(driver ${weft_${compiler}})
	set(file ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/${name}.${library})
	set(how -Wl,--export-dynamic-symbol=weft.effect.*)
	if(the_UNEXPORTED)
		set(how)
	endif()
	if(kind STREQUAL shared)
		set(file ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/lib${name}.${library}.so)
		set(how -shared -Wl,-soname,lib${name}.${library}.so)
		list(APPEND the_FLAGS -fPIC)
	endif()
	set(sources)
	foreach(source IN LISTS the_SOURCES)
		get_filename_component(source ${source} ABSOLUTE BASE_DIR ${weft_tests}/${weft_part})
		list(APPEND sources ${source})
	endforeach()
	foreach(source IN LISTS sources)
		if(source MATCHES "[.](cc|cpp)$")
			set(driver ${weft_${compiler}_cxx})
		endif()
		# Most canaries are in a source of Weft's, and the program is as without.
		weft_canary_flag(more "${the_CANARY}" ${source} ${sources})
		weft_compile(object ${library} "" "" ${source} ${the_FLAGS} ${more})
		list(APPEND the_OBJECTS ${object})
	endforeach()
	set(canaries ${the_FLAGS})
	list(FILTER canaries INCLUDE REGEX "^-DWEFT_CANARY_")
	foreach(canary IN LISTS canaries)
		string(REPLACE -DWEFT_CANARY_ "" canary ${canary})
		weft_has_canary(with ${canary} ${sources})
	endforeach()
	if(the_WEFT)
		weft_objects(objects ${library} "${the_CANARY}")
		foreach(object IN LISTS the_WITHOUT)
			list(FILTER objects EXCLUDE REGEX "/src_${object}_[cS][.]o$")
		endforeach()
		list(APPEND the_OBJECTS ${objects})
	endif()
	set(shared)
	foreach(each IN LISTS the_SHARED)
		list(APPEND shared ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/lib${each}.so)
		list(APPEND the_LINK -Wl,-rpath,${CMAKE_CURRENT_BINARY_DIR}/${weft_part})
	endforeach()
	list(REMOVE_DUPLICATES the_LINK)
	add_custom_command(
		OUTPUT ${file}
		COMMAND ${driver} ${flags} ${the_FLAGS} ${the_OBJECTS} ${shared} ${how} -pthread ${the_LINK} -o ${file}
		DEPENDS ${the_OBJECTS} ${shared}
		COMMENT "${weft_part}: ${name}.${library}"
		VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

# Weft comes with a program, unless it takes it from a shared object, or does without.
function(weft_program)
	cmake_parse_arguments(PARSE_ARGV 0 the "BARE" "" "SHARED")
	set(words ${ARGN})
	list(REMOVE_ITEM words BARE)
	if(NOT the_BARE AND NOT the_SHARED)
		list(APPEND words WEFT)
	endif()
	weft_link(program ${words})
endfunction()

function(weft_shared)
	weft_link(shared ${ARGN})
endfunction()

function(weft_archive name library)
	cmake_parse_arguments(PARSE_ARGV 2 the "" "CANARY" "")
	weft_objects(objects ${library} "${the_CANARY}")
	set(archive ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/${name}.${library}.a)
	add_custom_command(
		OUTPUT ${archive}
		COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
		COMMAND ar rcs ${archive} ${objects}
		DEPENDS ${objects}
		COMMENT "${weft_part}: ${name}.${library}.a"
		VERBATIM)
endfunction()

# `weft cc` builds its tools at its first use; after that several commands may run at once.
file(
	GLOB weft_tools
	CONFIGURE_DEPENDS
	${weft_root}/src/*/*.[chS]
	${weft_root}/include/weft/*.h*
	${weft_root}/include/weft/detail/*
	${weft_root}/include/weft/detail/arch/*
	${weft_root}/tools/*/*
	${weft_root}/tools/driver/launch/*
	${weft_root}/weft)
set(weft_cc ${CMAKE_CURRENT_BINARY_DIR}/weft_cc)
file(WRITE ${weft_cc}.c "int main(void) { return 0; }\n")
add_custom_command(
	OUTPUT ${weft_cc}
	COMMAND ${CMAKE_COMMAND} -E env WEFT_CC=gcc ${weft_root}/weft cc --instrument segmented ${weft_cc}.c -o ${weft_cc}
	DEPENDS ${weft_tools}
	COMMENT "weft cc"
	VERBATIM)

function(weft_linked name kind compiler)
	cmake_parse_arguments(PARSE_ARGV 3 the "ASSEMBLED" "" "SOURCES;FLAGS;OBJECTS;LINK")
	set(sources)
	foreach(source IN LISTS the_SOURCES)
		get_filename_component(source ${source} ABSOLUTE BASE_DIR ${weft_tests}/${weft_part})
		if(the_ASSEMBLED)
			weft_language(driver standard ${compiler} ${source} ${the_FLAGS})
			set(command ${CMAKE_COMMAND} -E env WEFT_CC=${driver} ${weft_root}/weft cc --instrument)
			weft_assembled(source ${kind} "${command};segmented;${standard}" "${command};${kind}" ${weft_cc} ${source} ${the_FLAGS})
		endif()
		list(APPEND sources ${source})
	endforeach()
	file(GLOB headers CONFIGURE_DEPENDS ${weft_tests}/*/*.h)
	weft_language(driver standard ${compiler} "" ${the_FLAGS})
	set(instrument --instrument ${kind})
	set(place -I${weft_root}/src -I${weft_tests})
	if(the_ASSEMBLED)
		set(headers)
		set(standard)
		set(place)
	endif()
	if(kind STREQUAL none)
		set(instrument)
	endif()
	set(program ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/${name}.${kind}.${compiler})
	add_custom_command(
		OUTPUT ${program}
		COMMAND ${CMAKE_COMMAND} -E env WEFT_CC=${weft_${compiler}} ${weft_root}/weft cc ${instrument} ${standard} ${weft_symbols}
			${place} ${the_FLAGS} ${sources} ${the_OBJECTS} ${the_LINK} -o ${program}
		DEPENDS ${sources} ${headers} ${the_OBJECTS} ${weft_cc}
		COMMENT "${weft_part}: ${name}.${kind}.${compiler}"
		VERBATIM COMMAND_EXPAND_LISTS)
endfunction()

function(weft_test name)
	cmake_parse_arguments(PARSE_ARGV 1 the "ALONE;FAILS" "SECONDS;ENDS;SAYS;PRINTS" "COMMAND;ON;GUARDS;ENV;NEEDS")
	if(the_UNPARSED_ARGUMENTS)
		message(FATAL_ERROR "weft_test ${name}: what is '${the_UNPARSED_ARGUMENTS}'?")
	endif()
	set(command)
	foreach(word IN LISTS the_COMMAND)
		if(word MATCHES "^@(.+)$")
			set(word ${CMAKE_CURRENT_BINARY_DIR}/${weft_part}/${CMAKE_MATCH_1})
			list(APPEND the_NEEDS ${word})
			if(word MATCHES "[.](aarch64|riscv64)[^./]*$")
				list(APPEND command ${weft_emulator_${CMAKE_MATCH_1}})
			endif()
		endif()
		list(APPEND command "${word}")
	endforeach()
	weft_needs(${the_NEEDS})
	if(the_PRINTS)
		get_filename_component(file ${the_PRINTS} ABSOLUTE BASE_DIR ${weft_tests}/${weft_part})
		list(PREPEND command ${weft_tests}/prints ${file})
	endif()
	if(NOT the_SAYS)
		set(the_SAYS ".*") # lists lose empty words
	endif()
	if(the_FAILS)
		set(the_ENDS failure)
	endif()
	if(DEFINED the_ENDS)
		list(PREPEND command ${weft_tests}/expect ${the_ENDS} "${the_SAYS}")
	elseif(NOT the_SAYS STREQUAL ".*")
		list(PREPEND command ${weft_tests}/expect 0 "${the_SAYS}")
	endif()
	set(how "")
	foreach(policy IN LISTS the_ON)
		foreach(guard IN LISTS the_GUARDS)
			list(APPEND how ${policy}/${guard})
		endforeach()
		if(NOT the_GUARDS)
			list(APPEND how ${policy}/)
		endif()
	endforeach()
	if(NOT the_ON)
		list(TRANSFORM the_GUARDS PREPEND "/" OUTPUT_VARIABLE how)
	endif()
	if(NOT how)
		set(how "/")
	endif()
	if(NOT the_SECONDS)
		set(the_SECONDS 60)
	endif()
	math(EXPR limit "${the_SECONDS} * ${weft_percent} / 100")
	foreach(each IN LISTS how)
		string(REGEX MATCH "^([^/]*)/(.*)$" all "${each}")
		set(test ${weft_part}.${name})
		# Environment variables of the library are set here or not at all.
		set(environment WEFT_BUDGET=unset: WEFT_FAIL_EVERY=unset: WEFT_STACK=unset: WEFT_GUARD=unset: CMOCKA_MESSAGE_OUTPUT=set:TAP)
		if(CMAKE_MATCH_1)
			string(APPEND test .${CMAKE_MATCH_1})
			list(APPEND environment WEFT_STACK=set:${CMAKE_MATCH_1})
		endif()
		if(CMAKE_MATCH_2)
			string(APPEND test .${CMAKE_MATCH_2})
			list(APPEND environment WEFT_GUARD=set:${CMAKE_MATCH_2})
		endif()
		foreach(variable IN LISTS the_ENV)
			string(REGEX REPLACE "^([^=]*)=(.*)$" "\\1=set:\\2" variable "${variable}")
			list(APPEND environment "${variable}")
		endforeach()
		add_test(
			NAME ${test}
			COMMAND ${command}
			WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${weft_part})
		set_tests_properties(
			${test}
			PROPERTIES ENVIRONMENT_MODIFICATION "${environment}"
				   TIMEOUT ${limit}
				   SKIP_RETURN_CODE 77
				   LABELS "${weft_labels}"
				   FIXTURES_REQUIRED build.${weft_part})
		if(NOT DEFINED the_ENDS)
			set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION "not ok( [0-9]+)? - ")
		endif()
		if(the_ALONE)
			set_tests_properties(${test} PROPERTIES RUN_SERIAL ON)
		endif()
		if(weft_first)
			set_property(GLOBAL APPEND PROPERTY weft_first_tests ${test})
		endif()
	endforeach()
endfunction()

# sanitizer_works(OUT COMPILER KIND): is its run time installed?
function(weft_sanitizer_works out compiler kind)
	get_property(known GLOBAL PROPERTY weft_works_${compiler}_${kind})
	if(DEFINED known)
		set(${out} ${known} PARENT_SCOPE)
		return()
	endif()
	file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/works.c "int main(void) { return 0; }\n")
	execute_process(
		COMMAND ${weft_${compiler}} -fsanitize=${kind} works.c -o works
		WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}
		RESULT_VARIABLE failed
		OUTPUT_QUIET ERROR_QUIET)
	if(NOT failed)
		execute_process(COMMAND ${CMAKE_CURRENT_BINARY_DIR}/works RESULT_VARIABLE failed)
	endif()
	set(works TRUE)
	if(failed)
		set(works FALSE)
	endif()
	set_property(GLOBAL PROPERTY weft_works_${compiler}_${kind} ${works})
	set(${out} ${works} PARENT_SCOPE)
endfunction()

function(weft_skip name why)
	weft_test(${name} COMMAND sh -c "echo 'skip - ${weft_part}, ${name}: ${why}' && exit 77")
	set_tests_properties(${weft_part}.${name} PROPERTIES FIXTURES_REQUIRED "")
endfunction()
