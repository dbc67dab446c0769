/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A runtime without threads, for a program that has a loop. Its single worker is the thread that calls weft_rt_step;
 * between two steps the worker is parked, in the sense of worker.c, and its sleep is the program's poll.
 *
 * The descriptor is an epoll set that has a timer and the descriptor of the source of events. A timer of the runtime
 * sets the set's timer to its time; a thread that wakes the worker sets it to a time that has passed. An expired timer
 * stays readable until the next step, so nothing needs to be read. Both are done under park_lock, and the first only
 * while the worker is parked: a thread that wakes the worker takes it off the parked list first, so that a later time
 * never replaces "now".
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NOW = 1 };

/* The caller holds park_lock. */
static void arm(struct weft__rt *rt, uint64_t when)
{
	/* Zero: the timer does not expire. */
	struct itimerspec at = {.it_value = weft__timespec(when == WEFT_NEVER ? 0 : when)};

	/* NOW sets the timer again each time: a poll that reports only changes (EPOLLET) must see a change. */
	if (rt->armed == when && when != NOW)
		return;
	rt->armed = when;
	timerfd_settime(rt->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

void weft__embedded_wake(struct weft__rt *rt)
{
	if (WEFT_CANARY(descriptor_is_not_told))
		return;
	weft__spin_lock(&rt->park_lock);
	arm(rt, NOW);
	weft__spin_unlock(&rt->park_lock);
}

static void take_in(struct weft__rt *rt)
{
	struct weft__source *source = atomic_load(&rt->source);

	if (source)
		source->take_in(source, &rt->worker[0]);
}

/* True: a task is ready, or a timer is due. The step may have ended before it looked at the timers, and a poll that
 * reports only changes (EPOLLET) has seen the descriptor's timer expire already: `arm` would not set it to the same
 * time again. */
static bool lie_down(struct weft__rt *rt)
{
	struct weft__worker *w = &rt->worker[0];
	uint64_t when;
	bool sleeps;

	take_in(rt);
	when = weft__worker_lie_down(w);
	weft__spin_lock(&rt->park_lock);
	sleeps = when > weft__clock() && w->is_parked;
	arm(rt, sleeps ? when : NOW);
	weft__spin_unlock(&rt->park_lock);
	return !sleeps;
}

void weft__embedded_add(struct weft__rt *rt, int descriptor)
{
	struct epoll_event event = {EPOLLIN, {.fd = descriptor}};

	(void)epoll_ctl(rt->descriptor, EPOLL_CTL_ADD, descriptor, &event);
}

static void close_descriptors(int descriptor, int timer)
{
	if (descriptor >= 0)
		close(descriptor);
	if (timer >= 0)
		close(timer);
}

int weft__own_fd(int fd)
{
	int up = fd;

	if (fd >= 0 && fd <= STDERR_FILENO) {
		up = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
		close(fd);
	}
	return up;
}

/* 0 or a negative errno. */
static int open_descriptors(struct weft__rt *rt)
{
	struct epoll_event event = {EPOLLIN, {.fd = 0}};
	int error;

	rt->descriptor = weft__own_fd(epoll_create1(EPOLL_CLOEXEC));
	rt->timer = rt->descriptor < 0 ? -1 : weft__own_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (rt->timer >= 0 && !epoll_ctl(rt->descriptor, EPOLL_CTL_ADD, rt->timer, &event))
		return 0;
	error = -errno;
	close_descriptors(rt->descriptor, rt->timer);
	return error;
}

int weft_rt_open(const weft_rt_config_t *config, weft_rt_t **made)
{
	struct weft__rt *rt;
	int error;

	if (!made || (config && (config->workers > 1 || config->task.memory)))
		return -EINVAL;
	rt = weft__rt_allocate(config, 1, NULL);
	if (!rt)
		return -ENOMEM;
	error = open_descriptors(rt);
	if (!error) {
		error = weft__attendant_start(rt, config);
		if (error)
			close_descriptors(rt->descriptor, rt->timer);
	}
	if (error) {
		weft__rt_free(rt);
		return error;
	}
	rt->embedded = true;
	rt->armed = WEFT_NEVER;
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
	bool more, alone;

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
	alone = weft__alone_begin();
	weft__worker_get_up(w);
	take_in(rt);
	run(w, budget);
	weft__set_worker(outer);
	more = lie_down(rt);
	weft__alone_end(alone);
	atomic_store(&rt->stepping, false);
	return more;
}

int weft_rt_close(weft_rt_t *rt)
{
	int descriptor, timer;

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
	timer = rt->timer;
	weft__rt_free(rt);
	close_descriptors(descriptor, timer); /* when no thread can use them any more */
	return 0;
}
