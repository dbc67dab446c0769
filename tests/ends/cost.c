/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cost: the cost of weft/defer.h in nanoseconds. Not a test: gcc -O2 -Iinclude tests/ends/cost.c libweft.a -pthread */
#include <stdio.h>
#include <time.h>
#include <weft/weft.h>

WEFT_EXCEPTION(fail);

enum { ROUNDS = 3000000 };

static void nothing(void *arg)
{
	__asm__ volatile("" : : "r"(arg) : "memory");
}

static void *waits(void *arg)
{
	if (arg) {
		weft_defer(nothing, arg);
		weft_suspend(NULL);
	}
	weft_suspend(NULL);
	return arg;
}

/* For `arg` nested coroutines; each defers a cleanup if `deferring`. */
static bool deferring;

static void *nests(void *arg)
{
	size_t depth = (size_t)arg;
	weft_coro_t *k;

	if (depth == 1) {
		if (!deferring)
			fail();
		weft_defer(nothing, arg);
		fail();
	}
	k = weft_create(nests, (void *)(depth - 1));
	if (deferring) {
		weft_defer(nothing, arg);
		weft_resume(k, NULL, WEFT_HANDLE_NONE);
	}
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return NULL;
}

static __attribute__((noinline)) void scope(void *arg)
{
	weft_defer(nothing, arg);
	__asm__ volatile("");
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double deletes(void *arg)
{
	double start = now();

	for (int i = 0; i < ROUNDS; i++) {
		weft_coro_t *k = weft_create(waits, arg);

		weft_resume(k, NULL, WEFT_HANDLE_NONE);
		weft_delete(k);
	}
	return (now() - start) / ROUNDS;
}

static double leaves(size_t depth, bool defers)
{
	double start = now();

	deferring = defers;
	for (int i = 0; i < ROUNDS / 10; i++) {
		weft_coro_t *k = weft_create(nests, (void *)depth);

		weft_resume(k, NULL, weft_handles(fail));
		weft_delete(k);
	}
	return (now() - start) / (ROUNDS / 10.0);
}

int main(void)
{
	double start = now();

	for (int i = 0; i < 10 * ROUNDS; i++)
		scope(&start);
	printf("a scope, with a call around it: %.2f\n", (now() - start) / (10.0 * ROUNDS));
	printf("make, resume, delete while suspended: %.1f; with one thing deferred %.1f\n", deletes(NULL),
	       deletes(&start));
	printf("leave 1 coroutine: %.1f; deferring %.1f\n", leaves(1, false), leaves(1, true));
	printf("leave 10: %.1f; each deferring %.1f\n", leaves(10, false), leaves(10, true));
	return 0;
}
