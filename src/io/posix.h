/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of weft/posix.h share: libc's own functions, and waiting in a task. */
#ifndef WEFT_SRC_IO_POSIX_H
#define WEFT_SRC_IO_POSIX_H

#define WEFT_POSIX_NO_NAMES
#include <errno.h>
#include <weft/posix.h>

#include "internal/libc.h"

#include "io/io.h"
#include "io/posix_calls.h"
#include "io/sim.h"
#include "io/waits.h"

#ifdef WEFT__NO_EPOLL_PWAIT2
int weft_posix_epoll_pwait2(int fd, struct epoll_event *events, int most, const struct timespec *timeout,
			    const sigset_t *mask);
#endif

/* libc's functions. What libweft-posix.so stands before, if it is there: a call by name would come back here. */
extern struct weft__calls weft__libc WEFT__HIDDEN;

/* Is the caller a task that can wait? Then its calls are done here. */
bool weft__posix_in_task(void) WEFT__HIDDEN;
/* The task that calls, unless it is one of a simulation. */
struct weft__task *weft__posix_task(void) WEFT__HIDDEN;
/* Is it a task of a simulation? */
bool weft__posix_simulated(void) WEFT__HIDDEN;
/* Asked before a wait: not in a child of vfork, nor on a signal handler's stack. */
bool weft__posix_may_wait(void) WEFT__HIDDEN;

/*
 * Wait for a descriptor, with the task held at its worker. errno stays as it is.
 * Returns the events that are; -ETIMEDOUT, -ECANCELED, -EBADF (closed meanwhile), -ENOMEM.
 */
int weft__posix_wait(int fd, int events, uint64_t deadline) WEFT__HIDDEN;
/*
 * A call of several steps holds its descriptor from the first wait to its end, so that it cannot go on with a file to
 * which the number was given meanwhile. Begins: 0, -EBADF, -ENOMEM. -EBADF from the wait: it was closed, or dup2
 * replaced its file. An attempt after a wait stands between weft__use_lock and weft__use_unlock.
 */
int weft__posix_use_begin(struct weft__use *use, int fd) WEFT__HIDDEN;
int weft__posix_wait_used(struct weft__use *use, int events, uint64_t deadline) WEFT__HIDDEN;
/* For an epoll set of the descriptors that are used: the first, and those that follow it. */
int weft__posix_wait_set(int set, struct weft__use *uses, uint64_t deadline) WEFT__HIDDEN;
/* Does the calling task have a ring? */
bool weft__posix_has_ring(void) WEFT__HIDDEN;
/* Do an operation, with the task held at its worker. errno stays as it is. */
int64_t weft__posix_run(weft_io_t *io) WEFT__HIDDEN;
/* Call a function on a helper thread; what it returns. -ECANCELED: it was not called. */
int64_t weft__posix_call(weft_io_call_t *fn, void *argument) WEFT__HIDDEN;
/* Until a time of weft_now(). 0, -ECANCELED. */
int weft__posix_sleep(uint64_t until) WEFT__HIDDEN;
/* Wait as weft_wait does, but not cancelled. */
void weft__posix_park(weft_waiter_t *w) WEFT__HIDDEN;
/* Let others run. */
void weft__posix_yield(void) WEFT__HIDDEN;

/* errno = error, and -1. Not inlined: errno's address is a thread's. */
int weft__posix_fail(int error) WEFT__HIDDEN;
/* From a result or a negative errno. */
static inline int64_t weft__posix_result(int64_t result)
{
	return result < 0 ? weft__posix_fail((int)-result) : result;
}

/*
 * libc's poll, without waiting. Also then it may end with EINTR, if a signal comes: one of the program's, or the one
 * by which the runtime makes a held worker ask its ring. Nobody was waiting, so that is no answer, and it asks again.
 */
int weft__posix_poll_now(struct pollfd *fds, nfds_t count) WEFT__HIDDEN;
static inline bool weft__posix_interrupted(int result)
{
	return result < 0 && errno == EINTR && !WEFT_CANARY(posix_looks_once);
}

/* A time that is this far from now. WEFT_NEVER if that is out of range. */
uint64_t weft__posix_after(int64_t seconds, int64_t nanoseconds) WEFT__HIDDEN;
/* Does the descriptor block? -1 and errno are not changed. */
bool weft__posix_blocks(int fd) WEFT__HIDDEN;

#ifdef __GLIBC__
/* posix_lock.c. The functions that libweft-posix.so calls in place of libc's: not in weft/posix.h. */
#define WEFT__POSIX_DECLARE(result, name, parameters, arguments) result weft_posix_##name parameters WEFT__HIDDEN;
WEFT__POSIX_LOCKING(WEFT__POSIX_DECLARE)
WEFT__POSIX_UNLOCKING(WEFT__POSIX_DECLARE)
#undef WEFT__POSIX_DECLARE
void weft__posix_unlocked(void *lock) WEFT__HIDDEN;
int weft__posix_guard_acquire(void *guard, int (*next)(void *)) WEFT__HIDDEN;
void weft__posix_guard_end(void *guard, void (*next)(void *)) WEFT__HIDDEN;
/* The task, which holds locks, begins or ends a wait. */
void weft__posix_mark_locks(struct weft__task *task, bool is_suspended) WEFT__HIDDEN;
/* In a child of fork: it has none of the tasks. */
void weft__posix_forget_locks(void) WEFT__HIDDEN;
#endif

/*
 * posix.c: a call that may block if another takes what poll has seen is made by one helper thread at a time for each
 * descriptor. Another process may still take it, so no worker makes such a call.
 */
struct weft__posix_turn {
	int fd;
	struct weft__posix_turn *next;
};
void weft__posix_turn_begin(struct weft__posix_turn *turn, int fd) WEFT__HIDDEN;
void weft__posix_turn_end(const struct weft__posix_turn *turn) WEFT__HIDDEN;

#endif
