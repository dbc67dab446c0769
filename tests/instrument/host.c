/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs the `checks` of a program of tests/as in coroutines and in threads, on the policy in force, each time from
 * a different depth, so that chunks end everywhere in it. Fails if a check fails, or if a linked stack never had to
 * grow while they ran. (Under look-ahead it may have grown before: their caller may have reserved all that they need.)
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <weft/weft.h>

int checks(void);

enum { STEP = 208, DEPTHS = 40 };

static size_t grown_in_checks;

static size_t growths(void)
{
	weft_stack_stats_t s;

	weft_stack_stats(weft_default_policy(), &s);
	return s.growths + s.splits;
}

static __attribute__((noinline)) int checks_that_may_grow(void)
{
	size_t before = growths();
	int failures = checks();

	grown_in_checks += growths() - before;
	return failures;
}

/* Starts the checks with that many frames on the stack already. Frames, and not one array: an array that does not fit
 * goes to the heap, and an array that fits also reserves the stack of the calls behind it. */
static __attribute__((noinline)) int from_depth(intptr_t frames)
{
	char frame[STEP] = {1};

	__asm__ volatile("" : : "r"(frame) : "memory"); /* all of it is there */
	return (frames ? from_depth(frames - 1) : checks_that_may_grow()) * frame[0];
}

static void *body(void *depth)
{
	return (void *)(intptr_t)from_depth((intptr_t)depth);
}

/* Twice: the second time the stack has already grown. */
static void *twice(void *depth)
{
	intptr_t failures = (intptr_t)body(depth);

	weft_yield(weft_current(), NULL, NULL);
	return (void *)(failures + (intptr_t)body(depth));
}

static int in_coroutine(intptr_t depth)
{
	weft_coro_t *k = weft_create(twice, (void *)depth);
	weft_request_t r;

	if (!k)
		return 1;
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	if (weft_state(k) != WEFT_SUSPENDED)
		return 1;
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return (int)(intptr_t)r.payload;
}

static int in_thread(intptr_t depth)
{
	pthread_t thread;
	void *failures = NULL;

	if (pthread_create(&thread, NULL, body, (void *)depth) != 0 || pthread_join(thread, &failures) != 0)
		return 1;
	return (int)(intptr_t)failures;
}

int main(void)
{
	weft_policy_t policy = weft_default_policy();
	weft_stack_stats_t s;
	int failures = checks();

	for (intptr_t i = 0; i < DEPTHS; i++)
		failures += in_coroutine(i) + in_thread(i);
	weft_stack_stats(policy, &s);
	printf("%s: %d failures; %zu growths, %zu splits, %zu probes\n", weft_policy_name(policy), failures, s.growths,
	       s.splits, s.probes);
	if (policy >= WEFT_SEGMENTED && policy <= WEFT_MMU &&
	    (policy == WEFT_LOOKAHEAD ? growths() : grown_in_checks) == 0) {
		fprintf(stderr, "no stack has grown\n");
		failures++;
	}
	return failures != 0;
}
