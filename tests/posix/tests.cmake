# SPDX-License-Identifier: MIT OR Apache-2.0
#
# POSIX's own names: by the header and by libweft-posix.so, on both back ends, by a thread (0) and by 1 and 8 workers.
# tests/posixfull has other policies, compilers and sanitizers, and libraries of the distribution with their servers.
weft_part(posix io QUICK)

set(posix_back_ends epoll)
if(EXISTS /usr/include/liburing.h)
	list(APPEND posix_back_ends io_uring)
endif()

weft_program(posix gcc SOURCES posix.c FLAGS -Wall -Wextra)
weft_program(preloaded gcc SOURCES posix.c FLAGS -DPRELOADED)
weft_shared(weft-posix gcc SOURCES ../../tools/posix/interpose.c)
set(posix_so ${CMAKE_CURRENT_BINARY_DIR}/posix/libweft-posix.gcc.so)
# LD_PRELOAD takes no path with a blank in it, but a name that LD_LIBRARY_PATH leads to.
foreach(back_end IN LISTS posix_back_ends)
	foreach(workers 0 1 8)
		weft_test(names.${workers}.${back_end} COMMAND @posix.gcc ${workers} ENV WEFT_IO=${back_end})
		weft_test(preload.${workers}.${back_end} COMMAND @preloaded.gcc ${workers} ENV WEFT_IO=${back_end}
			  LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/posix LD_PRELOAD=libweft-posix.gcc.so NEEDS ${posix_so})
	endforeach()
endforeach()
# Locks that tasks hold while they wait. Only libc decides where all users are threads (0), or without the shared object.
weft_program(locks gcc SOURCES locks.cc FLAGS -std=c++17 -Wall -Wextra -Werror)
set(preloaded LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/posix LD_PRELOAD=libweft-posix.gcc.so NEEDS ${posix_so})
foreach(workers 0 1 2 4)
	foreach(seed 1 2 3)
		weft_test(locks.${workers}.${seed} COMMAND @locks.gcc ${workers} ${seed} 12 ENV ${preloaded} SECONDS 60)
	endforeach()
endforeach()
weft_shared(allocator gcc SOURCES allocator.c)
foreach(order "liballocator.gcc.so:libweft-posix.gcc.so" "libweft-posix.gcc.so:liballocator.gcc.so")
	string(SUBSTRING ${order} 3 1 first)
	weft_test(locks.allocator.${first} COMMAND @locks.gcc 2 1 12 ENV LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/posix LD_PRELOAD=${order}
		  NEEDS ${posix_so} ${CMAKE_CURRENT_BINARY_DIR}/posix/liballocator.gcc.so SECONDS 60)
endforeach()
weft_program(unaware gcc SOURCES locks.cc FLAGS -std=c++17 -DPATIENCE=3)
weft_test(canary.locks COMMAND @unaware.gcc 2 1 FAILS SAYS "not ok")
# -D_FORTIFY_SOURCE has functions of its own for some names.
weft_program(fortified gcc SOURCES posix.c FLAGS -D_FORTIFY_SOURCE=2)
weft_test(fortified COMMAND @fortified.gcc 2)

weft_program(moves gcc-migrate SOURCES posix.c CANARY posix_moves)
weft_test(canary.moves COMMAND @moves.gcc-migrate 8 closing FAILS SAYS "errno is")
weft_program(interrupted gcc SOURCES interrupted.c FLAGS -Wall -Wextra)
weft_program(looks_once gcc SOURCES interrupted.c CANARY posix_looks_once)
foreach(back_end IN LISTS posix_back_ends)
	weft_test(interrupted.${back_end} COMMAND @interrupted.gcc ENV WEFT_IO=${back_end})
	weft_test(canary.looks_once.${back_end} COMMAND @looks_once.gcc FAILS SAYS "not ok - .*poll" ENV WEFT_IO=${back_end})
endforeach()
weft_program(forgets gcc SOURCES posix.c CANARY closing_ends_no_waits FLAGS -DPATIENCE=3)
weft_test(canary.forgets COMMAND @forgets.gcc 2 closing FAILS SAYS "waits for ever" ENV WEFT_IO=epoll)
# A socket can always be written to. A task that waits to read must not be woken by that again and again.
weft_program(spins gcc SOURCES posix.c CANARY polls_wake_for_anything)
weft_test(spins COMMAND @posix.gcc 1 idle ENV WEFT_IO=epoll)
weft_test(canary.spins COMMAND @spins.gcc 1 idle FAILS SAYS "switches" ENV WEFT_IO=epoll)
weft_program(always gcc SOURCES posix.c CANARY posix_always_waits FLAGS -DPATIENCE=3)
weft_test(canary.always COMMAND @always.gcc 2 non_blocking FAILS SAYS "waits for ever")
