/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that wait seventeen calls deep on linked stacks: none needs a second chunk. */
#include <stdio.h>
#include <weft/stack.h>

#include "seff.h"

enum { COROUTINES = 100 };

static __attribute__((noinline)) void *deep(void *arg)
{
	char here[1];
	intptr_t depth = (intptr_t)arg;

	__asm__ volatile("" : : "r"(here) : "memory");
	if (depth) {
		deep((void *)(depth - 1));
		return here[0] ? arg : NULL;
	}
	seff_yield(seff_current_coroutine(), 0, NULL);
	return arg;
}

int main(void)
{
	static seff_coroutine_t *k[COROUTINES];
	weft_stack_stats_t stats;

	for (int i = 0; i < COROUTINES; i++) {
		k[i] = seff_coroutine_new(deep, (void *)16);
		if (!k[i])
			return 1;
		seff_resume_handling_all(k[i], NULL);
	}
	weft_stack_stats(WEFT_SEGMENTED, &stats);
	for (int i = 0; i < COROUTINES; i++)
		seff_coroutine_delete(k[i]);
	if (!stats.splits)
		return 0;
	fprintf(stderr, "%zu chunks were linked\n", stats.splits);
	return 1;
}
