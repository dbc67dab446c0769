# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Input and output on both back ends: by a thread (0), by 1, 2 and 8 workers. tests/iofull has the same on every policy, under
# sanitizers, with tasks that move at every step, by clang.
weft_part(io io QUICK)

weft_program(io gcc SOURCES io.c FLAGS -Wall -Wextra)
weft_program(owners gcc SOURCES owners.c FLAGS -Wall -Wextra)
weft_program(reused gcc SOURCES reused.c FLAGS -Wall -Wextra)
weft_test(reused.epoll COMMAND @reused.gcc ENV WEFT_IO=epoll)
weft_program(differs gcc SOURCES differs.c FLAGS -Wall -Wextra)
# 10^5 rounds are run by hand: see docs/reference/io.md.
weft_test(differs.threads COMMAND @differs.gcc 0 0 150)
weft_test(differs.epoll COMMAND @differs.gcc 1 1000 200 ENV WEFT_IO=epoll)
# A receive from the error queue between the data and their reader.
weft_test(differs.errors COMMAND @differs.gcc 1 1072352 1 ENV WEFT_IO=epoll)
# A reset arrives while a receive with MSG_WAITALL has some bytes: the next receive reports it.
weft_test(differs.reset COMMAND @differs.gcc 1 1045877 1 ENV WEFT_IO=epoll)
weft_test(differs.posix.reset COMMAND @differs.gcc 1 1045877 1 posix ENV WEFT_IO=epoll)
weft_test(differs.simulated.reset COMMAND @differs.gcc 1 1045877 1 simulated)
weft_test(differs.posix.epoll COMMAND @differs.gcc 1 3000 150 posix ENV WEFT_IO=epoll)
weft_test(differs.simulated COMMAND @differs.gcc 1 5000 250 simulated)
foreach(workers 1 3)
	weft_test(owners.${workers}.epoll COMMAND @owners.gcc ${workers} 0 100 ENV WEFT_IO=epoll)
endforeach()
foreach(workers 0 1 2 8)
	weft_test(io.${workers}.epoll COMMAND @io.gcc ${workers} ENV WEFT_IO=epoll)
endforeach()
if(EXISTS /usr/include/liburing.h)
	weft_test(reused.io_uring COMMAND @reused.gcc ENV WEFT_IO=io_uring)
	weft_test(differs.io_uring COMMAND @differs.gcc 1 2000 200 ENV WEFT_IO=io_uring)
	weft_test(differs.posix.io_uring COMMAND @differs.gcc 1 4000 50 posix ENV WEFT_IO=io_uring)
	foreach(workers 1 3)
		weft_test(owners.${workers}.io_uring COMMAND @owners.gcc ${workers} 0 100 ENV WEFT_IO=io_uring)
	endforeach()
	foreach(workers 1 2 8)
		weft_test(io.${workers}.io_uring COMMAND @io.gcc ${workers} ENV WEFT_IO=io_uring)
	endforeach()
	# If an operation ended for its task before the kernel has finished with it, it would take bytes that
	# no task receives.
	weft_program(takes_back_what_the_kernel_has gcc SOURCES io.c CANARY takes_back_what_the_kernel_has)
	weft_test(canary.takes_back_what_the_kernel_has COMMAND @takes_back_what_the_kernel_has.gcc 1 every_byte_arrives
		  ENV WEFT_IO=io_uring IO_CANCELS=200000 FAILS SAYS "number == n->received")
	# A sleeping worker must be woken when a ring has work for an occupied worker; looking now and then is
	# not enough.
	weft_program(nobody_looks_again gcc SOURCES io.c CANARY nobody_looks_again)
	weft_program(nobody_looks_or_tells gcc SOURCES io.c CANARY nobody_looks_or_tells)
	weft_test(heard COMMAND @nobody_looks_again.gcc 2 a_held_worker_is_heard ENV WEFT_IO=io_uring)
	weft_test(canary.nobody_looks_or_tells COMMAND @nobody_looks_or_tells.gcc 2 a_held_worker_is_heard
		  ENV WEFT_IO=io_uring FAILS SAYS "not ok - .*weft_read_until")
else()
	weft_skip(io.io_uring "liburing.h is missing: apt-get install --no-install-recommends liburing-dev")
endif()

