/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/posix.h: POSIX's own names for calls that suspend a task and nothing else.
 *
 *   #include <weft/posix.h>
 *
 *   n = read(fd, text, sizeof text);    a task that would block waits, and other tasks run
 *   if (n < 0)
 *           perror("read");             -1 and errno, as POSIX says
 *
 * Design
 *  1. In code that includes this header, read means weft_posix_read. Code that does not include it (a library of the
 *     distribution) gets the same functions from libweft-posix.so, which precedes libc: by LD_PRELOAD, by `weft run
 *     --posix PROGRAM`, or because the program was linked with it (weft::posix).
 *  2. Only calls by tasks change. In a thread of the program's own the call is libc's own, with the same result, errno
 *     and cancellation points. The same is true in helper threads (weft_blocking), in children of fork and vfork, and
 *     in handlers of signals that run on an alternate stack.
 *  3. A call first tries, without blocking (MSG_DONTWAIT, RWF_NOWAIT). Only if that fails with EAGAIN it checks whether
 *     the descriptor is in blocking mode. If the program has set O_NONBLOCK, the call returns -1 and EAGAIN, as POSIX
 *     says. Otherwise the task waits, by weft_poll, and tries again.
 *  4. O_NONBLOCK is never changed, except during one connect(2) call, on a socket that no other code can use yet.
 *     SO_RCVTIMEO and SO_SNDTIMEO end a wait as they would end the call. A blocking send is complete, as POSIX says.
 *  5. While a task is inside such a call it stays with its worker. So errno, and every address of a thread's variable
 *     that a compiler kept across the call, is valid after it; a task moves only between calls.
 *  6. Operations that can only block (names, other processes' file locks, a disk) run on a helper thread.
 *  7. A cancelled task gets the result -1 and ECANCELED. Nothing unwinds a library's frames: the library frees its
 *     resources, returns its own error, and the task ends at its next weft_ call.
 *  8. close, dup2 and dup3, called by any thread, end waits for the number: the waiting call returns -1 and EBADF.
 *  9. Signals do not interrupt a waiting call: no EINTR, as with SA_RESTART.
 * Targets: 100 queries of 20 ms by libpq on one thread in 40 ms, at most 120; a call that does not wait in 1.1 of
 * libc's system call, a thread's call in 1.02.
 *
 * Not changed: stdio (fread, getline: libc calls its own read), open, fcntl, sendfile, splice. libweft-posix.so changes
 * pthread's locks, but this header does not: without that library a task that wants a lock of a suspended task blocks
 * its worker. In a simulation only sleeps and yields are simulated.
 *
 * Every function may suspend its task, and may be called on any stack and by any thread. A signal handler may call the
 * functions that it may call in libc, if the handler runs on an alternate stack (weft_sigaction). A wait needs about 2
 * KiB of stack. Code for linked stacks runs these calls, and libraries, on system stacks, which a waiting task keeps.
 * Errors are those of POSIX, and
 *   ECANCELED  the task, or a scope that it has open, was cancelled
 *   EBADF      also: the descriptor was closed meanwhile
 *   ENOMEM     no memory for the runtime's record of a descriptor
 * `#define WEFT_POSIX_NO_NAMES` before the header: only the names that begin with weft_posix_.
 *
 * Source of the ideas: GNU Pth's and Photon's libraries; that a thread's variables forbid a move, Go's cgo.
 */
#ifndef WEFT_POSIX_H
#define WEFT_POSIX_H

#include <netdb.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/io.h>

#if !defined(__clang__)
#pragma GCC system_header
#endif

/* WEFT__POSIX_ALWAYS lists the functions that every program sees. The lists below it hold functions that <unistd.h> and
 * similar headers declare for some programs only. */
#define WEFT__POSIX_ALWAYS(CALL)                                                                                       \
	CALL(write)                                                                                                    \
	CALL(readv)                                                                                                    \
	CALL(writev)                                                                                                   \
	CALL(send)                                                                                                     \
	CALL(sendto)                                                                                                   \
	CALL(recvmsg)                                                                                                  \
	CALL(sendmsg)                                                                                                  \
	CALL(connect)                                                                                                  \
	CALL(accept)                                                                                                   \
	CALL(close)                                                                                                    \
	CALL(dup2)                                                                                                     \
	CALL(flock)                                                                                                    \
	CALL(select)                                                                                                   \
	CALL(epoll_wait)                                                                                               \
	CALL(epoll_pwait)                                                                                              \
	CALL(sleep)                                                                                                    \
	CALL(sched_yield)                                                                                              \
	CALL(wait)                                                                                                     \
	CALL(waitpid)                                                                                                  \
	CALL(system)                                                                                                   \
	CALL(gethostbyname)
/* libc's headers define these functions themselves for -D_FORTIFY_SOURCE. */
#define WEFT__POSIX_FORTIFIED(CALL)                                                                                    \
	CALL(read)                                                                                                     \
	CALL(recv)                                                                                                     \
	CALL(recvfrom)                                                                                                 \
	CALL(poll)
/* glibc defines __USE_… macros for the functions that it declares; with other C libraries the program's own macros
 * decide. */
#if defined(__USE_GNU) || (!defined(__GLIBC__) && defined(_GNU_SOURCE))
#define WEFT__POSIX_GNU(CALL)                                                                                          \
	CALL(recvmmsg)                                                                                                 \
	CALL(sendmmsg)                                                                                                 \
	CALL(accept4)                                                                                                  \
	CALL(dup3)
#define WEFT__POSIX_PPOLL(CALL) CALL(ppoll)
#else
#define WEFT__POSIX_GNU(CALL)
#define WEFT__POSIX_PPOLL(CALL)
#endif
#if defined(__USE_MISC) || (!defined(__GLIBC__) && (defined(_GNU_SOURCE) || defined(_BSD_SOURCE)))
#define WEFT__POSIX_MISC(CALL)                                                                                         \
	CALL(fsync)                                                                                                    \
	CALL(fdatasync)                                                                                                \
	CALL(usleep)                                                                                                   \
	CALL(wait3)                                                                                                    \
	CALL(wait4)                                                                                                    \
	CALL(gethostbyname_r)
#else
#define WEFT__POSIX_MISC(CALL)
#endif
#if defined(__USE_XOPEN2K) || !defined(__GLIBC__)
#define WEFT__POSIX_2001(CALL)                                                                                         \
	CALL(pselect)                                                                                                  \
	CALL(nanosleep)                                                                                                \
	CALL(clock_nanosleep)                                                                                          \
	CALL(waitid)                                                                                                   \
	CALL(getaddrinfo)                                                                                              \
	CALL(getnameinfo)
#else
#define WEFT__POSIX_2001(CALL)
#endif
#ifdef __GLIBC__
#define WEFT__POSIX_PWAIT2(CALL) CALL(epoll_pwait2)
#else
#define WEFT__POSIX_PWAIT2(CALL)
#endif
#define WEFT__POSIX_PLAIN(CALL)                                                                                        \
	WEFT__POSIX_ALWAYS(CALL)                                                                                       \
	WEFT__POSIX_PWAIT2(CALL) WEFT__POSIX_GNU(CALL) WEFT__POSIX_MISC(CALL) WEFT__POSIX_2001(CALL)

WEFT_EXTERN_C_BEGIN

/** weft_posix_read and so on: like the function of POSIX, but a call by a task that would block suspends the task. */
#define WEFT__POSIX_DECLARE(name) WEFT_API extern __typeof__(name) weft_posix_##name;
WEFT__POSIX_PLAIN(WEFT__POSIX_DECLARE)
WEFT__POSIX_FORTIFIED(WEFT__POSIX_DECLARE)
WEFT__POSIX_PPOLL(WEFT__POSIX_DECLARE)
#undef WEFT__POSIX_DECLARE

#ifndef WEFT_POSIX_NO_NAMES
/* The name stays, but the symbol is weft_posix_…. This also changes pointers to the function, and does not change other
 * entities of the same name, such as methods. */
#define WEFT__POSIX_NAME(name) extern __typeof__(name) name __asm__("weft_posix_" #name);
WEFT__POSIX_PLAIN(WEFT__POSIX_NAME)
#if !defined(__USE_FORTIFY_LEVEL) || __USE_FORTIFY_LEVEL == 0
WEFT__POSIX_FORTIFIED(WEFT__POSIX_NAME)
WEFT__POSIX_PPOLL(WEFT__POSIX_NAME)
#else
#define read(...) weft_posix_read(__VA_ARGS__)
#define recv(...) weft_posix_recv(__VA_ARGS__)
#define recvfrom(...) weft_posix_recvfrom(__VA_ARGS__)
#define poll(...) weft_posix_poll(__VA_ARGS__)
#define ppoll(...) weft_posix_ppoll(__VA_ARGS__)
#endif
#undef WEFT__POSIX_NAME
#endif

WEFT_EXTERN_C_END

#endif /* WEFT_POSIX_H */
