/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shared by the files of weft/posix.h: libc's own functions, and waiting in a task. */
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

/* libc's functions. If libweft-posix.so is loaded these are the functions that it interposes: a call by name would
 * return here. */
extern struct weft__calls weft__libc WEFT__HIDDEN;

/* Is the caller a task that can wait? Then these functions do its calls, else libc does. */
bool weft__posix_in_task(void) WEFT__HIDDEN;
/* The calling task, unless it belongs to a simulation. */
struct weft__task *weft__posix_task(void) WEFT__HIDDEN;
/* Is it a task of a simulation? */
bool weft__posix_simulated(void) WEFT__HIDDEN;
/* Called before a wait: false in a child of vfork, and on a signal handler's stack. */
bool weft__posix_may_wait(void) WEFT__HIDDEN;

/*
 * Waits for a descriptor, with the task pinned to its worker. errno is unchanged. Returns the present events;
 * -ETIMEDOUT, -ECANCELED, -EBADF (closed meanwhile), -ENOMEM.
 */
int weft__posix_wait(int fd, int events, uint64_t deadline) WEFT__HIDDEN;
/*
 * A call of several steps holds its descriptor from the first wait to its end, so that it cannot continue with another
 * file that has got the number. Begin returns 0, -EBADF, -ENOMEM. -EBADF from the wait: it was closed, or dup2 replaced
 * its file. An attempt after a wait is made between weft__use_lock and weft__use_unlock.
 */
int weft__posix_use_begin(struct weft__use *use, int fd) WEFT__HIDDEN;
int weft__posix_wait_used(struct weft__use *use, int events, uint64_t deadline) WEFT__HIDDEN;
/* For an epoll set of the descriptors in `uses`: the first record, and its `more` successors. */
int weft__posix_wait_set(int set, struct weft__use *uses, uint64_t deadline) WEFT__HIDDEN;
/* Does the calling task's runtime use io_uring? */
bool weft__posix_has_ring(void) WEFT__HIDDEN;
/* Does an operation, with the task pinned to its worker. errno is unchanged. */
int64_t weft__posix_run(weft_io_t *io) WEFT__HIDDEN;
/* Calls a function on a helper thread, and returns its result. -ECANCELED: it was not called. */
int64_t weft__posix_call(weft_io_call_t *fn, void *argument) WEFT__HIDDEN;
/* Sleeps until a time of weft_now(). 0, -ECANCELED. */
int weft__posix_sleep(uint64_t until) WEFT__HIDDEN;
/* Waits like weft_wait, but cannot be cancelled. */
void weft__posix_park(weft_waiter_t *w) WEFT__HIDDEN;
/* Lets other tasks run. */
void weft__posix_yield(void) WEFT__HIDDEN;

/* Sets errno, and returns -1. Not inlined: errno's address belongs to a thread. */
int weft__posix_fail(int error) WEFT__HIDDEN;
/* Converts a result or a negative errno. */
static inline int64_t weft__posix_result(int64_t result)
{
	return result < 0 ? weft__posix_fail((int)-result) : result;
}

/*
 * libc's poll, without waiting. Even then a signal may end it with EINTR: a signal of the program, or the runtime's
 * signal that makes a held worker ask its ring. No wait was interrupted, so the caller must not see EINTR, and poll is
 * called again.
 */
int weft__posix_poll_now(struct pollfd *fds, nfds_t count) WEFT__HIDDEN;
static inline bool weft__posix_interrupted(int result)
{
	return result < 0 && errno == EINTR && !WEFT_CANARY(posix_looks_once);
}

/* The time this far from now. WEFT_NEVER if it is out of range. */
uint64_t weft__posix_after(int64_t seconds, int64_t nanoseconds) WEFT__HIDDEN;
/* Is the descriptor in blocking mode? False, with errno, if it is closed. */
bool weft__posix_blocks(int fd) WEFT__HIDDEN;

#ifdef __GLIBC__
/* posix_lock.c. The functions that libweft-posix.so calls in place of libc's; weft/posix.h does not have them. */
#define WEFT__POSIX_DECLARE(result, name, parameters, arguments) result weft_posix_##name parameters WEFT__HIDDEN;
WEFT__POSIX_LOCKING(WEFT__POSIX_DECLARE)
WEFT__POSIX_UNLOCKING(WEFT__POSIX_DECLARE)
#undef WEFT__POSIX_DECLARE
void weft__posix_unlocked(void *lock) WEFT__HIDDEN;
int weft__posix_guard_acquire(void *guard, int (*next)(void *)) WEFT__HIDDEN;
void weft__posix_guard_end(void *guard, void (*next)(void *)) WEFT__HIDDEN;
/* A task that holds locks begins or ends a wait. */
void weft__posix_mark_locks(struct weft__task *task, bool is_suspended) WEFT__HIDDEN;
/* Called in a child of fork, which has none of the tasks. */
void weft__posix_forget_locks(void) WEFT__HIDDEN;
#endif

/*
 * posix.c: turns for calls that block if another reader or writer takes the data or the room that poll has reported.
 * One helper thread at a time makes this call for each descriptor. Another process may take them anyway, so no worker
 * makes this call.
 */
struct weft__posix_turn {
	int fd;
	struct weft__posix_turn *next;
};
void weft__posix_turn_begin(struct weft__posix_turn *turn, int fd) WEFT__HIDDEN;
void weft__posix_turn_end(const struct weft__posix_turn *turn) WEFT__HIDDEN;

#endif
