/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * POSIX calls that tasks make under their own names: one list, which generates the functions of weft/posix.h, the table
 * of libc's functions, and the functions that libweft-posix.so interposes.
 *
 * A runtime and libweft-posix.so meet at run time, whichever way the program was linked: when the runtime's code is
 * loaded it looks for `weft__posix_meet`, which only the shared object has, and passes it a struct weft__posix.
 */
#ifndef WEFT_SRC_IO_POSIX_CALLS_H
#define WEFT_SRC_IO_POSIX_CALLS_H

#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* The type of the flags of recvmmsg and sendmmsg in the C library. */
#ifdef __GLIBC__
typedef int weft__mmsg_flags;
#else
typedef unsigned weft__mmsg_flags;
#endif

/* CALL(result, name, parameters, arguments). */
#define WEFT__POSIX_WAITING(CALL)                                                                                      \
	CALL(ssize_t, read, (int fd, void *data, size_t length), (fd, data, length))                                   \
	CALL(ssize_t, write, (int fd, const void *data, size_t length), (fd, data, length))                            \
	CALL(ssize_t, readv, (int fd, const struct iovec *parts, int count), (fd, parts, count))                       \
	CALL(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))                      \
	CALL(ssize_t, recv, (int fd, void *data, size_t length, int flags), (fd, data, length, flags))                 \
	CALL(ssize_t, send, (int fd, const void *data, size_t length, int flags), (fd, data, length, flags))           \
	CALL(ssize_t, recvfrom,                                                                                        \
	     (int fd, void *data, size_t length, int flags, struct sockaddr *from, socklen_t *size),                   \
	     (fd, data, length, flags, from, size))                                                                    \
	CALL(ssize_t, sendto,                                                                                          \
	     (int fd, const void *data, size_t length, int flags, const struct sockaddr *to, socklen_t size),          \
	     (fd, data, length, flags, to, size))                                                                      \
	CALL(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))                      \
	CALL(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))                \
	CALL(int, recvmmsg,                                                                                            \
	     (int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags, struct timespec *timeout),     \
	     (fd, messages, count, flags, timeout))                                                                    \
	CALL(int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, weft__mmsg_flags flags),                \
	     (fd, messages, count, flags))                                                                             \
	CALL(int, connect, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))                        \
	CALL(int, accept, (int fd, struct sockaddr *from, socklen_t *size), (fd, from, size))                          \
	CALL(int, accept4, (int fd, struct sockaddr *from, socklen_t *size, int flags), (fd, from, size, flags))       \
	CALL(int, fsync, (int fd), (fd))                                                                               \
	CALL(int, fdatasync, (int fd), (fd))                                                                           \
	CALL(int, flock, (int fd, int operation), (fd, operation))                                                     \
	CALL(int, poll, (struct pollfd * fds, nfds_t count, int timeout), (fds, count, timeout))                       \
	CALL(int, ppoll, (struct pollfd * fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask),    \
	     (fds, count, timeout, mask))                                                                              \
	CALL(int, select, (int count, fd_set *in, fd_set *out, fd_set *except, struct timeval *timeout),               \
	     (count, in, out, except, timeout))                                                                        \
	CALL(int, pselect,                                                                                             \
	     (int count, fd_set *in, fd_set *out, fd_set *except, const struct timespec *timeout,                      \
	      const sigset_t *mask),                                                                                   \
	     (count, in, out, except, timeout, mask))                                                                  \
	CALL(int, epoll_wait, (int fd, struct epoll_event *events, int most, int timeout),                             \
	     (fd, events, most, timeout))                                                                              \
	CALL(int, epoll_pwait, (int fd, struct epoll_event *events, int most, int timeout, const sigset_t *mask),      \
	     (fd, events, most, timeout, mask))                                                                        \
	CALL(int, epoll_pwait2,                                                                                        \
	     (int fd, struct epoll_event *events, int most, const struct timespec *timeout, const sigset_t *mask),     \
	     (fd, events, most, timeout, mask))                                                                        \
	CALL(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))                       \
	CALL(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),   \
	     (clock, flags, time, left))                                                                               \
	CALL(int, usleep, (useconds_t microseconds), (microseconds))                                                   \
	CALL(unsigned, sleep, (unsigned seconds), (seconds))                                                           \
	CALL(int, sched_yield, (void), ())                                                                             \
	CALL(pid_t, wait, (int *status), (status))                                                                     \
	CALL(pid_t, waitpid, (pid_t process, int *status, int options), (process, status, options))                    \
	CALL(pid_t, wait3, (int *status, int options, struct rusage *usage), (status, options, usage))                 \
	CALL(pid_t, wait4, (pid_t process, int *status, int options, struct rusage *usage),                            \
	     (process, status, options, usage))                                                                        \
	CALL(int, waitid, (idtype_t type, id_t id, siginfo_t * info, int options), (type, id, info, options))          \
	CALL(int, system, (const char *command), (command))                                                            \
	CALL(int, getaddrinfo,                                                                                         \
	     (const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list),            \
	     (name, service, hints, list))                                                                             \
	CALL(int, getnameinfo,                                                                                         \
	     (const struct sockaddr *address, socklen_t size, char *name, socklen_t name_size, char *service,          \
	      socklen_t service_size, int flags),                                                                      \
	     (address, size, name, name_size, service, service_size, flags))                                           \
	CALL(struct hostent *, gethostbyname, (const char *name), (name))                                              \
	CALL(int, gethostbyname_r,                                                                                     \
	     (const char *name, struct hostent *host, char *text, size_t size, struct hostent **result, int *error),   \
	     (name, host, text, size, result, error))
