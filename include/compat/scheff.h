/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scheff.h: libseff's scheduler on top of weft/sched.h. Programs written for it compile unchanged, with gcc and clang,
 * as C and as C++; link them with libweft-rt (pkg-config weft-rt, weft::rt; `weft run` and `weft cc` do).
 *
 * Design
 *  1. A task is a task of weft_rt_run, detached and named "scheff"; it may use all of weft/sched.h and weft/sync.h.
 *  2. A sleeping task's waker is a waiter in its frame: nothing is allocated, and the wake may come before the sleep.
 *  3. Effects of seff.h go to the handlers inside a task. The scheduler has its own effects: all 64 numbers are free.
 *  4. All tasks of a scheduler have the same name, a string in the scheduler: a task finds the scheduler by it.
 *
 * Differences that are improvements: idle workers sleep; a program in which every task sleeps for ever is reported,
 * with where each sleeps, if it has no other threads; calls outside of a task are reported.
 *
 * Source of the interface: libseff; none of its code.
 */
#ifndef SCHEFF_H
#define SCHEFF_H

/* Programs rely on these coming along. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/sched.h>

#include "seff.h"

WEFT_EXTERN_C_BEGIN

struct actor_t;

struct scheff__later {
	struct scheff__later *next;
	seff_start_fun_t *fn;
	void *arg;
};

/** A scheduler. Programs may read `n_workers`. */
typedef struct scheff_t {
	size_t n_workers;
	struct scheff__later *scheff__first, **scheff__end;
	struct actor_t *scheff__actors; /* atomic; of actors.h */
	int scheff__error;
	weft_rt_stats_t scheff__stats;
	char scheff__name[8];
} scheff_t;

/** A task that sleeps. In its frame. */
struct scheff_waker_t {
	weft_waiter_t scheff__waiter;
};

typedef bool(scheff_poll_condition_t)(void *);
typedef bool(scheff_wakeup_manager_t)(struct scheff_waker_t *waker, void *arg);

/** Prepares a scheduler of n_workers workers, in the caller's storage; scheff_run releases its resources. Returns false
 * if n_workers is 0. */
WEFT__HELPER bool scheff_init(scheff_t *self, size_t n_workers)
{
	static const char name[sizeof self->scheff__name] = "scheff";

	if (!n_workers || n_workers > UINT32_MAX)
		return false;
	memset(self, 0, sizeof *self);
	self->n_workers = n_workers;
	self->scheff__end = &self->scheff__first;
	memcpy(self->scheff__name, name, sizeof name);
	return true;
}

/** Add a task, before scheff_run. False: no memory. */
WEFT__HELPER bool scheff_schedule(scheff_t *self, seff_start_fun_t *fn, void *arg)
{
	struct scheff__later *start = (struct scheff__later *)malloc(sizeof *start);

	if (!start)
		return false;
	start->next = NULL;
	start->fn = fn;
	start->arg = arg;
	*self->scheff__end = start;
	self->scheff__end = &start->next;
	return true;
}

WEFT__HELPER void scheff__die(const char *what, int error)
{
	weft__die_saying(what, ": ",
			 error == -EPERM ? "was called outside of a task of scheff_run; call it in one"
					 : strerror(-error));
}

/** In a task: starts a new task, which usually runs next, and the caller after it. Lack of memory is reported and ends
 * the process, because the function has no result. */
WEFT__HELPER void scheff_fork(seff_start_fun_t *fn, void *arg)
{
	weft_task_attr_t attr;
	int error;

	memset(&attr, 0, sizeof attr);
	attr.flags = WEFT_TASK_FIRST;
	error = weft_spawn_detached(fn, arg, &attr);
	if (error)
		scheff__die("scheff_fork", error);
}

/* Cheaper than an atomic sum; a lost increment does not matter. */
WEFT__INLINE uint32_t scheff__turn(uint32_t *turns)
{
	uint32_t turn = __atomic_load_n(turns, __ATOMIC_RELAXED) + 1;

	__atomic_store_n(turns, turn, __ATOMIC_RELAXED);
	return turn;
}

/** In a task: lets other tasks run until the condition holds. If it holds at once, every 64th call does so too, so that
 * programs may wait by repeated calls. The condition is called on the caller's stack. */
