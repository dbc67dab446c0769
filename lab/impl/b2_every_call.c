/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B2 hot split at every call: a loop calls a function whose frame has an array of 3 KiB and which multiplies m times.
 * The loop runs in a coroutine whose stack has `stack` bytes (0: the policy's default). In a small segment the array
 * never fits, so each call switches to another segment and back. plain=1: on the thread's own stack, without a
 * coroutine.
 *
 * As in the source, the number that is multiplied is global, so that a call's first multiplication waits for the store
 * of the call before.
 */
#include "lab.h"
#include <weft/weft.h>

enum { ARRAY = 3072 };

static double x = 4;

/* The array's address escapes, so the frame holds the array, although nothing is written there. */
#define CALLEE(m)                                                                                                      \
	static LAB_NOINLINE void callee_##m(void)                                                                      \
	{                                                                                                              \
		char array[ARRAY], *start = array;                                                                     \
		double product = x;                                                                                    \
		int i;                                                                                                 \
                                                                                                                       \
		_Pragma("GCC unroll 20") for (i = 0; i < (m); i++) product *= 3.0;                                     \
		x = product;                                                                                           \
		LAB_KEEP(start);                                                                                       \
	}                                                                                                              \
                                                                                                                       \
	static void *loop_##m(void *calls)                                                                             \
	{                                                                                                              \
		int64_t i, n = *(const int64_t *)calls;                                                                \
                                                                                                                       \
		for (i = 0; i < n; i++)                                                                                \
			callee_##m();                                                                                  \
		return NULL;                                                                                           \
	}

CALLEE(0)
CALLEE(5)
CALLEE(10)
CALLEE(15)
CALLEE(20)

static weft_fn_t *loop_of(int64_t m)
{
	switch (m) {
	case 0:
		return loop_0;
	case 5:
		return loop_5;
	case 10:
		return loop_10;
	case 15:
		return loop_15;
	case 20:
		return loop_20;
	}
	errno = 0;
	lab_die("m must be 0, 5, 10, 15 or 20: choosing the callee");
	return NULL;
}

static void run_in_coroutine(weft_fn_t *loop, int64_t *calls, size_t stack)
{
	weft_attr_t attr = {.name = "hot split", .stack_size = stack};
	weft_coro_t *k = weft_create_with(loop, calls, &attr);

	if (!k)
		lab_die("weft_create_with");
	lab_start();
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	lab_stop();
	weft_delete(k);
}

static void run_plain(weft_fn_t *loop, int64_t *calls)
{
	lab_start();
	loop(calls);
	lab_stop();
}

/* "splits": segments that were linked. One segment is kept and reused at each call; a coroutine with room links
 * none. */
static int report(int64_t calls)
{
	weft_stack_stats_t stats = {0};
	char text[32], more[32];

	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	snprintf(text, sizeof(text), "%" PRId64, calls);
	snprintf(more, sizeof(more), ", \"splits\": %zu", stats.splits);
	return lab_report_more((uint64_t)calls, text, more);
}

int main(int argc, char **argv)
{
	int64_t calls = lab_number(argc, argv, "calls", 1000);
	weft_fn_t *loop = loop_of(lab_number(argc, argv, "m", 0));

	if (lab_number(argc, argv, "plain", 0))
		run_plain(loop, &calls);
	else
		run_in_coroutine(loop, &calls, (size_t)lab_number(argc, argv, "stack", 0));
	return report(calls);
}
