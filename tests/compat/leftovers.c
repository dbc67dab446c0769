/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Linked into a program, it ends the program with exit code 99 if any coroutine lives at exit.
 */
#include <stdio.h>
#include <unistd.h>
#include <weft/stack.h>

__attribute__((destructor)) static void look_for_leftovers(void)
{
	weft_stack_stats_t stats;

	fflush(stdout);
	for (int policy = WEFT_FIXED; policy < WEFT_POLICY_COUNT; policy++) {
		weft_stack_stats((weft_policy_t)policy, &stats);
		if (!stats.live)
			continue;
		fprintf(stderr, "%zu coroutines were not given back (%s)\n", stats.live,
			weft_policy_name((weft_policy_t)policy));
		_exit(99);
	}
}
