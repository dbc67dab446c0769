/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runtimes: making a runtime, running it to its end, counting. */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <stdlib.h>
#include <string.h>

static struct weft__rt *allocate(unsigned workers)
{
	struct weft__rt *rt = aligned_alloc(64, sizeof *rt);
	size_t bytes = workers * sizeof *rt->worker;

	if (!rt)
		return NULL;
	memset(rt, 0, sizeof *rt);
	rt->workers = workers;
	rt->worker = aligned_alloc(64, bytes);
	if (!rt->worker) {
		free(rt);
		return NULL;
	}
	memset(rt->worker, 0, bytes);
	return rt;
}

static void set_up(struct weft__rt *rt, const weft_rt_config_t *config, struct weft__sim *sim)
{
	rt->attr = config->task;
	rt->attr.policy = weft__policy_for_thread(config->task.policy);
	rt->sim = sim;
	rt->resume = weft__told_resume();
	rt->blocking_end = &rt->blocking;
	rt->worker_begins = config->worker_begins;
	rt->worker_arg = config->worker_arg;
	rt->helpers_most = config->helpers ? config->helpers : 64;
	rt->forks = weft__forks();
	atomic_init(&rt->watch, WEFT_NEVER);
	pthread_mutex_init(&rt->helpers_lock, NULL);
	pthread_cond_init(&rt->helpers_wanted, NULL);
}

void weft__rt_free(struct weft__rt *rt)
{
	struct weft__source *source = atomic_load(&rt->source);
	unsigned turns = 0, i;

	/* Acquire: pairs with weft__outside_end. */
	while (atomic_load_explicit(&rt->outside, memory_order_acquire))
		weft__pause(&turns);
	if (source)
		source->free(source);
	pthread_mutex_destroy(&rt->helpers_lock);
	pthread_cond_destroy(&rt->helpers_wanted);
	for (i = 0; i < rt->workers; i++)
		weft__wheel_free(&rt->worker[i].wheel);
	free(rt->worker);
	free(rt);
}

struct weft__rt *weft__rt_allocate(const weft_rt_config_t *config, unsigned workers, struct weft__sim *sim)
{
	static const weft_rt_config_t defaults;
	struct weft__rt *rt = allocate(workers);

	if (rt)
		set_up(rt, config ? config : &defaults, sim);
	if (weft__posix_begin)
		weft__posix_begin();
	return rt;
}

struct weft__rt *weft__rt_make(const weft_rt_config_t *config, unsigned workers, struct weft__sim *sim, weft_fn_t *fn,
			       void *arg, int *error)
{
	struct weft__rt *rt = weft__rt_allocate(config, workers, sim);
	struct weft_spawn what = {.fn = fn, .arg = arg};
	struct weft__task *task;

	*error = -ENOMEM;
	if (!rt)
		return NULL;
	what.handle = &rt->main;
	*error = weft__task_spawn(rt, &what, &task);
	if (*error) {
		weft__rt_free(rt);
		return NULL;
	}
	atomic_store_explicit(&rt->elsewhere, 1, memory_order_relaxed);
	weft__ready(task, false);
	return rt;
}

void weft__worker_stats(const struct weft__worker *w, weft_rt_stats_t *stats)
{
	stats->switches += __atomic_load_n(&w->switches, __ATOMIC_RELAXED);
	stats->spawned += __atomic_load_n(&w->spawned, __ATOMIC_RELAXED);
	stats->steals += __atomic_load_n(&w->steals, __ATOMIC_RELAXED);
	stats->parks += __atomic_load_n(&w->parks, __ATOMIC_RELAXED);
	stats->wakes += __atomic_load_n(&w->wakes, __ATOMIC_RELAXED);
	stats->timers += __atomic_load_n(&w->timers, __ATOMIC_RELAXED);
	stats->live += __atomic_load_n(&w->spawned, __ATOMIC_RELAXED) - __atomic_load_n(&w->ended, __ATOMIC_RELAXED);
}

static void count(struct weft__rt *rt, weft_rt_stats_t *stats)
{
	unsigned i;

	*stats = (weft_rt_stats_t){.workers = rt->workers, .helpers = rt->helpers};
	stats->live = (size_t)atomic_load_explicit(&rt->elsewhere, memory_order_relaxed);
	for (i = 0; i < rt->workers; i++)
		weft__worker_stats(&rt->worker[i], stats);
	/* Negative if tasks began on one worker and ended on another worker during this count. */
	if ((int64_t)stats->live < 0)
		stats->live = 0;
}

static int run(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	struct weft__rt *rt;
	int error;

	rt = weft__rt_make(config, config && config->workers ? config->workers : weft__processors(), NULL, fn, arg,
			   &error);
	if (!rt)
		return error;
	error = weft__attendant_start(rt, config);
	if (!error)
		error = weft__workers_run(rt);
	weft__attendant_stop(rt);
	weft__helpers_stop(rt);
	if (error) {
		/* No thread began: the first task has not run, and has no frames. */
		weft__task_unmake(rt->main.task);
	} else {
		error = rt->main.error;
		if (rt->deadlocks && (!error || error == -ECANCELED))
			error = -EDEADLK;
		if (result)
			*result = rt->main.result;
		if (config && config->stats)
			count(rt, config->stats);
	}
	if (rt->deadlocks < 2)
		weft__rt_free(rt);
	return error;
}

int weft_rt_run(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result)
{
	int error;

	if (!fn || (config && (config->workers > WEFT_WORKERS_MOST || config->task.memory)))
		return -EINVAL;
	if (weft__sim_asked(config, fn, arg, result, &error))
		return error;
	weft__here.making++;
	error = run(config, fn, arg, result);
	weft__here.making--;
	return error;
}

int weft_rt_stats(weft_rt_stats_t *stats)
{
	struct weft__task *task = weft__task();

	if (!task)
		return -EPERM;
	if (!stats)
		return -EINVAL;
	count(task->rt, stats);
	return 0;
}
