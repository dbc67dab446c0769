/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 handler_sieve: the sum of the primes below n. Each prime found installs one more handler around the rest of the
 * computation, which answers false for its multiples and asks the next outer one about the others.
 * plain=1: an array of primes, searched in the same order.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_EFFECT(bool, prime, int64_t, e);

struct search {
	int64_t from, end, sum;
};

static void *search(void *arg);

/* Six thousand handlers, all in use for each question, of known depth: small, and packed. */
static const weft_attr_t small = {.stack_size = 8192, .flags = WEFT_NO_GUARD};

/* Answer for the multiples of p while the search goes on beyond it. */
static void search_beyond(int64_t p, struct search *s)
{
	weft_coro_t *k = weft_create_with(search, s, &small);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, prime) {
		int64_t e = weft_args(prime, r)->e;

		weft_reply(prime, r, e % p != 0 && prime(e));
	}
	weft_delete(k);
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

static int64_t run(int64_t n)
{
	struct search s = {2, n, 0};
	weft_coro_t *k = weft_create(search, &s);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, prime)
		weft_reply(prime, r, true);
	weft_delete(k);
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
	sum = lab_number(argc, argv, "plain", 0) ? run_plain(n) : run(n);
	lab_stop();
	return lab_report(1, sum);
}
