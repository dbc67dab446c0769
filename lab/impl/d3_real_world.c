/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * D3 "real world": the call graph a → {b → c → {d, e}, f}, f recursive 100 deep; every call does work of its own, a
 * recursive call a thousandth of it. t threads go through it n times each; work = units per non-recursive call.
 * plain=1: in plain threads.
 */
#include "threads.h"

enum { RECURSION = 100 };

struct job {
	struct lab_thread base;
	int64_t rounds, steps;
	uint64_t state;
};

/* A unit of work is one step of a loop, which takes one cycle on current processors: x = 5 x. */
static inline uint64_t toil(uint64_t x, int64_t steps)
{
	int64_t i;

	for (i = 0; i < steps; i++) {
		x += x << 2;
		LAB_HIDE(x);
	}
	return x;
}

static LAB_NOINLINE uint64_t d(uint64_t x, int64_t steps)
{
	return toil(x, steps) ^ 4;
}

static LAB_NOINLINE uint64_t e(uint64_t x, int64_t steps)
{
	return toil(x, steps) ^ 5;
}

static LAB_NOINLINE uint64_t c(uint64_t x, int64_t steps)
{
	x = e(d(toil(x, steps), steps), steps);
	LAB_HIDE(x);
	return x ^ 3;
}

static LAB_NOINLINE uint64_t b(uint64_t x, int64_t steps)
{
	x = c(toil(x, steps), steps);
	LAB_HIDE(x);
	return x ^ 2;
}

static LAB_NOINLINE uint64_t f(uint64_t x, int64_t steps, int64_t depth)
{
	x = toil(x, steps);
	if (depth > 1)
		x = f(x, steps, depth - 1);
	LAB_HIDE(x);
	return x ^ 6;
}

static LAB_NOINLINE uint64_t a(uint64_t x, int64_t steps)
{
	x = b(toil(x, steps), steps);
	x = f(x, steps / 1000, RECURSION);
	LAB_HIDE(x);
	return x ^ 1;
}

static void *work(void *arg)
{
	struct job *job = arg;
	int64_t i;

	for (i = 0; i < job->rounds; i++)
		job->state = a(job->state, job->steps);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct job jobs[LAB_MOST_THREADS];
	int64_t n = lab_number(argc, argv, "n", 10), t = lab_number(argc, argv, "t", 1), i;
	int64_t steps = lab_number(argc, argv, "work", 1000);
	uint64_t sum = 0;

	for (i = 0; i < t && i < LAB_MOST_THREADS; i++)
		jobs[i] = (struct job){.rounds = n, .steps = steps, .state = (uint64_t)i};
	lab_threads_run(jobs, sizeof(*jobs), t, LAB_STACK_RESERVE, lab_number(argc, argv, "plain", 0), work);
	for (i = 0; i < t; i++)
		sum += jobs[i].state;
	return lab_report_growth((uint64_t)(n * t), (int64_t)(sum >> 1));
}
