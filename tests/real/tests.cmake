# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Third-party programs (Lua as C and as C++, SQLite, a JSON library; zstd, libxml2, xz, re2, tcc and SQLite with their
# own tests) and our own C++ program, compiled for linked stacks by `weft cc`: in main, in coroutines, in threads,
# migrating, on first chunks of 16 KB. Their output must equal the plain builds' output. The cost in instructions. Lua
# and SQLite in yielding mode, in activities.
weft_part(real tools SLOW)

set(real ${weft_tests}/real/real.py)
set(real_tests)

# real_test(NAME SETS_UP NEEDS AFTER WORD…): SETS_UP and NEEDS are fixtures, AFTER the tests that build its programs.
function(real_test name sets_up needs after)
	weft_test(${name} COMMAND ${real} ${ARGN} NEEDS ${weft_cc} SECONDS 1000)
	set_property(
		TEST real.${name}
		APPEND
		PROPERTY FIXTURES_REQUIRED ${needs})
	if(sets_up)
		set_tests_properties(real.${name} PROPERTIES FIXTURES_SETUP ${sets_up})
	endif()
	if(after)
		set_tests_properties(real.${name} PROPERTIES DEPENDS "${after}")
	endif()
endfunction()

real_test(fetch real.sources "" "" fetch)
# Lua as C++ tests little more than re2 and our own program.
set(programs lua sqlite cxx)
if(weft_exhaustive)
	list(APPEND programs luaxx)
endif()
foreach(program IN LISTS programs)
	real_test(${program}.plain.gcc real.${program} real.sources "" reference ${program} gcc)
endforeach()

# combination(PROGRAM KIND COMPILER LEVEL WAYS POLICIES)
function(combination program kind compiler level ways policies)
	# The first test makes the assembly from which all instrumentations begin.
	get_property(first GLOBAL PROPERTY weft_real_${program}.${level}.${compiler})
	if(NOT first)
		set_property(GLOBAL PROPERTY weft_real_${program}.${level}.${compiler} real.${program}.${kind}.${level}.${compiler})
	endif()
	real_test(${program}.${kind}.${level}.${compiler} "" "real.sources;real.${program}" "${first}" runs ${program} ${kind} ${weft_${compiler}}
		-${level} ${ways} ${policies})
endfunction()

# Every way only if it tests something new, because each needs a compilation.
set(some coro,threads)
weft_turn(sqlite_kinds segmented mmu lookahead)
weft_turn(cxx_kinds mmu lookahead segmented)
foreach(kind segmented mmu lookahead)
	set(both ${kind}:16K,heap:16K)
	if(kind STREQUAL mmu)
		set(both mmu:16K,commit:64M)
	elseif(kind STREQUAL lookahead)
		set(both lookahead:16K,overcommit:64M)
	endif()
	set(one ${kind}:16K)
	if(weft_exhaustive)
		set(one ${both})
	endif()
	combination(lua ${kind} gcc O2 plain,coro,interleaved,threads,migrating ${both})
	if(kind IN_LIST sqlite_kinds)
		combination(sqlite ${kind} gcc O2 ${some},migrating ${one})
	endif()
	if(weft_exhaustive)
		combination(luaxx ${kind} gcc O2 ${some} ${one})
	endif()
	if(kind IN_LIST cxx_kinds)
		combination(cxx ${kind} gcc O2 plain,coro,interleaved,threads,migrating ${one})
	endif()
	if(WEFT_CLANG)
		combination(lua ${kind} clang O2 ${some} ${kind}:16K)
		if(weft_exhaustive OR kind STREQUAL lookahead)
			combination(cxx ${kind} clang O1 ${some} ${kind}:16K)
		endif()
		# SQLite by clang has its own tests to pass, below.
		if(weft_exhaustive)
			combination(sqlite ${kind} clang O1 ${some} ${kind}:16K)
		endif()
	endif()
endforeach()
combination(lua mmu gcc O0 ${some} mmu:16K)
if(weft_exhaustive)
	combination(lua lookahead gcc O3 ${some} lookahead:16K)
	combination(lua segmented gcc O3 ${some} segmented:16K)
	combination(lua lookahead gcc O0 ${some} lookahead:16K)
	combination(sqlite segmented gcc O0 ${some} segmented:16K)
endif()
if(WEFT_CLANG)
	combination(lua segmented clang O0 ${some} segmented:16K)
	if(weft_exhaustive)
		combination(lua mmu clang O3 ${some} mmu:16K)
	endif()
	real_test(lua.plain.clang "" real.sources "" reference lua ${weft_clang})
