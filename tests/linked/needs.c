/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions of needed.c, which weft-as has not instrumented, run on the caller's stack if WEFT_NEEDS says that they
 * need little; on a stack with enough room if it says that they need more; on a system stack if it does not name them.
 * With an argument: as --needs says of `listed`, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "needed.h"

WEFT_NEEDS(small, 128);
WEFT_NEEDS(roomy, 2000);

static int failures;

static void check(const char *what, bool good)
{
	if (!good)
		printf("not ok - %s\n", what), failures++;
}

/* A call in tail position, with arguments on the stack, and its result. */
static long sums(long n)
{
	return small_sum(1, 2, 3, 4, 5, 6, 7, n);
}

WEFT_NEEDS(small_sum, 192);

static bool is_near(const void *a, const void *b)
{
	long distance = (const char *)a - (const char *)b;

	return labs(distance) < 4096;
}

/* Frames of 300 bytes: a chunk of 16 KB ends at some depth. */
static __attribute__((noinline)) void deep(int depth, struct seen *seen)
{
	volatile char frame[300];

	frame[0] = 0;
	seen->small += is_near(small(), (const void *)frame);
	seen->roomy += is_near(roomy(), (const void *)frame);
	seen->listed += is_near(listed(), (const void *)frame);
	seen->unsaid += is_near(unsaid(), (const void *)frame);
	if (depth)
		deep(depth - 1, seen);
	frame[1] = 0;
}

static void *body(void *arg)
{
	check("a tail call with arguments", sums(8) == 36);
	deep(DEPTH - 1, arg);
	return NULL;
}

int main(int argc, char **argv)
{
	struct seen seen = {0, 0, 0, 0};
	weft_coro_t *k = weft_create(body, &seen);
	const bool has_list = argc > 1;

	(void)argv;
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	check("what needs little runs where the caller does", seen.small == DEPTH);
	check("what needs more does where there is room", seen.roomy > DEPTH / 2);
	check("and only there", seen.roomy < DEPTH);
	check("without a word: on a system stack", seen.unsaid == 0);
	check("what the list says", seen.listed == (has_list ? DEPTH : 0));
	printf("%s - %d of %d with room\n", failures ? "not ok" : "ok", seen.roomy, DEPTH);
	return failures != 0;
}
