/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A4 threads: t threads run `laps` coroutines each, which perform async_op(i) for i = n…1, and return their thread's
 * number, from 1; a recursive handler returns (i + rest) XOR 0xABCDEF, where the innermost rest is the thread's number.
 * The sum over all threads is the result. plain=1: the recursion alone.
 */
#include "mechanism.h"
#include <pthread.h>
#include <weft/weft.h>

WEFT_EFFECT(int64_t, async_op, int64_t, i);

struct job {
	pthread_t thread;
	int64_t number, n, laps, sum;
	bool plain;
};

static void *body(void *arg)
{
	const struct job *job = arg;
	int64_t i;

	for (i = job->n; i > 0; i--)
		async_op(i);
	return (void *)(intptr_t)job->number;
}

static int64_t handle(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(async_op));
	int64_t i;

	if (weft_returned(r))
		return (intptr_t)r.payload;
	i = weft_args(async_op, r)->i;
	weft_reply(async_op, r, i);
	return (i + handle(k)) ^ 0xABCDEF;
}

static int64_t run(struct job *job)
{
	weft_coro_t *k = weft_create(body, job);
	int64_t result;

	if (!k)
		lab_die("weft_create");
	result = handle(k);
	weft_delete(k);
	return result;
}

static LAB_NOINLINE int64_t run_plain(int64_t n, int64_t number)
{
	int64_t rest;

	if (n == 0)
		return number;
	rest = run_plain(n - 1, number);
	LAB_HIDE(rest);
	return (n + rest) ^ 0xABCDEF;
}

static void *work(void *arg)
{
	struct job *job = arg;
	int64_t i;

	for (i = 0; i < job->laps; i++)
		job->sum += job->plain ? run_plain(job->n, job->number) : run(job);
	return NULL;
}

int main(int argc, char **argv)
{
	enum { MOST = 64 };
	static struct job jobs[MOST];
	int64_t t = lab_number(argc, argv, "t", 4), n = lab_number(argc, argv, "n", 10000);
	int64_t laps = lab_number(argc, argv, "laps", 1000), sum = 0, i;
	bool plain = lab_number(argc, argv, "plain", 0);

	lab_need_mechanism();
	if (t < 1 || t > MOST)
		lab_die("t must be 1…64");
	lab_start();
	for (i = 0; i < t; i++) {
		jobs[i] = (struct job){.number = i + 1, .n = n, .laps = laps, .plain = plain};
		if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]))
			lab_die("pthread_create");
	}
	for (i = 0; i < t; i++) {
		pthread_join(jobs[i].thread, NULL);
		sum += jobs[i].sum;
	}
	lab_stop();
	return lab_report((uint64_t)(t * n * laps), sum);
}
