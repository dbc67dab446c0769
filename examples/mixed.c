/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mixed.c: a coroutine resumed by a loop, under a table: the clauses of the table run effects in place, and the loop
 * does not see them. */
/* doc: begin program */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

WEFT_EFFECT(void, yield_prime, int, prime);
WEFT_EFFECT(void, tick);

static void *primes(void *unused)
{
	for (int n = 2;; n++) {
		int divisor = 2;

		for (; divisor * divisor <= n && n % divisor; divisor++)
			tick();
		if (divisor * divisor > n)
			yield_prime(n);
	}
	return unused;
}

static void on_tick(void *state)
{
	++*(long *)state;
}

WEFT_HANDLER(counted, weft_tail(tick, on_tick), weft_requested(yield_prime));

int main(void)
{
	weft_coro_t *k = must(weft_create(primes, NULL));
	long ticks = 0;

	weft_set_failure_hook(must_not_fail);
	for (int i = 0; i < 10; i++) {
		weft_request_t r = weft_resume_under(k, NULL, &counted, &ticks);

		printf("%d ", weft_args(yield_prime, r)->prime);
	}
	printf("after %ld steps\n", ticks);
	weft_delete(k);
}
/* doc: end */
