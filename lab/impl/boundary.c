/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * boundary: t threads call a function n times in all, and each call switches to the next chunk and back. Each thread
 * searches for the depth at which its coroutine's chunk ends: there the function's frame is in a different chunk than
 * its caller's. Its time is its own CPU time for the calls, after all threads have made some that are not timed.
 */
#include "lab.h"
#include <pthread.h>
#include <weft/weft.h>

enum { MOST = 64, STACK = 64 * 1024, WARM_UP = 200 };

static pthread_barrier_t all_warm;

struct job {
	pthread_t thread;
	int64_t calls, made, spent;
};

/* Its frame is larger than its callers' frames, so that this call crosses the boundary. */
static LAB_NOINLINE uintptr_t callee(void)
{
	volatile char frame[800];

	frame[0] = 0;
	return (uintptr_t)frame + (uintptr_t)frame[0];
}

static LAB_NOINLINE int64_t call(int64_t times)
{
	int64_t i;

	for (i = 0; i < times; i++)
		(void)callee();
	return i;
}

static LAB_NOINLINE bool crosses(void)
{
	volatile char here = 0;
	uintptr_t apart = (uintptr_t)&here - callee();

	return apart > 4096;
}

static LAB_NOINLINE void descend(struct job *j, int64_t limit)
{
	volatile char frame[32];
	int64_t began;

	frame[0] = 0;
	if (crosses()) {
		call(WARM_UP);
		pthread_barrier_wait(&all_warm);
		began = lab_now(CLOCK_THREAD_CPUTIME_ID);
		j->made = call(j->calls);
		j->spent = lab_now(CLOCK_THREAD_CPUTIME_ID) - began;
	} else if (limit) {
		descend(j, limit - 1);
	}
	frame[1] = frame[0];
}

static void *body(void *job)
{
	descend(job, STACK);
	return NULL;
}

static void *work(void *job)
{
	weft_attr_t attr = {.name = "boundary", .stack_size = STACK};
	weft_coro_t *k = weft_create_with(body, job, &attr);

	if (!k)
		lab_die("weft_create_with");
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return NULL;
}

int main(int argc, char **argv)
{
	static struct job jobs[MOST];
	int64_t t = lab_number(argc, argv, "t", 1), n = lab_number(argc, argv, "n", 1000), made = 0, i;

	if (t < 1 || t > MOST)
		lab_die("t must be 1…64");
	pthread_barrier_init(&all_warm, NULL, (unsigned)t);
	lab_start();
	for (i = 0; i < t; i++) {
		jobs[i].calls = n / t;
		if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]))
			lab_die("pthread_create");
	}
	for (i = 0; i < t; i++)
		pthread_join(jobs[i].thread, NULL);
	lab_stop();
	lab_spent.cpu = 0;
	for (i = 0; i < t; i++) {
		made += jobs[i].made;
		lab_spent.cpu += jobs[i].spent;
	}
	return lab_report((uint64_t)n, made);
}
