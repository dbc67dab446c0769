# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The simulated world of I/O: sockets, pipes, files, and what goes wrong with them, under many seeds, each of which repeats exactly.
weft_part(iosim io QUICK)

weft_program(sim gcc SOURCES sim.c FLAGS -Wall -Wextra)
weft_test(sim COMMAND @sim.gcc 60 SECONDS 120)
weft_test(sim.proxy COMMAND @sim.gcc 1000 proxy SECONDS 120)
weft_sanitizer_works(works gcc address,undefined)
if(works)
	weft_program(sim gcc-asan SOURCES sim.c)
	weft_test(sim.asan COMMAND @sim.gcc-asan 20 SECONDS 120)
else()
	weft_skip(sim.asan "gcc has no such run time here: apt-get install libasan8")
endif()

# Bugs of the world itself.
foreach(canary_and_test "sim_short_write_is_whole echo_server" "sim_sync_keeps_nothing crashes")
	separate_arguments(words UNIX_COMMAND ${canary_and_test})
	list(GET words 0 canary)
	list(GET words 1 test)
	weft_program(${canary} gcc SOURCES sim.c CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 100 ${test} FAILS SAYS "not ok - ")
endforeach()
