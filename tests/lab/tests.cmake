# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The lab at its smallest size: every experiment, policy and contender gives the right answer; the pages that it writes;
# its reports of wrong answers, interruptions and mistakes.
weft_part(lab tools SLOW)

# The system's Python has the lab's packages; a different Python may come first in PATH.
set(python /usr/bin/python3)
if(NOT EXISTS ${python})
	set(python ${Python3_EXECUTABLE})
endif()

# lab(NAME SETS_UP NEEDS [BY SCRIPT]): two labs at once would build the same programs.
function(lab name sets_up needs)
	cmake_parse_arguments(PARSE_ARGV 3 the "" "BY" "")
	if(NOT the_BY)
		set(the_BY lab.py)
	endif()
	weft_test(${name} COMMAND ${python} ${weft_tests}/lab/${the_BY} ${name} SECONDS 600)
	set_tests_properties(lab.${name} PROPERTIES RESOURCE_LOCK lab FIXTURES_REQUIRED "${needs}")
	if(sets_up)
		set_tests_properties(lab.${name} PROPERTIES FIXTURES_SETUP ${sets_up})
	endif()
endfunction()

lab(library lab.library "")
lab(everything lab.results lab.library)
foreach(name page which_policy afterwards reader costs_page judging elsewhere)
	lab(${name} "" "lab.library;lab.results")
endforeach()
foreach(name counted sizes trusted one_policy canaries uninstrumented mistakes closed offline half_built peers interruption report_interrupted)
	lab(${name} "" lab.library)
endforeach()
# Continuous load.
foreach(name intervals verdicts short leaks resumes)
	lab(${name} "" lab.library BY load.py)
endforeach()