# Readiness and task ends as cases of weft_select.
weft_program(select gcc SOURCES select.c FLAGS -Wall -Wextra)
weft_test(select.simulated COMMAND @select.gcc 0 300)
foreach(workers 1 2 8)
	weft_test(select.${workers}.epoll COMMAND @select.gcc ${workers} 30 ENV WEFT_IO=epoll)
	if(EXISTS /usr/include/liburing.h)
		weft_test(select.${workers}.io_uring COMMAND @select.gcc ${workers} 30 ENV WEFT_IO=io_uring)
	endif()
endforeach()

# A waiting task on a small stack has one chunk.
weft_linked(shallow segmented gcc SOURCES shallow.c FLAGS -O2)
weft_test(shallow.epoll COMMAND @shallow.segmented.gcc 1 ENV WEFT_IO=epoll)
if(EXISTS /usr/include/liburing.h)
	weft_test(shallow.io_uring COMMAND @shallow.segmented.gcc 1 ENV WEFT_IO=io_uring)
endif()

# Runtimes of weft_rt_open.
weft_program(embedded gcc SOURCES embedded.c FLAGS -Wall -Wextra)
weft_test(embedded COMMAND @embedded.gcc)
if(EXISTS /usr/include/liburing.h)
	weft_test(embedded.io_uring COMMAND @embedded.gcc ENV WEFT_IO=io_uring)
	weft_program(a_ring_may_interrupt gcc SOURCES embedded.c CANARY a_ring_may_interrupt)
	weft_test(canary.a_ring_may_interrupt COMMAND @a_ring_may_interrupt.gcc FAILS SAYS "not ok - .*(weft_io_backend|readable)")
endif()

# Names: resolved by c-ares with a server that the test starts; by getaddrinfo; and without a libcares that
# can be loaded.
weft_program(dns gcc SOURCES dns.c FLAGS -Wall -Wextra)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/io/absent/libcares.so.2 "")
set(without_ares LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/io/absent)
weft_test(dns.libc COMMAND @dns.gcc 2 libc ENV WEFT_DNS=libc)
weft_test(dns.fallback COMMAND @dns.gcc 2 libc ENV ${without_ares})
weft_test(dns.absent COMMAND @dns.gcc 2 absent ENV WEFT_DNS=ares ${without_ares})
find_path(WEFT_ARES_H ares.h)
if(WEFT_ARES_H)
	weft_test(dns.thread COMMAND @dns.gcc 0 ENV WEFT_DNS=ares)
	weft_program(resolve_waits_for_ever gcc SOURCES dns.c CANARY resolve_waits_for_ever)
	weft_program(resolve_keeps_sockets gcc SOURCES dns.c CANARY resolve_keeps_sockets)
	weft_test(canary.resolve_waits_for_ever COMMAND timeout 5 @resolve_waits_for_ever.gcc 2 a_lost_packet FAILS SAYS "^$")
	weft_test(canary.resolve_keeps_sockets COMMAND @resolve_keeps_sockets.gcc 2 cancelled ENDS 0 SAYS "not ok - cancelled: descriptors are left")
else()
	weft_skip(dns.ares "ares.h is missing: apt-get install --no-install-recommends libc-ares-dev")
endif()

# weft/io.hpp.
foreach(compiler IN LISTS weft_compilers)
	set(standard c++17)
	if(compiler STREQUAL clang)
		set(standard c++20)
	endif()
	weft_program(cpp ${compiler} SOURCES cpp.cc FLAGS -std=${standard} -Wall -Wextra -Werror)
	weft_test(cpp.0.${compiler} COMMAND @cpp.${compiler} 0)
	weft_test(cpp.simulated.${compiler} COMMAND @cpp.${compiler} simulate 20)
	foreach(workers 1 2 8)
		weft_test(cpp.${workers}.epoll.${compiler} COMMAND @cpp.${compiler} ${workers} ENV WEFT_IO=epoll)
		if(EXISTS /usr/include/liburing.h)
			weft_test(cpp.${workers}.io_uring.${compiler} COMMAND @cpp.${compiler} ${workers} ENV WEFT_IO=io_uring)
		endif()
	endforeach()
endforeach()
foreach(canary_and_test "watch_drops_changes beside_a_scan" "timeouts_take_bytes beside_getline")
	separate_arguments(words UNIX_COMMAND ${canary_and_test})
	list(GET words 0 canary)
	list(GET words 1 test)
	weft_program(${canary} gcc SOURCES cpp.cc FLAGS -std=c++17 CANARY ${canary})
	weft_test(canary.${canary} COMMAND @${canary}.gcc 2 ${test} FAILS SAYS "not ok - ")