/* After these calls a number refers to another file, or to none. */
#define WEFT__POSIX_CLOSING(CALL)                                                                                      \
	CALL(int, close, (int fd), (fd))                                                                               \
	CALL(int, dup2, (int fd, int number), (fd, number))                                                            \
	CALL(int, dup3, (int fd, int number, int flags), (fd, number, flags))
/* Locks, only for libweft-posix.so. */
#ifdef __GLIBC__
#define WEFT__POSIX_LOCKING(CALL)                                                                                      \
	CALL(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))                                                      \
	CALL(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))                                                   \
	CALL(int, pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *until), (m, until))            \
	CALL(int, pthread_mutex_clocklock, (pthread_mutex_t * m, clockid_t clock, const struct timespec *until),       \
	     (m, clock, until))                                                                                        \
	CALL(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))                                                  \
	CALL(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))                                                  \
	CALL(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * l), (l))                                               \
	CALL(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * l), (l))                                               \
	CALL(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * l, const struct timespec *until), (l, until))        \
	CALL(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * l, const struct timespec *until), (l, until))        \
	CALL(int, pthread_rwlock_clockrdlock, (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until),   \
	     (l, clock, until))                                                                                        \
	CALL(int, pthread_rwlock_clockwrlock, (pthread_rwlock_t * l, clockid_t clock, const struct timespec *until),   \
	     (l, clock, until))                                                                                        \
	CALL(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t * m), (c, m))                                \
	CALL(int, pthread_cond_timedwait, (pthread_cond_t * c, pthread_mutex_t * m, const struct timespec *until),     \
	     (c, m, until))                                                                                            \
	CALL(int, pthread_cond_clockwait,                                                                              \
	     (pthread_cond_t * c, pthread_mutex_t * m, clockid_t clock, const struct timespec *until),                 \
	     (c, m, clock, until))                                                                                     \
	CALL(int, pthread_once, (pthread_once_t * once, void (*function)(void)), (once, function))                     \
	CALL(int, ftrylockfile, (FILE * f), (f))                                                                       \
	CALL(void, flockfile, (FILE * f), (f))
/* Calls, by any thread or task, that end waits of other tasks. The first parameter is the object that these tasks wait
 * for. */
#define WEFT__POSIX_UNLOCKING(CALL)                                                                                    \
	CALL(int, pthread_mutex_unlock, (pthread_mutex_t * m), (m))                                                    \
	CALL(int, pthread_rwlock_unlock, (pthread_rwlock_t * l), (l))                                                  \
	CALL(int, pthread_cond_signal, (pthread_cond_t * c), (c))                                                      \
	CALL(int, pthread_cond_broadcast, (pthread_cond_t * c), (c))                                                   \
	CALL(void, funlockfile, (FILE * f), (f))
#else
#define WEFT__POSIX_LOCKING(CALL)
#define WEFT__POSIX_UNLOCKING(CALL)
#endif
#define WEFT__POSIX_CALLS(CALL)                                                                                        \
	WEFT__POSIX_WAITING(CALL) WEFT__POSIX_CLOSING(CALL) WEFT__POSIX_LOCKING(CALL) WEFT__POSIX_UNLOCKING(CALL)

struct weft__calls {
#define WEFT__POINTER(result, name, parameters, arguments) result(*name) parameters;
	WEFT__POSIX_CALLS(WEFT__POINTER)
#undef WEFT__POINTER
};

enum { WEFT__POSIX_VERSION = 4 };

/* A copy of the runtime passes this to libweft-posix.so. Valid until the process ends. */
struct weft__posix {
	unsigned version, bytes; /* WEFT__POSIX_VERSION; the size of struct weft__calls */
	bool (*in_task)(void);	 /* is the caller a task of this copy? */
	bool (*was_used)(void);	 /* has a runtime of this copy ever begun? */
	/* Another copy is about to close the number, or to replace its file. Ends this copy's waits for it. */
	void (*closing)(int fd);
	/* Another copy has unlocked `lock`, or signalled a condition: wakes the tasks of this copy that wait for it. */
	void (*unlocked)(void *lock);
	/* Like the functions of C++'s ABI, for a task of this copy; `next` is the function that libweft-posix.so
	 * interposes. */
	int (*guard_acquire)(void *guard, int (*next)(void *));
	void (*guard_end)(void *guard, void (*next)(void *));
	void (*slack_usual)(void);	/* see sched/slack.c: the calling thread makes a child, or calls exec */
	const struct weft__calls *mine; /* for tasks; its closing functions, for any thread */
	struct weft__calls *libc;	/* written by weft__posix_meet: the functions that libweft-posix.so interposes
					 * */
};

typedef void weft__posix_meet_t(const struct weft__posix *posix);

#endif
