/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Helpers: threads that run tasks while these are in weft_blocking. Such a task is ready in the helpers' queue, never
 * in a worker's; a helper runs it until it waits or yields, and leaving the block yields. A helper is made when a task
 * is queued and no helper is idle; helpers stay until the runtime ends.
 */
#include "sched/sched.h"

#include <sys/prctl.h>

static struct weft__task *next(struct weft__rt *rt)
{
	struct weft__task *task;

	weft__mutex_lock(&rt->helpers_lock);
	rt->helpers_idle++;
	while (!rt->blocking && !atomic_load(&rt->stop))
		pthread_cond_wait(&rt->helpers_wanted, &rt->helpers_lock);
	rt->helpers_idle--;
	task = rt->blocking;
	if (task) {
		rt->helpers_queued--;
		rt->blocking = task->next;
		if (!rt->blocking)
			rt->blocking_end = &rt->blocking;
	}
	weft__mutex_unlock(&rt->helpers_lock);
	return task;
}

/* Make tasks ready that no helper will run any more: each blocks a worker. */
static void give_back(struct weft__task *task)
{
	struct weft__task *next;

	for (; task; task = next) {
		next = task->next;
		weft__task_set(task, WEFT__BLOCKING, false);
		weft__ready(task, false);
	}
}

/* The runtime must outlive the helper until the helper is not counted any more. Each helper that ends joins the helper
 * that ended before it, and the runtime's end joins the last. */
static void leave(struct weft__rt *rt)
{
	struct weft__task *left;
	pthread_t earlier;
	bool others_left;

	weft__mutex_lock(&rt->helpers_lock);
	while (rt->helpers == 1 && (left = rt->blocking)) {
		rt->blocking = NULL;
		rt->blocking_end = &rt->blocking;
		rt->helpers_queued = 0;
		weft__mutex_unlock(&rt->helpers_lock);
		give_back(left);
		weft__mutex_lock(&rt->helpers_lock);
	}
	rt->helpers--;
	others_left = rt->helpers_left;
	earlier = rt->left_last;
	rt->helpers_left = true;
	rt->left_last = pthread_self();
	pthread_cond_broadcast(&rt->helpers_wanted);
	weft__mutex_unlock(&rt->helpers_lock);
	if (others_left)
		pthread_join(earlier, NULL);
}

static void *help(void *argument)
{
	struct weft__rt *rt = argument;
	struct weft__worker w = {.rt = rt, .helper = true};
	struct weft__task *task;

	weft__set_worker(&w);
	prctl(PR_SET_NAME, "weft-blocking");
	weft__slack_usual();		 /* for child processes that this thread makes */
	while (weft__prepare_thread()) { /* without that, stacks could not grow: see worker.c */
		weft__check_fork(rt);
		task = next(rt);
		if (!task)
			break;
		if (weft__task_run(&w, task) == WEFT__YIELDED)
			weft__ready(task, false);
		atomic_fetch_add_explicit(&rt->elsewhere, (int64_t)(w.spawned - w.ended), memory_order_relaxed);
		w.spawned = w.ended = 0;
	}
	weft__set_worker(NULL); /* destructors of the thread's variables may still use objects of weft/sync.h */
	leave(rt);
	return NULL;
}

/*
 * Make a helper for another task, unless an idle helper is left when each queued task has got one: a task may block
 * until another task in the queue has run. If no thread can be created, a present helper runs the task later. Returns
 * false if there is no helper.
 */
static bool make_helper(struct weft__rt *rt)
{
	pthread_t thread;

	if (rt->helpers_idle > rt->helpers_queued || rt->helpers >= rt->helpers_most)
		return true;
	if (pthread_create(&thread, NULL, help, rt))
		return rt->helpers;
	rt->helpers++;
	return true;
}

void weft__helpers_add(struct weft__rt *rt, struct weft__task *task)
{
	bool helped;

	task->next = NULL;
	weft__mutex_lock(&rt->helpers_lock);
	helped = make_helper(rt);
	if (helped) {
		rt->helpers_queued++;
		*rt->blocking_end = task;
		rt->blocking_end = &task->next;
		pthread_cond_signal(&rt->helpers_wanted);
	}
	weft__mutex_unlock(&rt->helpers_lock);
	if (helped)
		return;
	/* There is no helper: the task blocks a worker. */
	weft__task_set(task, WEFT__BLOCKING, false);
	weft__ready(task, false);
}

void weft__helpers_stop(struct weft__rt *rt)
{
	weft__mutex_lock(&rt->helpers_lock);
	pthread_cond_broadcast(&rt->helpers_wanted);
	while (rt->helpers)
		pthread_cond_wait(&rt->helpers_wanted, &rt->helpers_lock);
	weft__mutex_unlock(&rt->helpers_lock);
	if (rt->helpers_left)
		pthread_join(rt->left_last, NULL);
}

bool weft__blocking(bool begin)
{
	struct weft__task *task = weft__task();

	if (!task || task->rt->sim)
		return false;
	if (begin) {
		/* A nested block: its end is not the end of the outer block. */
		if (task->blocks++)
			return false;
		weft__task_set(task, WEFT__BLOCKING, true);
		return true;
	}
	if (--task->blocks)
		return false;
	weft__task_set(task, WEFT__BLOCKING, false);
	return true;
}

bool weft__blocking_pause(bool pause)
{
	struct weft__task *task = weft__task();

	if (!task || !task->blocks)
		return false;
	weft__task_set(task, WEFT__BLOCKING, !pause);
	return true;
}
