/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A runtime without threads, for a program that has a loop. Its one worker is whoever calls weft_rt_step; between two
 * steps the worker is parked, in the sense of worker.c, and its sleep is the program's poll.
 *
 * The descriptor is a timer's. A timer of the runtime sets it to its time; whoever wakes the worker sets it to a time
 * that has passed; and what has passed stays readable until the next step, so nothing needs to be read. Both are done
 * under park_lock, and the first only while the worker is parked: who wakes it takes it off that list first, so that a
 * later time never replaces "now".
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum { NOW = 1 };

/* Under park_lock. */
static void arm(struct weft__rt *rt, uint64_t when)
{
	/* Of zeros: it is not to expire. */
	struct itimerspec at = {.it_value = weft__timespec(when == WEFT_NEVER ? 0 : when)};

	/* Once more for NOW: a poll that reports changes only (EPOLLET) is to see one. */
	if (rt->armed == when && when != NOW)
		return;
	rt->armed = when;
	timerfd_settime(rt->descriptor, TFD_TIMER_ABSTIME, &at, NULL);
}

void weft__embedded_wake(struct weft__rt *rt)
{
	if (WEFT_CANARY(descriptor_is_not_told))
		return;
	weft__spin_lock(&rt->park_lock);
	arm(rt, NOW);
	weft__spin_unlock(&rt->park_lock);
}

/* True: there is more to run. */
static bool lie_down(struct weft__rt *rt)
{
	struct weft__worker *w = &rt->worker[0];
	uint64_t when = weft__worker_lie_down(w);
	bool sleeps;

	weft__spin_lock(&rt->park_lock);
	sleeps = when && w->is_parked;
	arm(rt, sleeps ? when : NOW);
	weft__spin_unlock(&rt->park_lock);
	return !sleeps;
}

int weft_rt_open(const weft_rt_config_t *config, weft_rt_t **made)
{
	int descriptor, error;
	struct weft__rt *rt;

	if (!made || (config && config->workers > 1))
		return -EINVAL;
	descriptor = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	error = -errno;
	if (descriptor < 0)
		return error;
	rt = weft__rt_allocate(config, 1, NULL);
	if (!rt) {
		close(descriptor);
		return -ENOMEM;
	}
	error = weft__attendant_start(rt, config);
	if (error) {
		close(descriptor);
		weft__rt_free(rt);
		return error;
	}
	rt->embedded = true;
	rt->armed = WEFT_NEVER;
	rt->descriptor = descriptor;
	weft__worker_init(rt, &rt->worker[0], 0);
	lie_down(rt);
	*made = rt;
	return 0;
}

int weft_rt_fd(const weft_rt_t *rt)
{
	return rt && rt->embedded ? rt->descriptor : -EINVAL;
}

static void run(struct weft__worker *w, uint64_t budget)
{
	uint64_t until = budget < WEFT_NEVER - w->looked ? w->looked + budget : WEFT_NEVER;
	struct weft__task *task;

	while ((task = weft__worker_pick(w))) {
		weft__worker_run(w, task);
		if (w->looked >= until)
			break;
	}
}

int weft_rt_step(weft_rt_t *rt, uint64_t budget)
{
	struct weft__worker *w, *outer;
	bool more;

	if (!rt || !rt->embedded)
		return -EINVAL;
	weft__check_fork(rt);
	if (!weft__prepare_thread())
		return -ENOMEM;
	if (atomic_exchange(&rt->stepping, true))
		return -EBUSY;
	w = &rt->worker[0];
	outer = weft__worker();
	weft__set_worker(w);
	weft__worker_get_up(w);
	run(w, budget);
	weft__set_worker(outer);
	more = lie_down(rt);
	atomic_store(&rt->stepping, false);
	return more;
}

int weft_rt_close(weft_rt_t *rt)
{
	int descriptor;

	if (!rt)
		return 0;
	if (!rt->embedded)
		return -EINVAL;
	if (atomic_exchange(&rt->stepping, true))
		return -EBUSY;
	if (atomic_load(&rt->live)) {
		atomic_store(&rt->stepping, false);
		return -EBUSY;
	}
	atomic_store(&rt->stop, true);
	weft__attendant_stop(rt);
	weft__helpers_stop(rt);
	descriptor = rt->descriptor;
	weft__rt_free(rt);
	close(descriptor); /* when no thread can tell it anything any more */
	return 0;
}
