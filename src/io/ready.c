/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readiness as a case of weft_select. Each case is an operation of its own, WEFT_IO_POLL, and no task waits for its
 * waiter: that is parked at once, and the end of the operation claims the waiter of the select.
 *
 * The operation's record is in the frame that selects. After the loop has claimed its waiter, `fired` will run, or
 * runs, in another thread, so the select waits until `fired` has set WEFT__WOKEN, its last access to the operation. If
 * `fired` has claimed the select's waiter as well, the select cannot return before that waiter is completed. When the
 * select claims the operation's waiter itself, `fired` never runs, and the back end withdraws the operation as it does
 * for a cancelled task.
 */
#define _GNU_SOURCE
#include "io/sim.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

static void fired(weft_waiter_t *own)
{
	weft_readiness_t *r = own->owner;
	weft_waiter_t *w = r->selects;
	bool first = weft_waiter_claim(w, r->base.index);

	weft__seen_release(own);
	/* Release: pairs with weft__readiness_disarm. */
	__atomic_fetch_or(&own->state, WEFT__WOKEN, __ATOMIC_RELEASE);
	if (!first)
		return;
	weft__seen_release(w);
	weft_waiter_complete(w);
}

void weft__readiness_arm(weft_readiness_t *r)
{
	r->io.waiter.wake = fired;
	r->io.waiter.owner = r;
	if (!weft_waiter_park(&r->io.waiter))
		fired(&r->io.waiter);
}

void weft__readiness_disarm(weft_readiness_t *r)
{
	weft_waiter_t *own = &r->io.waiter;
	unsigned turns = 0;

	if (weft_waiter_claim(own, -ECANCELED))
		return;
	/* Acquire: pairs with fired. */
	while (!(__atomic_load_n(&own->state, __ATOMIC_ACQUIRE) & WEFT__WOKEN))
		weft__pause(&turns);
	weft__seen_acquire(own);
}

/* ---- in a thread ------------------------------------------------------------------------------------------------- */

/* The descriptor is closed, and the waiter gone, after WEFT__WOKEN is set. */
static void wake_poll(weft_waiter_t *w)
{
	static const uint64_t one = 1;

	(void)!syscall(SYS_write, (int)(intptr_t)w->owner, &one, sizeof one); /* never posix.c's */
	/* Release: pairs with was_woken. */
	__atomic_fetch_or(&w->state, WEFT__WOKEN, __ATOMIC_RELEASE);
}

static bool was_woken(weft_waiter_t *w)
{
	/* Acquire: pairs with wake_poll. */
	return __atomic_load_n(&w->state, __ATOMIC_ACQUIRE) & WEFT__WOKEN;
}

/* Fills `fds`. Returns the number of descriptors, including the eventfd. */
static nfds_t list_descriptors(const weft_readiness_t *r, int wake, struct pollfd *fds)
{
	nfds_t count = 0;

	fds[count++] = (struct pollfd){wake, POLLIN, 0};
	for (; r; r = weft__readiness_next(r))
		if (r->begun == WEFT_IO_BLOCKS)
			fds[count++] = (struct pollfd){r->fd, (short)r->events, 0};
	return count;
}

/* The first case that is ready, with its status; NULL: none is. */
static weft_readiness_t *first_ready(weft_readiness_t *r, const struct pollfd *fds)
{
	nfds_t i = 1;

	for (; r; r = weft__readiness_next(r)) {
		if (r->begun != WEFT_IO_BLOCKS)
			continue;
		if (fds[i].revents) {
			r->base.status = fds[i].revents & POLLNVAL ? -EBADF : fds[i].revents;
			return r;
		}
		i++;
	}
	return NULL;
}

/* NULL: woken, or no case is ready. */
static weft_readiness_t *poll_once(weft_readiness_t *list, int wake, uint64_t until)
{
	struct pollfd fds[WEFT_CASES + 1];
	nfds_t count = list_descriptors(list, wake, fds);
	uint64_t now = weft__clock();
	struct timespec time = weft__timespec(until > now && until != WEFT_NEVER ? until - now : 0);

	return ppoll(fds, count, until == WEFT_NEVER ? NULL : &time, NULL) > 0 ? first_ready(list, fds) : NULL;
}

static void poll_until_woken(weft_readiness_t *list, weft_waiter_t *w, int wake, uint64_t until)
{
	weft_readiness_t *ready;

	while (!was_woken(w)) {
		ready = poll_once(list, wake, until);
		/* If the claim fails another thread has claimed the waiter, and wakes this thread. */
		if (ready ? weft_waiter_claim(w, ready->base.index)
			  : until != WEFT_NEVER && weft__clock() >= until && weft_waiter_claim(w, -ETIMEDOUT))
			return;
	}
}

bool weft__readiness_block(weft_readiness_t *list, weft_waiter_t *w)
{
	int wake, error;

	if (weft__simulated())
		return false;
	wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	error = wake < 0 ? -errno : 0;
	if (error && weft_waiter_claim(w, error))
		return true;
	w->wake = wake_poll;
	w->owner = (void *)(intptr_t)wake;
	if (weft_waiter_park(w))
		poll_until_woken(list, w, wake, error ? 0 : w->timer.at);
	if (!error)
		close(wake);
	return true;
}
