/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests that are tasks. Real workers run each test, or the simulator runs it under many seeds. */
#ifndef WEFT_TESTS_SCHED_CHECK_H
#define WEFT_TESTS_SCHED_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weft/sync.h>

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			dprintf(1, "not ok - %s:%d: %s\n", __FILE__, __LINE__, #condition);                            \
			abort();                                                                                       \
		}                                                                                                      \
	} while (0)

#define MS 1000000ull
#define SECOND (1000 * MS)

/* Nanoseconds of CPU time that the process has used. */
static inline uint64_t cpu_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

struct test {
	const char *name;
	weft_fn_t *fn;
};
#define T(name)                                                                                                        \
	{                                                                                                              \
		#name, name                                                                                            \
	}

/* Runs the task by real workers, or simulated if `workers` is 0. The task must return its argument. */
static inline void run_task(unsigned workers, uint64_t seed, weft_fn_t *fn, void *argument)
{
	weft_rt_config_t config = {.workers = workers};
	void *result = NULL;

	CHECK((workers ? weft_rt_run(&config, fn, argument, &result)
		       : weft_simulate(seed, NULL, fn, argument, &result)) == 0);
	CHECK(result == argument);
}

/* PROGRAM WORKERS | simulate SEEDS, [NAME] */
static inline int run_tests(const struct test *tests, size_t count, int argc, char **argv)
{
	bool simulated = argc > 2 && !strcmp(argv[1], "simulate");
	weft_rt_config_t config = {.workers = argc > 1 && !simulated ? (unsigned)atoi(argv[1]) : 0};
	/* Turns take no simulated time, so that the tests control all durations. In tests/sched/catalogue.c
	 * turns take time. */
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	const char *only = argc > 2 + simulated ? argv[2 + simulated] : NULL;
	unsigned long seed, seeds = simulated ? strtoul(argv[2], NULL, 10) : 1;

	for (size_t i = 0; i < count; i++) {
		if (only && strcmp(only, tests[i].name))
			continue;
		for (seed = 0; seed < seeds; seed++) {
			void *result = NULL;
			int error = simulated ? weft_simulate(seed, &timeless, tests[i].fn, &config, &result)
					      : weft_rt_run(&config, tests[i].fn, &config, &result);

			if (error || result != &config) {
				printf("not ok - %s: %s, seed %lu\n", tests[i].name, strerror(-error), seed);
				return 1;
			}
		}
		printf("ok - %s\n", tests[i].name);
	}
	return 0;
}

#endif
