/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * limit.c: a rate limiter as a handler. A body may spawn one task in ten milliseconds, directly or not: the handler
 * answers `spawn`, and forwards it when it is time. docs/reference/tasks.md.
 */
#include <stdio.h>
#include <string.h>
#include <weft/sched.h>

#define MS 1000000ull

/* doc: begin limiter */
struct limiter {
	uint64_t next;
};

static int spawn_slowly(void *state, struct weft_spawn *what)
{
	struct limiter *l = state;
	uint64_t now = weft_now();

	if (now < l->next) {
		weft_sleep_until(l->next);
		now = weft_now();
	}
	l->next = now + 10 * MS;
	return weft_op_spawn(what); /* to the next enclosing handler: the runtime */
}

WEFT_HANDLER(limited, weft_tail(weft_op_spawn, spawn_slowly));
/* doc: end */

static void *nothing(void *unused)
{
	return unused;
}

static void *spawns_five(void *result)
{
	int error = 0;

	WEFT_SCOPE(scope);
	for (int i = 0; i < 5 && !error; i++)
		error = weft_scope_spawn(&scope, nothing, NULL);
	if (!error)
		error = weft_scope_wait(&scope);
	*(int *)result = error;
	return result;
}

static void *run(void *unused)
{
	/* Frames of a waiting task must not move. */
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT};
	struct limiter limiter = {0};
	uint64_t begin = weft_now();
	int error = -ENOMEM;

	weft_run_with(&limited, &limiter, spawns_five, &error, &attr);
	if (error)
		weft_task_fail(error);
	printf("5 tasks in %s 40 ms\n", weft_now() - begin >= 40 * MS ? "at least" : "less than");
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "limit: %s\n", strerror(-error));
	return error != 0;
}
