/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Scenarios run in children; what is expected of each is written next to it. */
#ifndef WEFT_TESTS_SCENARIO_H
#define WEFT_TESTS_SCENARIO_H

#include <weft/weft.h>

#include "unit/child.h"

struct scenario {
	const char *name;
	void (*run)(void);
	int signal;	  /* it must die by this signal; 0: it must exit with 0 */
	const char *text; /* standard error must contain this; "" or NULL: it must be empty */
};

/* Runs the scenarios whose names contain the argument; TAP on standard output. Returns main's result. */
int run_scenarios(const struct scenario *scenarios, size_t count, int arguments, char **argument);

/* Uses this many bytes of the stack, at least. */
static __attribute__((noinline, unused)) size_t use_stack(size_t bytes)
{
	volatile char frame[1024];
	size_t frames = 1;

	frame[0] = frame[1023] = (char)bytes;
	if (bytes > sizeof frame)
		frames += use_stack(bytes - sizeof frame);
	__asm__ volatile("" : : "r"(frame) : "memory"); /* otherwise clang turns it into a loop */
	return frames;
}

/* A coroutine that uses the number of bytes of its stack given by its argument. */
static __attribute__((unused)) void *uses_stack(void *bytes)
{
	use_stack((size_t)bytes);
	return bytes;
}

static inline weft_coro_t *make_on(weft_policy_t policy, size_t size, weft_fn_t *fn, void *argument)
{
	weft_attr_t attr = {.name = "subject", .policy = policy, .stack_size = size};
	weft_coro_t *k = weft_create_with(fn, argument, &attr);

	REQUIRE(k);
	return k;
}

static inline weft_request_t resume(weft_coro_t *k)
{
	return weft_resume(k, NULL, WEFT_HANDLE_NONE);
}

static inline weft_stack_stats_t stats_of(weft_policy_t policy)
{
	weft_stack_stats_t stats;

	REQUIRE(!weft_stack_stats(policy, &stats));
	return stats;
}

#endif
