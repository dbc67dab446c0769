/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* primes.c: the sieve of Eratosthenes as a chain of tasks, each behind a channel. docs/tutorial/tasks.md, step 2. */
/* doc: begin head */
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

enum { PRIMES = 30 };
/* doc: end */

/* doc: begin filter */
struct filter {
	int prime;
	weft_chan_t *in, *out;
};

static void *filter(void *argument)
{
	struct filter *f = argument;
	int number;

	while (weft_chan_receive(f->in, &number) == 0)
		if (number % f->prime && weft_chan_send(f->out, &number))
			break;
	return NULL;
}
/* doc: end */

/* doc: begin rest */
static void *numbers(void *chan)
{
	for (int i = 2; weft_chan_send(chan, &i) == 0; i++)
		;
	return NULL;
}

static weft_chan_t *channel(void)
{
	weft_chan_t *chan = weft_chan_make(sizeof(int), 1);

	if (!chan)
		weft_task_fail(-ENOMEM);
	return chan;
}

static void free_all(weft_chan_t **chans)
{
	while (*chans)
		weft_chan_free(*chans++);
}

static void start(weft_scope_t *scope, weft_fn_t *fn, void *argument)
{
	int error = weft_scope_spawn(scope, fn, argument);

	if (error)
		weft_task_fail(error);
}

static void *sieve(void *unused)
{
	weft_chan_t *chans[PRIMES + 2] = {NULL};
	struct filter filters[PRIMES];

	weft_defer(free_all, chans);
	WEFT_SCOPE(scope);
	chans[0] = channel();
	start(&scope, numbers, chans[0]);
	for (int i = 0; i < PRIMES; i++) {
		if (weft_chan_receive(chans[i], &filters[i].prime))
			break;
		printf("%d%c", filters[i].prime, i % 10 == 9 ? '\n' : ' ');
		chans[i + 1] = channel();
		filters[i].in = chans[i];
		filters[i].out = chans[i + 1];
		start(&scope, filter, &filters[i]);
	}
	/* The end of the scope cancels all stages. */
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, sieve, NULL, NULL);

	if (error)
		fprintf(stderr, "primes: %s\n", strerror(-error));
	return error != 0;
}
/* doc: end */
