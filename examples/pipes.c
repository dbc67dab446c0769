/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pipes.c: tasks that wait for each other, by keeping suspended computations. */
/* doc: begin performer */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

WEFT_FAMILY(pipe, (void, send, int, value), (int, receive));

static void *producer(void *count)
{
	for (int i = 1; i <= *(int *)count; i++) {
		printf("send %d\n", i);
		send(i);
	}
	return NULL;
}

/* Runs until a 0 arrives. */
static void *consumer(void *sum)
{
	int value;

	while ((value = receive())) {
		printf("\treceived %d\n", value);
		*(int *)sum += value;
	}
	return NULL;
}
/* doc: end */

/* doc: begin state */
enum { PLACES = 2 };

struct pipe {
	int values[PLACES], first, count;
	weft_resumption_t sender, receiver; /* the waiting tasks, if valid */
};

static void put(struct pipe *pipe, int value)
{
	pipe->values[(pipe->first + pipe->count++) % PLACES] = value;
}

static int take(struct pipe *pipe)
{
	int value = pipe->values[pipe->first];

	pipe->first = (pipe->first + 1) % PLACES;
	pipe->count--;
	return value;
}
/* doc: end */

/* doc: begin handler */
/* In place, if there is a value to take … */
static int receive_now(void *state)
{
	struct pipe *pipe = state;

	return pipe->count ? take(pipe) : weft_escalate(receive);
}

/* … else suspended, and the resumption is kept. */
static void *receive_later(void *state, weft_resumption_t *k)
{
	struct pipe *pipe = state;

	pipe->receiver = weft_keep(k);
	return NULL;
}

static void send_now(void *state, int value)
{
	struct pipe *pipe = state;

	if (pipe->count == PLACES)
		weft_escalate(send, value); /* returns when there is room */
	put(pipe, value);
}

static void *send_later(void *state, weft_resumption_t *k, int value)
{
	struct pipe *pipe = state;

	(void)value; /* send_now puts it in the pipe */
	pipe->sender = weft_keep(k);
	return NULL;
}

WEFT_HANDLER_OF(tasks, pipe, weft_tail(receive, receive_now), weft_also(weft_general(receive, receive_later)),
		weft_tail(send, send_now), weft_also(weft_general(send, send_later)),
		weft_on_failure(must_have_memory));
/* doc: end */

/* doc: begin schedule */
static void run_all(struct pipe *pipe)
{
	for (;;) {
		if (weft_is_valid(&pipe->receiver) && pipe->count)
			weft_continue(receive, &pipe->receiver, take(pipe));
		else if (weft_is_valid(&pipe->sender) && pipe->count < PLACES)
			weft_continue(send, &pipe->sender);
		else
			break;
	}
}

int main(void)
{
	struct pipe pipe = {.count = 0};
	int count = 5, sum = 0;

	weft_run(&tasks, &pipe, consumer, &sum); /* until it waits */
	weft_run(&tasks, &pipe, producer, &count);
	run_all(&pipe);
	printf("sum %d\n", sum);
	weft_drop(&pipe.receiver); /* it waits for a 0, and no task is left to send one */
}
/* doc: end */
