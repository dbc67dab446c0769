/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "library.h"
#include <weft/charcoal.h>

static long turns;

#if WEFT_CANARY(atomic)
NO_YIELD
#endif
long library_sum(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++) {
		sum += i;
		yield_now();
	}
	return sum;
}

long library_map(long (*f)(long), int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += f(i);
	return sum;
}

/* Counts each time that another activity ran since. */
static void take_turns(int n, int me, int *last)
{
	for (int i = 0; i < n; i++) {
		turns += *last != me;
		*last = me;
		yield_now();
	}
}

static void *group(void *arg)
{
	activity_t a, b;
	int n = *(int *)arg, last = 0;

	activate(&a)
	{
		take_turns(n, 1, &last);
	}
	activate(&b)
	{
		take_turns(n, 2, &last);
	}
	activity_wait(&a);
	activity_wait(&b);
	return NULL;
}

long library_group(int n)
{
	turns = 0;
	return weft_activity_run(NULL, group, &n, NULL) ? -1 : turns;
}