endforeach()

# Paths, and the files that weft_listen replaces.
weft_program(paths gcc SOURCES paths.c FLAGS -Wall -Wextra)
weft_test(paths.0 COMMAND @paths.gcc 0)
weft_test(paths.simulated COMMAND @paths.gcc simulate 20)

# Signals, descriptors and limits of the process and its children.
weft_program(surroundings gcc SOURCES surroundings.c FLAGS -Wall -Wextra)
weft_test(surroundings.0 COMMAND @surroundings.gcc 0)

# Child processes; "old": on a kernel without pidfd_open.
weft_program(children gcc SOURCES children.c FLAGS -Wall -Wextra)
weft_program(children_get_nonblocking gcc SOURCES children.c CANARY children_get_nonblocking)
weft_program(nothing_but_pidfd gcc SOURCES children.c CANARY nothing_but_pidfd)
foreach(program pipes sockets)
	weft_test(canary.children_get_nonblocking.${program} COMMAND @children_get_nonblocking.gcc 2 ${program} ENV WEFT_IO=epoll FAILS SAYS "not ok - ")
endforeach()
weft_test(canary.nothing_but_pidfd COMMAND @nothing_but_pidfd.gcc 2 old ends ENDS 77|134 SAYS "skip - |not ok - ")

# A static library adds src/io only to programs that need it: by a call, or for libweft-posix.so.
weft_archive(weft gcc)
set(archive ${CMAKE_CURRENT_BINARY_DIR}/io/weft.gcc.a)
set(link ${weft_gcc} -std=gnu11 -I${weft_root}/include ${weft_tests}/io/tasks_only.c)
foreach(kind "out 0" "call 1 -DWITH_IO" "asked 1 -Wl,-u,weft__posix_begin")
	separate_arguments(kind)
	list(POP_FRONT kind name has)
	set(program ${CMAKE_CURRENT_BINARY_DIR}/io/tasks_only.${name})
	weft_test(left.${name} COMMAND sh -c
		  "\"$@\" && \"$0\" && nm \"$0\" >\"$0.names\" && echo $(grep -cx \".* [Tt] weft__posix_begin\" \"$0.names\") in it" ${program} ${link} ${kind} ${archive} -pthread
		  -o ${program} ENDS 0 SAYS "^${has} in it" NEEDS ${archive})
endforeach()

# A program for libseff's sockets; in C++ too.
weft_program(net gcc SOURCES net.c FLAGS -Wall -Wextra -Werror -I${weft_root}/include/compat)
weft_object(object gcc net.c -Wall -Wextra -Werror -I${weft_root}/include/compat -x c++ -std=gnu++17)
weft_program(net.cxx gcc OBJECTS ${object} LINK -lstdc++)
weft_program(net_sends_a_part gcc SOURCES net.c FLAGS -I${weft_root}/include/compat CANARY net_sends_a_part)
set(net_back_ends epoll)
if(EXISTS /usr/include/liburing.h)
	list(APPEND net_back_ends io_uring)
endif()
foreach(back_end IN LISTS net_back_ends)
	foreach(workers 1 2 8)
		weft_test(children.${workers}.${back_end} COMMAND @children.gcc ${workers} ENV WEFT_IO=${back_end})
		weft_test(children.old.${workers}.${back_end} COMMAND @children.gcc ${workers} old ENV WEFT_IO=${back_end})
		if(WEFT_ARES_H)
			weft_test(dns.${workers}.${back_end} COMMAND @dns.gcc ${workers} ENV WEFT_DNS=ares WEFT_IO=${back_end})
		endif()
		weft_test(net.${workers}.${back_end} COMMAND @net.gcc ${workers} ENV WEFT_IO=${back_end})
	endforeach()
	weft_test(paths.2.${back_end} COMMAND @paths.gcc 2 ENV WEFT_IO=${back_end})
	weft_test(surroundings.2.${back_end} COMMAND @surroundings.gcc 2 ENV WEFT_IO=${back_end})
	weft_test(net.cxx.${back_end} COMMAND @net.cxx.gcc 2 ENV WEFT_IO=${back_end})
	weft_test(canary.net_sends_a_part.${back_end} COMMAND @net_sends_a_part.gcc 2 ENV WEFT_IO=${back_end} FAILS SAYS "not ok - ")
endforeach()