endif()

# The programs' own tests: each day's run takes half of the programs, one instrumentation and one optimization level
# (own_tests.py).
set(own ${weft_tests}/real/own_tests.py)
weft_test(own.fetch COMMAND ${own} fetch SECONDS 600)
set(own_tests)
foreach(compiler IN LISTS weft_compilers)
	execute_process(COMMAND ${CMAKE_COMMAND} -E env WEFT_ROTA=${weft_rota} ${own} today ${compiler} OUTPUT_VARIABLE today OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
	foreach(program IN LISTS today)
		weft_test(own.${program}.${compiler} COMMAND ${own} runs ${program} ${weft_${compiler}} NEEDS ${weft_cc} ENV WEFT_ROTA=${weft_rota} SECONDS 900)
		list(APPEND own_tests real.own.${program}.${compiler})
	endforeach()
endforeach()
set_tests_properties(real.own.fetch PROPERTIES FIXTURES_SETUP real.own)
set_property(
	TEST ${own_tests}
	APPEND
	PROPERTY FIXTURES_REQUIRED real.own)

# In yielding mode, in activities.
if(weft_activities_versions)
	list(GET weft_activities_versions 0 newest)
	real_test(lua.activities "" real.sources "" in_activities lua clang-${newest} -O2 20000)
	# Activities that do not take turns, or a check that ignores differences, are detected.
	weft_test(canary.activities COMMAND ${real} observed clang-${newest} -O2 NEEDS ${weft_cc} FAILS SAYS "exit code 0, or it prints something else"
		  SECONDS 1000)
	set_tests_properties(real.canary.activities PROPERTIES FIXTURES_REQUIRED real.sources DEPENDS real.lua.activities)
	if(weft_exhaustive)
		real_test(sqlite.activities "" real.sources "" in_activities sqlite clang-${newest} -O1 20000)
	endif()
else()
	weft_skip(activities "no clang of 19 to 22 with LLVM's headers: apt-get install --no-install-recommends clang-22 llvm-22-dev libclang-22-dev")
endif()

# The maximum percentage of the plain build's instructions.
if(WEFT_VALGRIND)
	foreach(pair lua.gcc lua.clang sqlite.gcc)
		string(REGEX MATCH "^(.*)[.](.*)$" all ${pair})
		set(program ${CMAKE_MATCH_1})
		set(compiler ${CMAKE_MATCH_2})
		if(NOT ${compiler} IN_LIST weft_compilers)
			continue()
		endif()
		real_test(${pair}.count real.${pair}.count real.sources real.${program}.plain.${compiler} count ${program} ${weft_${compiler}})
		foreach(kind_most segmented.108 lookahead.105 mmu.108)
			string(REGEX MATCH "^(.*)[.](.*)$" all ${kind_most})
			set(kind ${CMAKE_MATCH_1})
			if(program STREQUAL sqlite AND NOT kind IN_LIST sqlite_kinds)
				continue()
			endif()
			real_test(${pair}.cost.${kind} "" "real.sources;real.${pair}.count" real.${program}.${kind}.O2.${compiler}
				cost ${program} ${kind} ${weft_${compiler}} ${CMAKE_MATCH_2})
		endforeach()
	endforeach()
else()
	weft_skip(cost "valgrind is not installed: apt-get install --no-install-recommends valgrind")
endif()

# A build whose checks read a word that is 0, different output, and runs that differ from each other are detected.
file(GLOB sources CONFIGURE_DEPENDS ${weft_root}/tools/as/*.c)
weft_program(weft-as gcc BARE SOURCES ${sources} FLAGS -D_GNU_SOURCE -DWEFT_CANARY_checks_look_at_nothing)
weft_test(canary.checks COMMAND ${real} without_checks @weft-as.gcc NEEDS ${weft_cc} FAILS SAYS "exit code -[0-9]+" SECONDS 400)
weft_test(canary.output COMMAND ${real} wrong_output FAILS SAYS "it prints something else than the plain build" SECONDS 400)
weft_test(canary.runs COMMAND ${real} different_runs FAILS SAYS "interleaved" SECONDS 400)
set_property(
	TEST real.canary.checks real.canary.runs
	APPEND
	PROPERTY FIXTURES_REQUIRED real.sources real.lua)
set_property(
	TEST real.canary.output
	APPEND
	PROPERTY FIXTURES_REQUIRED real.sources real.cxx real.lua)
set_tests_properties(real.canary.output PROPERTIES DEPENDS real.lua.segmented.O2.gcc)
