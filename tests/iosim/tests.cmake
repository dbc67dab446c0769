# SPDX-License-Identifier: MIT OR Apache-2.0
#
# The simulated world of I/O: sockets, pipes, files, and their failures, under many seeds, each of which repeats exactly.
weft_part(iosim io QUICK)

weft_program(sim gcc SOURCES sim.c FLAGS -Wall -Wextra)
weft_test(sim COMMAND @sim.gcc 60 SECONDS 120)
weft_test(sim.proxy COMMAND @sim.gcc 1000 proxy SECONDS 120)
weft_sanitizer_works(works gcc address,undefined)
if(works)
	weft_program(sim gcc-asan SOURCES sim.c)
	weft_test(sim.asan COMMAND @sim.gcc-asan 20 SECONDS 120)
else()
	weft_skip(sim.asan "gcc has no such run time here: apt-get install --no-install-recommends libasan8")
endif()

# Changes of files, compared with the events of the kernel's inotify. By hand 10^4: watch.gcc 0 10000.
weft_program(watch gcc SOURCES watch.c FLAGS -Wall -Wextra)
weft_test(watch COMMAND @watch.gcc 0 400 SECONDS 120)
if(works)
	weft_program(watch gcc-asan SOURCES watch.c)
	weft_test(watch.asan COMMAND @watch.gcc-asan 1000 100 SECONDS 120)
endif()
weft_program(watchers_merge_nothing gcc SOURCES watch.c CANARY watchers_merge_nothing)
weft_test(canary.watchers_merge_nothing COMMAND @watchers_merge_nothing.gcc 0 400 FAILS SAYS "not ok - seed")

# Requests for memory that are refused.
set(refusing -ldl)
foreach(name malloc calloc realloc aligned_alloc free mmap mprotect open_memstream timerfd_create)
	list(APPEND refusing -Wl,--wrap=${name})
endforeach()
weft_program(refuse gcc SOURCES refuse.c FLAGS -Wall -Wextra LINK ${refusing})
weft_test(refuse COMMAND @refuse.gcc SECONDS 200)
weft_program(failed_worlds_leak gcc SOURCES refuse.c LINK ${refusing} CANARY failed_worlds_leak)
weft_test(canary.failed_worlds_leak COMMAND @failed_worlds_leak.gcc FAILS SAYS "not ok - .*blocks")

# Examples with I/O, as they are, in a thousand worlds each. By hand 10^5: WEFT_SIMULATE=0+100000.
foreach(example echo proxy chat)
	weft_program(${example} gcc SOURCES ${weft_root}/examples/${example}.c)
	weft_test(${example} COMMAND @${example}.gcc ENV WEFT_SIMULATE=0+1000 SECONDS 120)
endforeach()

# A program's mistakes are found by the default number of seeds, and none where there is none.
weft_program(kv gcc SOURCES ${weft_root}/examples/kv.c FLAGS -Wall -Wextra)
weft_test(kv.right COMMAND @kv.gcc right SECONDS 120)
foreach(bug "lost-write wrote [0-9] and read [0-9]" "split-brain wrote [0-9] and read [0-9]" "wrong-reply got the reply to request [0-9]+ in place of [0-9]+")
	string(REGEX MATCH "^[^ ]*" name ${bug})
	string(REPLACE "${name} " "" says ${bug})
	weft_test(kv.${name} COMMAND @kv.gcc ${name} ENDS 0 SAYS "client [12] ${says}.weft: seed [0-9]+ fails: Bad message.*a seed fails")
endforeach()

# Bugs of the world itself.
foreach(canary_and_test "sim_short_write_is_whole echo_server" "sim_sync_keeps_nothing crashes" "killed_processes_exit killed"
					   "signals_wake_nobody own_signals")
	separate_arguments(words UNIX_COMMAND ${canary_and_test})
	list(GET words 0 canary)
	list(GET words 1 test)
	weft_program(${canary} gcc SOURCES sim.c CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 100 ${test} FAILS SAYS "not ok - ")
endforeach()
