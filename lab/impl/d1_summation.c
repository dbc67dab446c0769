/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * D1 summation: 1 + … + n by recursion that no compiler turns into a loop; t threads sum n / t numbers each, `laps`
 * times. plain=1: in plain threads. loop=1: compilers may turn the recursion into a loop, and gcc -O2 does.
 */
#include "threads.h"

struct job {
	struct lab_thread base;
	int64_t first, last, laps, sum;
	int64_t (*sum_up)(int64_t first, int64_t last);
};

/* Returns first + … + last, with a call for each number. */
static LAB_NOINLINE int64_t sum_up(int64_t first, int64_t last)
{
	int64_t rest;

	if (first > last)
		return 0;
	rest = sum_up(first + 1, last);
	LAB_HIDE(rest);
	return first + rest;
}

/* The number is hidden at each call, because otherwise the compiler computes the sum without a loop. */
static LAB_NOINLINE int64_t sum_up_by_loop(int64_t first, int64_t last)
{
	LAB_HIDE(first);
	return first > last ? 0 : first + sum_up_by_loop(first + 1, last);
}

static void *work(void *arg)
{
	struct job *job = arg;
	int64_t i;

	for (i = 0; i < job->laps; i++) {
		job->sum = job->sum_up(job->first, job->last);
		LAB_KEEP(job);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	enum { FRAME = 16 }; /* a return address and one register */
	static struct job jobs[LAB_MOST_THREADS];
	int64_t n = lab_number(argc, argv, "n", 1000000), t = lab_number(argc, argv, "t", 1);
	int64_t laps = lab_number(argc, argv, "laps", 1), loop = lab_number(argc, argv, "loop", 0), sum = 0, i;

	for (i = 0; i < t && i < LAB_MOST_THREADS; i++)
		jobs[i] = (struct job){.first = n * i / t + 1,
				       .last = n * (i + 1) / t,
				       .laps = laps,
				       .sum_up = loop ? sum_up_by_loop : sum_up};
	lab_threads_run(jobs, sizeof(*jobs), t, (size_t)(n / t + 1) * FRAME, lab_number(argc, argv, "plain", 0), work);
	for (i = 0; i < t; i++)
		sum += jobs[i].sum;
	return lab_report_growth((uint64_t)(n * laps), sum);
}
