/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Makes system calls and ring operations fail. The program is linked with -Wl,--wrap=NAME for each call below, so that
 * the calls of src/io and of the test reach shim.c. liburing is reached by dlsym, which is wrapped too: the shim
 * changes entries of the submission queue before the kernel takes them.
 *
 * One fault is planned at a time: the n-th call of a kind fails once, with an errno, or does only a part of its work.
 */
#ifndef WEFT_TESTS_IOFAULTS_SHIM_H
#define WEFT_TESTS_IOFAULTS_SHIM_H

#include <stdbool.h>

/* The calls that fail. -Wl,--wrap needs the same names, which tests.cmake reads here. */
#define CALLS(X)                                                                                                       \
	X(accept4)                                                                                                     \
	X(aligned_alloc)                                                                                               \
	X(bind)                                                                                                        \
	X(calloc)                                                                                                      \
	X(close)                                                                                                       \
	X(connect)                                                                                                     \
	X(dlopen)                                                                                                      \
	X(dup3)                                                                                                        \
	X(epoll_create1)                                                                                               \
	X(epoll_ctl)                                                                                                   \
	X(epoll_pwait2)                                                                                                \
	X(epoll_wait)                                                                                                  \
	X(eventfd)                                                                                                     \
	X(fdatasync)                                                                                                   \
	X(fstat)                                                                                                       \
	X(fstatat)                                                                                                     \
	X(fsync)                                                                                                       \
	X(getaddrinfo)                                                                                                 \
	X(getsockname)                                                                                                 \
	X(getsockopt)                                                                                                  \
	X(inotify_add_watch)                                                                                           \
	X(inotify_init1)                                                                                               \
	X(listen)                                                                                                      \
	X(malloc)                                                                                                      \
	X(open)                                                                                                        \
	X(openat)                                                                                                      \
	X(pipe2)                                                                                                       \
	X(poll)                                                                                                        \
	X(posix_spawn_file_actions_init)                                                                               \
	X(posix_spawnattr_init)                                                                                        \
	X(posix_spawnp)                                                                                                \
	X(pread)                                                                                                       \
	X(preadv2)                                                                                                     \
	X(pwrite)                                                                                                      \
	X(pwritev2)                                                                                                    \
	X(read)                                                                                                        \
	X(recv)                                                                                                        \
	X(recvmmsg)                                                                                                    \
	X(recvmsg)                                                                                                     \
	X(send)                                                                                                        \
	X(sendfile)                                                                                                    \
	X(sendmmsg)                                                                                                    \
	X(sendmsg)                                                                                                     \
	X(setsockopt)                                                                                                  \
	X(shutdown)                                                                                                    \
	X(sigaction)                                                                                                   \
	X(signalfd)                                                                                                    \
	X(socket)                                                                                                      \
	X(socketpair)                                                                                                  \
	X(splice)                                                                                                      \
	X(waitpid)                                                                                                     \
	X(write)

/* Replaces functions of libc. By `syscall`: calls that create a pidfd, and wake-ups by eventfds. Of a ring: creating
 * it, registering its descriptor, entering the kernel; and operations by their kind. */
#define OTHER_CALLS(X)                                                                                                 \
	X(pthread_create)                                                                                              \
	X(pidfd_open)                                                                                                  \
	X(wake)                                                                                                        \
	X(ring_init)                                                                                                   \
	X(ring_register)                                                                                               \
	X(ring_enter)                                                                                                  \
	X(op_read)                                                                                                     \
	X(op_write)                                                                                                    \
	X(op_recv)                                                                                                     \
	X(op_send)                                                                                                     \
	X(op_recvmsg)                                                                                                  \
	X(op_sendmsg)                                                                                                  \
	X(op_accept)                                                                                                   \
	X(op_connect)                                                                                                  \
	X(op_poll)                                                                                                     \
	X(op_splice)                                                                                                   \
	X(op_open)                                                                                                     \
	X(op_allocate)                                                                                                 \
	X(op_sync)

enum call {
#define CALL(name) call_##name,
	CALLS(CALL) OTHER_CALLS(CALL)
#undef CALL
	    CALLS_END
};

enum { LESS = -1 /* in place of an errno: the call does half of its work */ };

struct fault {
	enum call call;
	unsigned nth;
	int error;
};

/* Plans a fault from now on. NULL: no fault, only count the calls. */
void shim_plan(const struct fault *fault);
/* Ends the faults. Returns true if the planned fault occurred. */
bool shim_end(void);
unsigned shim_count(enum call call); /* calls since shim_plan */
const char *shim_name(enum call call);
/* Number of memory blocks that the program has allocated. */
long shim_blocks(void);

/* How often a ring was entered while its completion queue had overflown. */
unsigned shim_overflows(void);

#endif
