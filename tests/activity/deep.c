/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * deep DEPTH: four activities that recurse DEPTH calls deep at once, on a hot stack of 128 KiB. A stack of the usual
 * size has as much room as a thread's stack.
 */
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
			yield_now();
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

/* Plain C: 150 bytes or so a call. */
static long plain_depth(long n)
{
	volatile char pad[100] = {1};

	return n ? plain_depth(n - 1) + pad[0] : 0;
}

static long large_leaf(void)
{
	volatile char frame[300 << 10];

	frame[0] = 1;
	frame[sizeof frame - 1] = 2;
	return frame[0] + frame[sizeof frame - 1];
}

/* Below 4 MiB, and then on stacks of the activity's own. */
static long leaf_at(long n)
{
	volatile long here = n;

	if (n == 0)
		return no_yield_expr(large_leaf());
	yield_now();
	return leaf_at(n - 1) + here - n;
}

/* A program that asks how much stack it has used sees one stack, although other activities run meanwhile. */
static uintptr_t top;

__attribute__((noinline)) static uintptr_t used(void)
{
	volatile char here = 0;

	return top - (uintptr_t)&here;
}

static bool is_one_stack(long n)
{
	volatile char pad[200] = {1};

	if (top - (uintptr_t)__builtin_frame_address(0) > (1 << 20) || used() > (1 << 20) ||
	    top - (uintptr_t)&pad > (1 << 20))
		return false;
	if (n % 64 == 0)
		yield_now();
	return n ? is_one_stack(n - 1) && pad[0] : true;
}

static void *as_a_thread(void *unused)
{
	long small = 0, deep_one = 0;
	bool one_stack = false;
	activity_t all[3];

	no_yield expect(plain_depth(40000) == 40000, "40 000 calls deep in no_yield");
	activate(&all[0])
	{
		small = leaf_at(10);
	}
	activate(&all[1])
	{
		deep_one = leaf_at(100000);
	}
	activate(&all[2])
	{
		top = (uintptr_t)__builtin_frame_address(0);
		one_stack = is_one_stack(2000);
	}
	for (int i = 0; i < 3; i++)
		activity_wait(&all[i]);
	expect(small == 3 && deep_one == 3, "a leaf with a frame of 300 KiB");
	expect(one_stack, "half a megabyte of calls that yield is one stack");
	return unused;
}

/* Each call of each activity has one number that a collector must find. */
enum { MARK = 0x5eed, RANGED = 4, MOST = 650 };
static bool found[RANGED][MOST + 1];
static int at_end;
static bool released;

NO_YIELD static void look(void *unused, const void *low, const void *high)
{
	(void)unused;
	for (const uintptr_t *at = low; (const char *)(at + 1) <= (const char *)high; at++) {
		unsigned who = *at >> 16 & 0xffff, depth = *at & 0xffff;

		if (*at >> 32 == MARK && who < RANGED && depth <= MOST)
			found[who][depth] = true;
	}
}

static long marked(int who, int depth, int most)
{
	volatile uintptr_t mark = (uintptr_t)MARK << 32 | (uintptr_t)who << 16 | (uintptr_t)depth;

	if (depth % 50 == 49)
		yield_now();
	if (depth < most)
		return marked(who, depth + 1, most) + (long)(mark & 1);
	at_end++;
	while (!released)
		yield_now();
	return 0;
}

NO_YIELD static int lost(const int *depth)
{
	int count = weft_activity_each_range(look, NULL) == -ENOTSUP ? 0 : 1;

	for (int who = 0; who < RANGED; who++)
		for (int d = 0; d <= depth[who] && count; d++)
			count += !found[who][d];
	memset(found, 0, sizeof found);
	return count ? count - 1 : 0;
}

static void *ranges(void *unused)
{
	static const int depth[RANGED] = {0, 15, 200, MOST};
	activity_t all[RANGED];
	int missing = 0, i;

	for (i = 0; i < RANGED; i++)
		activate(&all[i], i)
		{
			marked(i, 0, depth[i]);
		}
	while (at_end < RANGED)
		yield_now();
	for (i = 0; i < 20; i++) {
		yield_now();
		missing += lost(depth);
	}
	released = true;
	for (i = 0; i < RANGED; i++)
		activity_wait(&all[i]);
	expect(missing == 0, "all frames are in the ranges that a collector is told");
	return unused;
}

static long without_end(volatile long *calls)
{
	volatile long here = ++*calls;

	return without_end(calls) + here;
}

static void *ends(void *unused)
{
	volatile long calls = 0;
	activity_t a;

	activate(&a)
	{
		without_end(&calls);
	}
	expect(activity_wait(&a) == -ENOMEM && calls > 10000, "a recursion without an end ends its activity");
	return unused;
}

int main(int argc, char **argv)
{
	long depth = argc > 1 ? atol(argv[1]) : 1000;
	weft_activity_config_t config = {.stack_size = 128 << 10};

	expect(weft_activity_run(&config, all_deep, &depth, NULL) == 0, "a group on 128 KiB");
	expect(weft_activity_run(NULL, as_a_thread, NULL, NULL) == 0, "a group on the usual stack");
	for (int i = 0; i < 2; i++) {
		at_end = 0;
		released = false;
		expect(weft_activity_run(i ? &config : NULL, ranges, NULL, NULL) == 0,
		       "a group whose frames are looked at");
	}
	setenv("WEFT_ACTIVITY_STACK", "1M:8M", 1);
	expect(weft_activity_run(NULL, ends, NULL, NULL) == 0, "a group whose activities have 8 MiB");
	return cases_failed != 0;
}
