/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * priorities.c: a custom scheduler, by priorities. It handles the four effects that tasks perform, and every object of
 * weft/sync.h works under it. A task is a coroutine, a place in a queue, and a number; the lowest goes first. A yield
 * takes about half the time of a yield under the built-in scheduler, which supports several threads.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/sync.h>

enum { LEVELS = 3 };

/* doc: begin scheduler */
struct task {
	struct task *next;
	weft_coro_t *k;
	int level;
};

static struct queue {
	struct task *first, **end;
} ready[LEVELS];

static void add(struct task *t)
{
	struct queue *q = &ready[t->level];

	if (!q->first)
		q->end = &q->first;
	t->next = NULL;
	*q->end = t;
	q->end = &t->next;
}

static struct task *next(void)
{
	struct task *t;

	for (int level = 0; level < LEVELS; level++)
		if ((t = ready[level].first)) {
			ready[level].first = t->next;
			return t;
		}
	return NULL;
}

/* An object has ended the task's wait. With several threads, this function would need a lock. */
static void wake(weft_waiter_t *w)
{
	add(w->owner);
}

/* A task's level is in its attributes, where a program may store a value of its own. Only the built-in scheduler has
 * scopes. */
static int spawn(const struct weft_spawn *what)
{
	weft_attr_t attr = what->attr ? what->attr->coro : (weft_attr_t){0};
	struct task *t = what->scope ? NULL : malloc(sizeof *t);

	attr.policy = WEFT_OVERCOMMIT; /* frames of waiting tasks must not move */
	if (!t)
		return what->scope ? -ENOTSUP : -ENOMEM;
	t->level = attr.user_data ? *(int *)attr.user_data : LEVELS - 1;
	t->k = weft_create_with(what->fn, what->arg, &attr);
	if (!t->k) {
		free(t);
		return -ENOMEM;
	}
	add(t);
	return 0;
}

/* Runs a task until it waits, yields or ends. */
static void run_task(struct task *t)
{
	weft_request_t r;
	weft_waiter_t *w;

	for (;;) {
		r = weft_resume(t->k, NULL, weft_handles(weft_op_sched));
		switch (weft_op(weft_op_sched, r)) {
		case weft_case(weft_op_yield):
			weft_reply(weft_op_yield, r, 0);
			add(t);
			return;
		case weft_case(weft_op_wait):
			w = weft_args(weft_op_wait, r)->waiter;
			w->wake = wake;
			w->owner = t;
			if (weft_waiter_park(w))
				return; /* the event that ends the wait queues it again */
			continue;
		case weft_case(weft_op_spawn):
			weft_reply(weft_op_spawn, r, spawn(weft_args(weft_op_spawn, r)->what));
			continue;
		case weft_case(weft_op_now):
			weft_reply(weft_op_now, r, 0); /* in this scheduler no time passes, and no timer expires */
			continue;
		default: /* the task has ended */
			weft_delete(t->k);
			free(t);
			return;
		}
	}
}

static void run(void)
{
	struct task *t;

	while ((t = next()))
		run_task(t);
}
/* doc: end */

static weft_sem_t turns; /* the urgent task takes turns that the leisurely task gives */

static void *urgent(void *name)
{
	for (int i = 0; i < 2; i++) {
		weft_sem_take(&turns);
		printf("%s goes first\n", (char *)name);
	}
	return NULL;
}

static void *leisurely(void *name)
{
	for (int i = 0; i < 2; i++) {
		printf("%s gives a turn\n", (char *)name);
		weft_sem_give(&turns, 1);
		weft_task_yield();
	}
	return NULL;
}

static bool start(weft_fn_t *fn, char *name, int level)
{
	weft_task_attr_t attr = {.coro.user_data = &level};

	if (spawn(&(struct weft_spawn){.fn = fn, .arg = name, .attr = &attr}) == 0)
		return true;
	fprintf(stderr, "priorities: no memory\n");
	return false;
}

int main(void)
{
	static char a[] = "the urgent", b[] = "the leisurely";

	if (!start(leisurely, b, 2) || !start(urgent, a, 0))
		return 1;
	run();
	return 0;
}
