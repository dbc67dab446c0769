# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The programs of examples/activities print the text in examples/activities/expected: by `weft cc --activities`, without a warning, not
# optimized and optimized, with each kind of timer, activities on one stack and on stacks of their own. On a terminal that a script plays,
# the sort answers each key while it sorts.
weft_part(activityexamples activity)
if(NOT weft_activities_versions)
	weft_skip(programs "${weft_without_activities}")
	return()
endif()

set(run ${weft_tests}/activityexamples/run)
file(
	GLOB sources
	CONFIGURE_DEPENDS ${weft_root}/examples/activities/*.c)
foreach(source IN LISTS sources)
	get_filename_component(name ${source} NAME_WE)
	foreach(level O0 O2)
		weft_test(${name}.${level} COMMAND ${run} prints ${source} -${level} SECONDS 240)
	endforeach()
endforeach()

set(examples ${weft_root}/examples/activities)
weft_test(progress.ends-early COMMAND ${run} ends-early ${examples}/progress.c -O2 SECONDS 120)
weft_test(sort.terminal COMMAND ${run} terminal ${examples}/sort.c -O2 SECONDS 120)
find_path(WEFT_NCURSES_H ncurses.h)
if(WEFT_NCURSES_H)
	weft_test(sort.curses COMMAND ${run} terminal ${examples}/sort.c -O2 -DCURSES -lncurses SECONDS 120)
else()
	weft_skip(sort.curses "there is no ncurses: apt-get install --no-install-recommends libncurses-dev")
endif()

# A map that does not yield prints something else; a sort that is atomic freezes the terminal.
weft_test(canary.prints COMMAND ${run} prints ${weft_tests}/activityexamples/wrong.c -O2 FAILS SAYS "and not what is expected")
weft_test(canary.frozen COMMAND ${run} terminal ${examples}/sort.c -O2 -DFROZEN FAILS SAYS "no answer to the key" SECONDS 120)
