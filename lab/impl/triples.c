/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 triples: find three different numbers from 1 to n whose sum is n. A number is chosen by flip(), performed once for
 * each candidate; the handler resumes each flip with both outcomes, and backtracks at fail(). Needs the policy "copy".
 */
#include "lab.h"
#include <weft/weft.h>

enum { DEEPEST = 3, MODULUS = 1000000007 };

WEFT_FAMILY(search, (bool, flip), (void, fail));

static uint64_t flips;

/* Inlined, because it returns more often than it is called, and processors mispredict such returns. */
static inline __attribute__((always_inline)) int64_t choice(int64_t most)
{
	for (; most >= 1; most--)
		if (flip())
			return most;
	fail();
	return 0;
}

static void *triple(void *n)
{
	int64_t i = choice((intptr_t)n), j = choice(i - 1), k = choice(j - 1);

	if (i + j + k != (intptr_t)n)
		fail();
	return (void *)(intptr_t)((53 * i + 2809 * j + 148877 * k) % MODULUS);
}

/* Returns the results of all outcomes, in sequence. */
static int64_t outcomes(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(search)), flipped = r;
	void *payloads[DEEPEST]; /* flips whose second outcome remains */
	int depth = 0;
	int64_t sum = 0;

	for (;;) {
		if (weft_is(flip, r)) {
			flips++;
			if (weft_checkpoint(k))
				lab_die("weft_checkpoint");
			weft_reply(flip, r, true); /* the request points into k's stack, in place */
			payloads[depth++] = r.payload;
		} else {
			if (weft_returned(r))
				sum = (sum + (intptr_t)r.payload) % MODULUS;
			if (!depth)
				return sum;
			if (weft_checkpoint_restore_last(k))
				lab_die("weft_checkpoint_restore_last");
			flipped.payload = payloads[--depth];
			weft_reply(flip, flipped, false);
		}
		r = weft_resume(k, NULL, weft_handles(search));
	}
}

int main(int argc, char **argv)
{
	void *n = (void *)(intptr_t)lab_number(argc, argv, "n", 10);
	weft_attr_t attr = {.policy = WEFT_COPY};
	weft_coro_t *k = weft_create_with(triple, n, &attr);
	int64_t sum;

	if (!k)
		lab_die("weft_create_with");
	lab_start();
	sum = outcomes(k);
	lab_stop();
	weft_delete(k);
	return lab_report(flips, sum);
}
