/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * C3 prime sieve: a chain of filter coroutines, one per prime found, passes numbers on. The result is the n-th prime.
 * The newest filter is resumed first and asks the filter before it, so each runs deeper as the chain grows. push=1: the
 * first filter receives a number and passes it on, so each filter stays at its original depth, which copied stacks
 * require.
 */
#include "lab.h"
#include <weft/weft.h>

static void *count_up(void *unused)
{
	weft_coro_t *self = weft_current();
	int64_t i;

	for (i = 2;; i++)
		weft_yield(self, &weft_suspended, (void *)(intptr_t)i);
	return unused;
}

static int64_t next(weft_coro_t *k)
{
	return (intptr_t)weft_resume(k, NULL, WEFT_HANDLE_NONE).payload;
}

struct filter {
	weft_coro_t *source;
	int64_t prime;
};

static void *filter(void *arg)
{
	const struct filter f = *(struct filter *)arg;
	weft_coro_t *self = weft_current();
	int64_t i;

	for (;;) {
		i = next(f.source);
		if (i % f.prime != 0)
			weft_yield(self, &weft_suspended, (void *)(intptr_t)i);
	}
	return NULL;
}

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k)
		lab_die("weft_create");
	return k;
}

static int64_t run(int64_t n)
{
	struct filter *filters = malloc((size_t)n * sizeof(*filters));
	weft_coro_t *last = make(count_up, NULL);
	int64_t i, prime = 0;

	if (!filters)
		lab_die("malloc");
	for (i = 0; i < n; i++) {
		prime = next(last);
		filters[i] = (struct filter){last, prime};
		last = make(filter, &filters[i]);
	}
	weft_delete(last);
	for (i = n; i-- > 0;)
		weft_delete(filters[i].source);
	free(filters);
	return prime;
}

/* ---- pushing ---------------------------------------------------------------------------------------------------- */

struct stage {
	weft_coro_t *k;
	struct stage *next;
	int64_t prime, *count;
};

static void start(struct stage *stage, int64_t prime, int64_t *count);

static void *stage(void *arg)
{
	struct stage *s = arg;
	weft_coro_t *self = weft_current();
	int64_t i;

	for (;;) {
		i = (intptr_t)weft_yield(self, &weft_suspended, NULL);
		if (i % s->prime == 0)
			continue;
		if (s->next) {
			weft_resume(s->next->k, (void *)(intptr_t)i, WEFT_HANDLE_NONE);
		} else {
			s->next = s + 1;
			start(s->next, i, s->count);
		}
	}
	return NULL;
}

static void start(struct stage *s, int64_t prime, int64_t *count)
{
	*s = (struct stage){.k = make(stage, s), .prime = prime, .count = count};
	++*count;
	weft_resume(s->k, NULL, WEFT_HANDLE_NONE);
}

static int64_t push(int64_t n)
{
	struct stage *stages = malloc((size_t)n * sizeof(*stages));
	int64_t count = 0, prime, i;

	if (!stages)
		lab_die("malloc");
	start(&stages[0], 2, &count);
	for (i = 3; count < n; i++)
		weft_resume(stages[0].k, (void *)(intptr_t)i, WEFT_HANDLE_NONE);
	prime = stages[n - 1].prime;
	for (i = n; i-- > 0;)
		weft_delete(stages[i].k);
	free(stages);
	return prime;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 100), prime;

	lab_start();
	prime = lab_number(argc, argv, "push", 0) ? push(n) : run(n);
	lab_stop();
	return lab_report((uint64_t)n, prime);
}
