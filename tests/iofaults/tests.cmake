# SPDX-License-Identifier: MIT OR Apache-2.0
#
# Every system call and every ring operation fails in turn, on both back ends: the first calls of each kind, and some later ones.
# All of them, some minutes: iofaults.gcc WORKERS whole, with 1, 2 and 4 workers, and WEFT_IO.
weft_part(iofaults io QUICK)

set(iofaults_back_ends epoll)
if(EXISTS /usr/include/liburing.h)
	list(APPEND iofaults_back_ends io_uring)
endif()

# shim.c defines __wrap_NAME for each name in shim.h.
file(READ iofaults/shim.h text)
string(REGEX MATCHALL "X[(][a-z0-9_]+[)]" names "${text}")
list(TRANSFORM names REPLACE "X[(](.*)[)]" "\\1")
list(FILTER names EXCLUDE REGEX "^(ring_.*|op_.*|pthread_create|pidfd_open|wake)$")
set(wraps dlsym free realloc syscall ${names})
list(TRANSFORM wraps PREPEND -Wl,--wrap=)

weft_program(iofaults gcc SOURCES iofaults.c posix.c shim.c FLAGS -Wall -Wextra LINK ${wraps})
foreach(back_end IN LISTS iofaults_back_ends)
	foreach(workers 1 2)
		weft_test(${back_end}.${workers} COMMAND @iofaults.gcc ${workers} quick ENV WEFT_IO=${back_end} SECONDS 120)
	endforeach()
endforeach()

# Rings of two entries, which become full and overflow.
if(io_uring IN_LIST iofaults_back_ends)
	weft_program(iofaults gcc-tiny SOURCES iofaults.c posix.c shim.c LINK ${wraps})
	foreach(workers 1 2)
		weft_test(tiny.${workers} COMMAND @iofaults.gcc-tiny ${workers} quick ENV WEFT_IO=io_uring SECONDS 120)
	endforeach()
endif()

# iofaults_canary(NAME BACK_END SCENARIO CALL SAYS): a bug that the harness must find.
function(iofaults_canary name back_end scenario call says)
	weft_program(${name} gcc SOURCES iofaults.c posix.c shim.c CANARY ${name} FLAGS -DPATIENCE=3 LINK ${wraps})
	weft_test(canary.${name} COMMAND @${name}.gcc 1 quick ${scenario} ${call} ENV WEFT_IO=${back_end} FAILS SAYS "${says}")
endfunction()
iofaults_canary(shed_connections_stay epoll tcp accept4 "EMFILE: descriptors left: 1")
iofaults_canary(failed_loops_stay epoll pipes epoll_create1 "blocks of memory left:")
if(io_uring IN_LIST iofaults_back_ends)
	iofaults_canary(ring_forgets_what_was_not_taken io_uring tcp ring_enter "hangs")
endif()

# ---- a kernel that refuses system calls ----

weft_program(refuse gcc SOURCES refuse.c FLAGS -Wall -Wextra BARE)
weft_program(backend gcc SOURCES backend.c)
weft_program(io gcc SOURCES ../io/io.c)
# refused(CALL ERRNO BACK_END): the program works with this back end; if it requested io_uring, it prints once why that
# is not used.
function(refused call error back_end)
	weft_test(refused.${call}.${error} COMMAND @refuse.gcc ${call} ${error} @backend.gcc SAYS "^back end ${back_end}.?$" ENDS 0|77)
	weft_test(refused.${call}.${error}.io COMMAND @refuse.gcc ${call} ${error} @io.gcc 2 ENDS 0|77 SECONDS 120)
	if(call MATCHES "^io_uring_(setup|enter)$")
		weft_test(refused.${call}.${error}.wanted COMMAND @refuse.gcc ${call} ${error} @backend.gcc ENV WEFT_IO=io_uring ENDS 0|77
			  SAYS "^weft: WEFT_IO=io_uring: no ring can be made: [^\n]*. using epoll\nback end epoll.?$")
	endif()
endfunction()
foreach(error EPERM ENOSYS)
	if(io_uring IN_LIST iofaults_back_ends)
		refused(io_uring_setup ${error} epoll)
		refused(io_uring_enter ${error} epoll)
		refused(io_uring_register ${error} io_uring)
	endif()
	weft_test(refused.epoll_pwait2.${error} COMMAND @refuse.gcc epoll_pwait2 ${error} @io.gcc 2 ENV WEFT_IO=epoll ENDS 0|77 SECONDS 120)
	weft_test(refused.preadv2.${error} COMMAND @refuse.gcc preadv2 ${error} @io.gcc 2 files ENV WEFT_IO=epoll ENDS 0|77)
endforeach()
weft_test(wrong-name COMMAND @backend.gcc ENV WEFT_IO=kqueue SAYS "WEFT_IO=kqueue: there is only epoll and io_uring. using (io_uring.*back end io_uring|epoll.*back end epoll)")
if(io_uring IN_LIST iofaults_back_ends)
	weft_program(rings_are_not_tried gcc SOURCES backend.c CANARY rings_are_not_tried)
	weft_test(canary.rings_are_not_tried COMMAND timeout 5 @refuse.gcc io_uring_enter EPERM @rings_are_not_tried.gcc ENDS 124|77)
endif()

# Valgrind does not see the memory that a ring writes, and 3.19 hangs in it: a program that was built without valgrind's header must
# avoid rings, too.
if(WEFT_VALGRIND)
	weft_test(valgrind COMMAND timeout -s KILL 100 ${WEFT_VALGRIND} -q @backend.gcc SAYS "back end epoll" SECONDS 120)
	weft_test(valgrind.wanted COMMAND timeout -s KILL 100 ${WEFT_VALGRIND} -q @backend.gcc ENV WEFT_IO=io_uring
		  SAYS "weft: WEFT_IO=io_uring: valgrind does not see[^\n]*. using epoll" SECONDS 120)
else()
	weft_skip(valgrind "not installed: apt-get install --no-install-recommends valgrind")
endif()
