# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The programs of examples/ print what examples/expected says: by gcc and clang, without and with optimization, without a warning, on
# every policy; instrumented, on stacks of chunks; by `weft run`; those with tasks also simulated. They leave no coroutine and no memory behind, and end well where
# there is no memory for stacks.
weft_part(examples all SLOW)

set(watch ${weft_tests}/sanitize/watch.py)
set(leftovers ${weft_tests}/compat/leftovers.c)
file(GLOB sources CONFIGURE_DEPENDS ${weft_root}/examples/*.c ${weft_root}/examples/*.cpp)
weft_sanitizer_works(leaks_are_found gcc leak)
if(NOT leaks_are_found)
	weft_skip(leaks "gcc -fsanitize=leak does not work here: apt-get install liblsan0, and allow ptrace")
endif()

foreach(source IN LISTS sources)
	get_filename_component(name ${source} NAME_WE)
	set(standard -std=gnu11)
	if(source MATCHES "[.]cpp$")
		set(standard -std=c++20)
	endif()
	foreach(compiler IN LISTS weft_compilers)
		foreach(level O0 O2)
			weft_object(object gcc ${leftovers})
			weft_program(${name}.${level} ${compiler} SOURCES ${source} OBJECTS ${object} FLAGS ${standard} -${level} -Wall -Wextra -Werror)
			weft_test(${name}.${level}.${compiler} COMMAND ${watch} peace ${source} @${name}.${level}.${compiler} ON ${weft_policies} copy)
		endforeach()
	endforeach()
	foreach(kind segmented mmu lookahead)
		weft_linked(${name} ${kind} gcc SOURCES ${source} FLAGS ${standard} -O2 LINK -lstdc++)
		weft_test(${name}.${kind} COMMAND ${watch} peace ${source} @${name}.${kind}.gcc ON ${kind}:8K)
	endforeach()
	# Tasks: also in orders that seeds decide, with time that stands while a task can run. Child processes are real, and know
	# nothing of such time.
	file(READ ${source} text)
	if(text MATCHES "weft_rt_run|weft::run" AND NOT text MATCHES "weft_spawn_process")
		weft_test(${name}.simulated COMMAND ${watch} simulated 20 ${source} @${name}.O2.gcc)
	endif()
	if(leaks_are_found)
		weft_program(${name}.leak gcc SOURCES ${source} ${leftovers} FLAGS ${standard} -O1 -fsanitize=leak)
		weft_test(${name}.leak COMMAND ${watch} peace ${source} @${name}.leak.gcc)
	endif()
	weft_program(${name} gcc SOURCES ${source} FLAGS ${standard})
	weft_test(${name}.without-memory COMMAND ${watch} cramped ${source} @${name}.gcc)
	foreach(policy ${weft_policies} copy)
		weft_test(${name}.weft-run.${policy} COMMAND ${watch} peace ${source} ${weft_root}/weft run --policy ${policy} ${standard} ${source}
			NEEDS ${weft_cc})
	endforeach()
endforeach()

# Other output, a coroutine that is not given back, and a crash after the right output are noticed.
set(state ${weft_root}/examples/state.c)
weft_program(crashes gcc SOURCES mistakes.c FLAGS -DCRASHES)
weft_program(greedy gcc SOURCES ${weft_root}/examples/philosophers.c FLAGS -DGREEDY)
weft_program(patient gcc SOURCES ${weft_root}/examples/chat.c FLAGS -DPATIENCE=WEFT_NEVER)
weft_program(forgets gcc SOURCES mistakes.c ${leftovers})
weft_test(canary.output COMMAND ${watch} peace ${state} @tally.gcc FAILS SAYS "printed that, and not")
weft_test(canary.simulated COMMAND ${watch} simulated 2 ${weft_root}/examples/philosophers.c @greedy.gcc FAILS SAYS "deadlock, simulated with seed")
weft_test(canary.slow-client COMMAND ${watch} simulated 2 ${weft_root}/examples/chat.c @patient.gcc FAILS SAYS "deadlock, simulated with seed")
weft_test(canary.leftovers COMMAND ${watch} peace ${state} @forgets.gcc FAILS SAYS "coroutines were not given back.*ended with 99")
weft_test(canary.crash COMMAND ${watch} peace ${state} @crashes.gcc FAILS SAYS "ended with -6")
