/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The timer: one thread for all groups of the process. It sets a group's flag when the group's period has passed, by
 * two plain stores to memory of the group's thread, so no signal interrupts a system call. The thread sleeps while no
 * group runs activities: an idle process sleeps. It ends soon after the last group, because it would keep a process
 * alive whose other threads have called pthread_exit, and it blocks all signals.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "activity/activity.h"

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct weft__activity_group *groups;
	bool runs;
	_Atomic bool sleeps; /* the thread sleeps until a group resumes */
} timer = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

uint64_t weft__timer_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The group's thread may be writing `limit` at this moment, and overwrite this store; `flag` stays set. */
static void ring(struct weft__activity_group *g)
{
	__atomic_store_n(&g->hot->flag, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&g->hot->limit, UINTPTR_MAX, __ATOMIC_RELAXED);
}

/* Rings for the groups whose period has passed. Returns the time of the next ring. */
static uint64_t ring_due(uint64_t time)
{
	uint64_t next = UINT64_MAX;

	for (struct weft__activity_group *g = timer.groups; g; g = g->older) {
		if (atomic_load(&g->rests))
			continue;
		if (g->next_ring <= time) {
			weft__stuck_look(g, time);
			ring(g);
			g->next_ring = time + g->period;
		}
		next = g->next_ring < next ? g->next_ring : next;
	}
	return next;
}

static bool all_rest(void)
{
	for (struct weft__activity_group *g = timer.groups; g; g = g->older)
		if (!atomic_load(&g->rests))
			return false;
	return true;
}

static bool wait_until(uint64_t time)
{
	struct timespec until = {(time_t)(time / 1000000000), (long)(time % 1000000000)};

	return !pthread_cond_clockwait(&timer.changed, &timer.lock, CLOCK_MONOTONIC, &until);
}

/* Keeps the thread for a while, so that a process that runs groups one after the other does not make a thread for
 * each group. False: no group has begun. */
static bool linger(void)
{
	enum { LINGER = 50000000 };

	return wait_until(weft__timer_now() + LINGER) || timer.groups;
}

/* `sleeps` is set before the groups are checked, and a group that resumes checks `sleeps` after it has cleared
 * `rests`: at least one of the two threads sees the other's store. */
static void sleep_until(uint64_t next)
{
	if (next != UINT64_MAX) {
		(void)wait_until(next);
		return;
	}
	atomic_store(&timer.sleeps, true);
	if (all_rest())
		pthread_cond_wait(&timer.changed, &timer.lock);
	atomic_store(&timer.sleeps, false);
}

static void *serve(void *unused)
{
	pthread_mutex_lock(&timer.lock);
	while (timer.groups || linger())
		if (timer.groups)
			sleep_until(ring_due(weft__timer_now()));
	timer.runs = false;
	pthread_mutex_unlock(&timer.lock);
	return unused;
}

void weft__timer_rest(struct weft__activity_group *g)
{
	atomic_store(&g->rests, true);
}

void weft__timer_go_on(struct weft__activity_group *g)
{
	atomic_store(&g->rests, false);
	if (!atomic_load(&timer.sleeps))
		return;
	pthread_mutex_lock(&timer.lock);
	pthread_cond_signal(&timer.changed);
	pthread_mutex_unlock(&timer.lock);
}

/* A child of fork does not have the timer's thread; it gets a thread when it makes a group. */
void weft__timer_forked(void)
{
	pthread_mutex_init(&timer.lock, NULL);
	pthread_cond_init(&timer.changed, NULL);
	timer.groups = NULL;
	timer.runs = false;
	atomic_store(&timer.sleeps, false);
}

/* The timer's thread blocks all signals: signals are for the program's threads. */
static bool start(void)
{
	sigset_t all, old;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, NULL, serve, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (error)
		return false;
	pthread_detach(thread);
	return true;
}

/* If there is no thread, inserted yields do not switch; a program that waits works all the same. */
void weft__timer_add(struct weft__activity_group *g)
{
	if (g->period == WEFT_ACTIVITY_NO_TIMER || g->every_yield)
		return;
	pthread_mutex_lock(&timer.lock);
	if (!timer.runs)
		timer.runs = start();
	g->next_ring = weft__timer_now() + g->period;
	g->older = timer.groups;
	timer.groups = g;
	pthread_cond_signal(&timer.changed);
	pthread_mutex_unlock(&timer.lock);
}

void weft__timer_remove(struct weft__activity_group *g)
{
	if (g->period == WEFT_ACTIVITY_NO_TIMER || g->every_yield)
		return;
	pthread_mutex_lock(&timer.lock);
	for (struct weft__activity_group **at = &timer.groups; *at; at = &(*at)->older)
		if (*at == g) {
			*at = g->older;
			break;
		}
	if (!timer.groups)
		pthread_cond_signal(&timer.changed);
	pthread_mutex_unlock(&timer.lock);
}
