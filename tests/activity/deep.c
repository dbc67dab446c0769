/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* deep DEPTH: four activities that recurse so deep at once, on a hot stack of 128 KiB. */
#include "cases.h"

enum { ACTIVITIES = 4 };
static int at_bottom;

/* The variable keeps the compiler from making a loop of it. */
static long deep(long n)
{
	volatile long here = n;

	if (n == 0) {
		at_bottom++;
		while (at_bottom < ACTIVITIES)
			yield();
		return 0;
	}
	return deep(n - 1) + (here == n);
}

static void *all_deep(void *depth)
{
	long n = *(long *)depth, is[ACTIVITIES];
	activity_t all[ACTIVITIES];
	int good = 0;

	for (int i = 0; i < ACTIVITIES; i++)
		activate(&all[i], i)
		{
			is[i] = deep(n + i);
		}
	wait_all(all, ACTIVITIES);
	for (int i = 0; i < ACTIVITIES; i++)
		good += is[i] == n + i;
	expect(good == ACTIVITIES, "deep in four activities at once");
	return NULL;
}

int main(int argc, char **argv)
{
	long depth = argc > 1 ? atol(argv[1]) : 1000;
	weft_activity_config_t config = {.stack_size = 128 << 10};

	expect(weft_activity_run(&config, all_deep, &depth, NULL) == 0, "a group on 128 KiB");
	return cases_failed != 0;
}
