# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The language of activities: the same programs by each clang that is here, at each level, on each kind of timer, with frames that are
# copied and with stacks of their own. The checker's reports of blocks that are left the wrong way. The pass's output for small functions.
# Flags that change the generated code, C++, shared libraries. Random programs. The places of yields, against a model.
weft_part(activity activity)
if(NOT weft_activities_versions)
	weft_skip(language "${weft_without_activities}")
	return()
endif()

foreach(version IN LISTS weft_activities_versions)
	find_program(WEFT_CLANG_${version} clang-${version})
	if(NOT WEFT_CLANG_${version})
		weft_skip(language.${version} "LLVM ${version} is here, and its clang is not: apt-get install --no-install-recommends clang-${version} lld-${version}")
		continue()
	endif()
	weft_test(check.${version} COMMAND ${weft_tests}/activity/check clang-${version} SECONDS 400)
	foreach(level O0 O1 O2 O3 Os flto)
		weft_test(language.${version}.${level} COMMAND ${weft_tests}/activity/run clang-${version} -${level} SECONDS 400)
	endforeach()
endforeach()

# Other flags, by one clang. Random programs print the same with and without the pass; bugs built into it are found.
list(GET weft_activities_versions 0 version)
set(canary ${CMAKE_CURRENT_BINARY_DIR}/activity)
if(WEFT_CLANG_${version})
	weft_test(flags COMMAND ${weft_tests}/activity/flags/run clang-${version} SECONDS 300)
	set(fuzz ${weft_tests}/activity/fuzz/fuzz.py --compiler clang-${version} --work)
	weft_test(fuzz.ours COMMAND ${fuzz} fuzz.ours ours 1-1000 SECONDS 400)
	weft_test(fuzz.yields COMMAND ${weft_tests}/activity/fuzz/yields.py clang-${version} 100 SECONDS 200)
	weft_test(canary.yields COMMAND ${weft_tests}/activity/fuzz/yields.py clang-${version} 40 --model loops SECONDS 100)
	weft_test(language.loops COMMAND ${weft_tests}/activity/run clang-${version} -O2 --yields=loops SECONDS 400)
	weft_test(fuzz.csmith COMMAND ${fuzz} fuzz.csmith csmith 1-300 SECONDS 200)
	foreach(bug no_yield_yields variables_stay)
		weft_test(canary.${bug} COMMAND ${fuzz} canary.${bug} --canary ${canary} ${bug} --ways normal:every --size 50 --most 1 ours 1-200
			  SECONDS 200)
	endforeach()
else()
	foreach(name flags fuzz)
		weft_skip(${name} "LLVM ${version} is here, and its clang is not: apt-get install --no-install-recommends clang-${version} lld-${version}")
	endforeach()
endif()

# Compared as text, by one version only: other versions print different text.
find_program(WEFT_FILECHECK FileCheck-22)
find_program(WEFT_OPT NAMES opt-22)
find_program(WEFT_OPT NAMES opt PATHS ${weft_build_root}/packages/opt-22/usr/lib/llvm-22/bin NO_DEFAULT_PATH)
if(WEFT_CLANG_22 AND WEFT_FILECHECK AND WEFT_OPT)
	weft_test(ir COMMAND ${weft_tests}/activity/ir/run ${canary} ENV WEFT_OPT=${WEFT_OPT} SECONDS 300)
else()
	weft_skip(ir "clang 22 and LLVM's opt and FileCheck are needed: ./weft test --full fetches them")
endif()
