/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 handler_sieve: the sum of the primes below n. Each prime found installs one more handler around the rest of the
 * computation, which answers false for its multiples and asks the next enclosing handler about other numbers.
 * form=table: by a tail clause that forwards the questions it cannot answer. plain=1: an array of primes, searched in
 * the same order.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_EFFECT(bool, prime, int64_t, e);

struct search {
	int64_t from, end, sum;
};

static void *search(void *arg);

/*
 * Six thousand handlers of known depth, and each question uses all of them: so they are small and packed. The objects
 * are in an array instead of at the same place of each stack, so that they do not all map to a few sets of the cache.
 */
static const weft_attr_t small = {.stack_size = 8192, .flags = WEFT_NO_GUARD};
static weft_coro_t *coroutines;

/* Answers for the multiples of p while the search continues beyond p. */
static void search_beyond(int64_t p, struct search *s)
{
	weft_coro_t *k = coroutines++;
	weft_request_t r;

	if (weft_init(k, search, s, &small))
		lab_die("weft_init");
	weft_handle (r, k, prime) {
		int64_t e = weft_args(prime, r)->e;

		weft_reply(prime, r, e % p != 0 && prime(e));
	}
	weft_release(k);
}

static void *search(void *arg)
{
	struct search *s = arg;
	int64_t i;

	for (i = s->from; i < s->end; i++) {
		if (prime(i)) {
			s->sum += i;
			s->from = i + 1;
			search_beyond(i, s);
			break;
		}
	}
	return NULL;
}

/* Reserves room for the handlers of 2 and the odd numbers. */
static weft_coro_t *make_coroutines(int64_t n)
{
	coroutines = aligned_alloc(64, ((size_t)n / 2 + 8) * sizeof(*coroutines));
	if (!coroutines)
		lab_die("aligned_alloc");
	return coroutines;
}

static int64_t run(int64_t n)
{
	struct search s = {2, n, 0};
	weft_coro_t *k = weft_create(search, &s), *all = make_coroutines(n);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, prime)
		weft_reply(prime, r, true);
	weft_delete(k);
	free(all);
	return s.sum;
}

/* ---- a tail clause that forwards ---------------------------------------------------------------------------- */

/* The state is the prime itself, so the clause reads no memory. */
static bool on_prime(void *p, int64_t e)
{
	if (e % (int64_t)p == 0)
		return false;
	return weft_forward();
}

static bool on_prime_outermost(void *unused, int64_t e)
{
	(void)unused, (void)e;
	return true;
}

WEFT_HANDLER(dividing, weft_tail(prime, on_prime));
WEFT_HANDLER(outermost, weft_tail(prime, on_prime_outermost));

static void *search_table(void *arg)
{
	struct search *s = arg;
	weft_coro_t *k;
	int64_t i;

	for (i = s->from; i < s->end; i++) {
		if (!prime(i))
			continue;
		s->sum += i;
		s->from = i + 1;
		k = coroutines++;
		if (weft_init(k, search_table, s, &small))
			lab_die("weft_init");
		weft_resume_under(k, NULL, &dividing, (void *)i);
		weft_release(k);
		break;
	}
	return NULL;
}

static int64_t run_table(int64_t n)
{
	struct search s = {2, n, 0};
	weft_coro_t *all = make_coroutines(n);

	weft_run(&outermost, NULL, search_table, &s);
	free(all);
	return s.sum;
}

static int64_t run_plain(int64_t n)
{
	int64_t *primes = malloc((size_t)n * sizeof(*primes)), found = 0, sum = 0, i, j;

	if (!primes)
		lab_die("malloc");
	for (i = 2; i < n; i++) {
		for (j = found - 1; j >= 0 && i % primes[j] != 0; j--)
			;
		if (j >= 0)
			continue;
		primes[found++] = i;
		sum += i;
	}
	free(primes);
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), sum;

	lab_start();
	if (lab_number(argc, argv, "plain", 0))
		sum = run_plain(n);
	else
		sum = (lab_is(argc, argv, "form", "table") ? run_table : run)(n);
	lab_stop();
	return lab_report(1, sum);
}
