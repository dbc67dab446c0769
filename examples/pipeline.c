/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pipeline.c: three stages, joined by channels with room for four items. A stage that is faster than the next waits for
 * it; so memory is bounded, however long the source is. When the last stage has enough items, the other stages are
 * cancelled at any point of their work, and every item is accounted for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/sync.h>

enum { ROOM = 4, WANTED = 100 };

struct item {
	long number, square;
};

/* doc: begin stage */
struct stage {
	weft_chan_t *in, *out;
	struct item *hand; /* the item that the stage owns: received and not sent yet */
	int made, dropped;
};

/* Runs however the stage ends. */
static void leave(struct stage *s)
{
	s->dropped += s->hand != NULL;
	free(s->hand);
	if (s->out)
		weft_chan_close(s->out);
}

static void send_on(struct stage *s)
{
	/* A cancelled send has not happened: the stage still owns the item, and leave() drops it. */
	if (weft_chan_send(s->out, &s->hand) == 0)
		s->hand = NULL;
}

static void *squares(void *argument)
{
	struct stage *s = argument;

	weft_defer(leave, s);
	while (weft_chan_receive(s->in, &s->hand) == 0) {
		s->hand->square = s->hand->number * s->hand->number;
		send_on(s);
	}
	return NULL;
}
/* doc: end */

static void *numbers(void *argument)
{
	struct stage *s = argument;

	weft_defer(leave, s);
	for (long n = 1;; n++) {
		s->hand = malloc(sizeof *s->hand);
		if (!s->hand)
			weft_task_fail(-ENOMEM);
		s->hand->number = n;
		s->made++;
		send_on(s);
	}
	return NULL;
}

/* Returns the number of items that were left. */
static int empty(weft_chan_t *chan)
{
	struct item *item;
	int count = 0;

	while (weft_chan_receive_until(chan, &item, 0) == 0) {
		free(item);
		count++;
	}
	return count;
}

static long sum_of_squares(weft_chan_t *in, int *used)
{
	struct item *item;
	long sum = 0;

	while (*used < WANTED && weft_chan_receive(in, &item) == 0) {
		sum += item->square;
		++*used;
		free(item);
	}
	return sum;
}

static int run_stages(struct stage *source, struct stage *middle)
{
	int error, used = 0, left;
	long sum = 0;

	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, numbers, source);
	if (!error)
		error = weft_scope_spawn(&scope, squares, middle);
	if (!error) {
		sum = sum_of_squares(middle->out, &used);
		weft_scope_cancel(&scope, -ECANCELED);
		error = weft_scope_wait(&scope);
	}
	if (error != -ECANCELED)
		return error;
	left = empty(middle->in) + empty(middle->out);
	printf("the first %d squares: %ld\n", used, sum);
	printf("the source was at most %d ahead: %s\n", 2 * ROOM + 2,
	       source->made - used <= 2 * ROOM + 2 ? "yes" : "no");
	printf("items lost: %d\n", source->made - used - source->dropped - middle->dropped - left);
	return 0;
}

static void *run(void *unused)
{
	weft_chan_t *one = weft_chan_make(sizeof(struct item *), ROOM),
		    *two = weft_chan_make(sizeof(struct item *), ROOM);
	struct stage source = {.out = one}, middle = {.in = one, .out = two};
	int error = one && two ? run_stages(&source, &middle) : -ENOMEM;

	weft_chan_free(one);
	weft_chan_free(two);
	if (error)
		weft_task_fail(error);
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "pipeline: %s\n", strerror(-error));
	return error != 0;
}
