# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The language of activities: the same programs by each clang that is here, at each level, on each kind of timer, with frames that are
# copied and with stacks of their own. What the checker says of blocks that are left the wrong way.
if(NOT weft_activities_versions)
	return()
endif()
weft_part(activity activity)

foreach(version IN LISTS weft_activities_versions)
	find_program(WEFT_CLANG_${version} clang-${version})
	if(NOT WEFT_CLANG_${version})
		continue()
	endif()
	weft_test(check.${version} COMMAND ${weft_tests}/activity/check clang-${version} SECONDS 400)
	foreach(level O0 O1 O2 O3 Os flto)
		weft_test(language.${version}.${level} COMMAND ${weft_tests}/activity/run clang-${version} -${level} SECONDS 400)
	endforeach()
endforeach()
