# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Programs on stacks of chunks: a part of gcc's torture suite, programs of csmith (suites.py), and random programs whose
# calls depend on the path (paths.py). One compiler a day, each optimization level in turn, all four policies, `main` on a
# first chunk of 1 KiB: as plain builds, or refused in one line. WEFT_TORTURE=1 ./weft test torture: the whole suite,
# not every 24th program. The last complete run was with clang 16 on mmu and lookahead, the suite being gcc 11's: of
# 1637 programs 1560 agree on each policy, only the known program differs, two are refused (a goto out of a nested
# function, __builtin_longjmp), and 74 do not count, because plain clang does not build or pass them.
weft_part(torture tools SLOW)

set(suites ${weft_tests}/torture/suites.py)
set(fetched ${weft_build_root}/torture)
weft_test(fetch COMMAND ${suites} fetch ${fetched} SECONDS 600)
set(after)
weft_turn(suite_compilers gcc clang)
weft_turn(path_compilers clang gcc)
weft_turn(csmith_compilers clang gcc)
foreach(compiler IN LISTS weft_compilers)
	if(compiler IN_LIST suite_compilers)
		weft_test(gcc-suite.${compiler} COMMAND ${suites} gcc ${fetched} ${weft_${compiler}} NEEDS ${weft_cc} SECONDS 1500)
		list(APPEND after torture.gcc-suite.${compiler})
	endif()
	if(compiler IN_LIST path_compilers)
		weft_test(paths.${compiler} COMMAND ${suites} paths ${fetched} ${weft_${compiler}} NEEDS ${weft_cc} SECONDS 900)
	endif()
	if(compiler IN_LIST csmith_compilers)
		weft_test(csmith.${compiler} COMMAND ${suites} csmith ${fetched} ${weft_${compiler}} NEEDS ${weft_cc} SECONDS 900)
		list(APPEND after torture.csmith.${compiler})
	endif()
endforeach()

# A weft-as that uses only the first path to a label calls the wrong functions.
file(GLOB sources CONFIGURE_DEPENDS ${weft_root}/tools/as/*.c)
weft_program(weft-as gcc BARE SOURCES ${sources} FLAGS -D_GNU_SOURCE -DWEFT_CANARY_first_path_alone)
weft_test(canary.paths COMMAND ${suites} paths ${fetched} gcc @weft-as.gcc NEEDS ${weft_cc} FAILS SAYS "# path[0-9]+.*exit code 0" SECONDS 600)

# A run time that loses arguments must not pass programs that pass many.
weft_archive(weft gcc)
weft_archive(forgetful gcc CANARY arguments_are_not_copied)
weft_test(arguments COMMAND ${suites} arguments ${fetched} @weft.gcc.a SECONDS 200)
weft_test(canary.arguments COMMAND ${suites} arguments ${fetched} @forgetful.gcc.a SECONDS 200 FAILS SAYS "# (struct|va-arg)-[^:]*: exit code -")
list(APPEND after torture.arguments torture.canary.arguments)

set_tests_properties(torture.fetch PROPERTIES FIXTURES_SETUP torture.fetched)
set_property(
	TEST ${after}
	APPEND
	PROPERTY FIXTURES_REQUIRED torture.fetched)
