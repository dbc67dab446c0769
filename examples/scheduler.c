/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * scheduler.c: cooperative threads in a page of code. A task forks other tasks and yields by effects; the scheduler is
 * the handler: a queue and a loop. The tasks do not know how they are scheduled, and the scheduler does not know their
 * work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "must.h"

enum { WORKERS = 10, ROUNDS = 3 };

/* doc: begin tasks */
WEFT_FAMILY(task, (void, task_fork, weft_fn_t *, body, void *, arg), (void, task_yield));

struct work {
	int number;
	long sum;
};

static void *worker(void *arg)
{
	struct work *work = arg;

	for (int round = 1; round <= ROUNDS; round++) {
		work->sum += work->number * round;
		printf("%d.%d%c", work->number, round, work->number == WORKERS ? '\n' : ' ');
		task_yield();
	}
	return NULL;
}

/* Forks ten workers; they outlive it. */
static void *foreman(void *arg)
{
	struct work *work = arg;

	for (int i = 0; i < WORKERS; i++) {
		work[i].number = i + 1;
		task_fork(worker, &work[i]);
	}
	puts("all forked");
	return NULL;
}
/* doc: end */

/* doc: begin scheduler */
/* First in, first out; linked through the coroutines' user data, so that queueing needs no memory. */
struct queue {
	weft_coro_t *first, *last;
};

static void push(struct queue *queue, weft_coro_t *k)
{
	weft_set_user_data(k, NULL);
	if (queue->first)
		weft_set_user_data(queue->last, k);
	else
		queue->first = k;
	queue->last = k;
}

static weft_coro_t *pop(struct queue *queue)
{
	weft_coro_t *k = queue->first;

	if (k)
		queue->first = weft_user_data(k);
	return k;
}

static weft_coro_t *new_task(weft_fn_t *body, void *arg)
{
	return must(weft_create(body, arg));
}

static int schedule(weft_fn_t *body, void *arg)
{
	struct queue ready = {NULL, NULL};
	weft_request_t r;
	weft_coro_t *k;
	int finished = 0;

	push(&ready, new_task(body, arg));
	while ((k = pop(&ready))) {
		weft_handle (r, k, task) {
			if (weft_is(task_yield, r)) {
				push(&ready, k);
				break;
			}
			push(&ready, new_task(weft_args(task_fork, r)->body, weft_args(task_fork, r)->arg));
		}
		if (weft_returned(r)) {
			weft_delete(k);
			finished++;
		}
	}
	return finished;
}
/* doc: end */

int main(void)
{
	struct work work[WORKERS] = {{0, 0}};
	long sum = 0;
	int finished;

	weft_set_failure_hook(must_not_fail);
	finished = schedule(foreman, work);
	for (int i = 0; i < WORKERS; i++)
		sum += work[i].sum;
	printf("%d tasks finished, sum %ld\n", finished, sum);
}
