/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 triples: which three different numbers from 1 to n have the sum n? A number is chosen by flip(), performed once
 * for each that could be taken; the handler resumes each flip with both outcomes, and drops who performs fail(). Needs
 * the policy "copy".
 */
#include "lab.h"
#include <weft/weft.h>

enum { DEEPEST = 3, MODULUS = 1000000007 };

WEFT_FAMILY(search, (bool, flip), (void, fail));

static uint64_t flips;

static int64_t choice(int64_t most)
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

/* Where k, the only one that runs, stood at each flip whose other outcome is left to try. */
static weft_coro_t *others[DEEPEST];

/* All results, from where k waits for an outcome. */
static int64_t outcomes(weft_coro_t *k, weft_request_t r, int depth)
{
	weft_request_t next;
	int64_t sum = 0;

	for (;;) {
		flips++;
		if (weft_clone_into(others[depth], k))
			lab_die("weft_clone_into");
		weft_reply(flip, r, true); /* k lies where the request points */
		next = weft_resume(k, NULL, weft_handles(search));
		if (weft_is(flip, next))
			sum += outcomes(k, next, depth + 1);
		else if (weft_returned(next))
			sum += (intptr_t)next.payload;
		if (weft_clone_into(k, others[depth]))
			lab_die("weft_clone_into");
		weft_reply(flip, r, false);
		r = weft_resume(k, NULL, weft_handles(search));
		if (!weft_is(flip, r))
			return (sum + (weft_returned(r) ? (intptr_t)r.payload : 0)) % MODULUS;
	}
}

int main(int argc, char **argv)
{
	void *n = (void *)(intptr_t)lab_number(argc, argv, "n", 10);
	weft_attr_t attr = {.policy = WEFT_COPY};
	weft_coro_t *k = weft_create_with(triple, n, &attr);
	int64_t sum;
	int i;

	for (i = 0; i < DEEPEST; i++)
		others[i] = weft_create_with(triple, n, &attr);
	if (!k || !others[DEEPEST - 1])
		lab_die("weft_create_with");
	lab_start();
	sum = outcomes(k, weft_resume(k, NULL, weft_handles(search)), 0);
	lab_stop();
	for (i = 0; i < DEEPEST; i++)
		weft_delete(others[i]);
	weft_delete(k);
	return lab_report(flips, sum);
}