WEFT__HELPER void scheff_poll(scheff_poll_condition_t *poll, void *poll_arg)
{
	static __thread uint32_t polls; /* atomic, because a task may take its address to another thread */

	if (scheff__turn(&polls) % 64 && poll(poll_arg))
		return;
	do
		(void)weft_task_yield();
	while (!poll(poll_arg));
}

/**
 * In a task: sleep until scheff_wake, if `must_sleep` says so, which is called first, on the caller's stack, and stores
 * the waker where another task will find it. The wake may come from any worker, also before `must_sleep` returns.
 */
WEFT__HELPER void scheff_sleep(scheff_wakeup_manager_t *must_sleep, void *arg)
{
	struct scheff_waker_t waker;

	weft_waiter_init(&waker.scheff__waiter, "scheff_wake, given", arg, WEFT_NEVER);
	if (!must_sleep(&waker, arg))
		return;
	/* The owner of the waker must be able to use it. */
	weft_shield_begin();
	(void)weft_wait(&waker.scheff__waiter);
	weft_shield_end();
}

/** In a task: wake tasks, each once, which tend to run next. Unless `resume`, the caller's task ends here. */
WEFT__HELPER void scheff_wake_all(size_t n_wakers, struct scheff_waker_t **waker, bool resume)
{
	for (size_t i = 0; i < n_wakers; i++)
		if (weft_waiter_claim(&waker[i]->scheff__waiter, 0))
			weft_waiter_complete(&waker[i]->scheff__waiter);
	if (!resume)
		weft_task_fail(-ECANCELED); /* nobody asks why */
}

WEFT__HELPER void scheff_wake(struct scheff_waker_t *waker, bool resume)
{
	scheff_wake_all(1, &waker, resume);
}

/* Few stacks need less memory than many. Not for long: they may wait for tasks that are yet to be started. */
WEFT__HELPER void scheff__let_them_end(void)
{
	weft_rt_stats_t stats;

	for (int i = 0; i < 64 && weft_rt_stats(&stats) == 0 && stats.live > 256; i++)
		(void)weft_task_yield();
}

/* The first task: starts the other tasks. */
WEFT__HELPER void *scheff__begin(void *scheduler)
{
	scheff_t *self = (scheff_t *)scheduler;

	unsigned count = 0;

	for (struct scheff__later *start = self->scheff__first; start && !self->scheff__error; start = start->next) {
		self->scheff__error = weft_spawn_detached(start->fn, start->arg, NULL);
		if (++count % 64 == 0)
			scheff__let_them_end();
	}
	return NULL;
}

__attribute__((weak)) void scheff__free_actors(struct actor_t *first);

/** Run all tasks, on n workers; the caller waits until the last has ended. Reported, and the process ends: a task could
 * not be started. */
WEFT__HELPER void scheff_run(scheff_t *self)
{
	weft_rt_config_t config;
	struct scheff__later *start;
	int error;

	memset(&config, 0, sizeof config);
	config.workers = (unsigned)self->n_workers;
	config.task.name = self->scheff__name;
	config.stats = &self->scheff__stats;
	error = weft_rt_run(&config, scheff__begin, self, NULL);
	if (error && error != -EDEADLK)
		scheff__die("scheff_run", error);
	if (self->scheff__error)
		scheff__die("scheff_run", self->scheff__error);
	while ((start = self->scheff__first)) {
		self->scheff__first = start->next;
		free(start);
	}
	self->scheff__end = &self->scheff__first;
	if (self->scheff__actors)
		scheff__free_actors(self->scheff__actors);
	self->scheff__actors = NULL;
}

/** Prints the workers' counters on standard output. After scheff_run. */
WEFT__HELPER void scheff_print_stats(scheff_t *self)
{
	const weft_rt_stats_t *s = &self->scheff__stats;

	printf("%zu workers: %llu tasks, %llu switches, %llu stolen, %llu woken, slept %llu times\n", self->n_workers,
	       (unsigned long long)s->spawned, (unsigned long long)s->switches, (unsigned long long)s->steals,
	       (unsigned long long)s->wakes, (unsigned long long)s->parks);
}

/* The calling task's scheduler. */
WEFT__HELPER scheff_t *scheff__current(const char *what)
{
	const char *name = weft_task_name();

	if (!name || strcmp(name, "scheff") != 0)
		scheff__die(what, -EPERM);
	return (scheff_t *)(void *)((uintptr_t)name - offsetof(scheff_t, scheff__name));
}

WEFT_EXTERN_C_END

#endif /* SCHEFF_H */
