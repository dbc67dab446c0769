/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A million calls deep on any linked stack: docs/explanation/stacks.md, Statistics. */
#include <stdio.h>
#include <weft/weft.h>

static long sum(long n)
{
	volatile long here = n;

	return n ? sum(n - 1) + here : 0;
}

static void *sums(void *n)
{
	return (void *)sum((long)n);
}

int main(void)
{
	weft_coro_t *k = weft_create(sums, (void *)1000000);
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_stack_stats_t s;

	/* doc: begin counts */
	weft_stack_stats(weft_policy(k), &s);
	printf("%s: %ld; grown in place %zu times, %zu chunks or blocks added, %zu probes\n",
	       weft_policy_name(weft_policy(k)), (long)r.payload, s.growths, s.splits, s.probes);
	/* doc: end */
	weft_delete(k);
}
