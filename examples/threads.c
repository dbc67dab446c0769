/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads whose stacks follow a policy, and a call that needs more stack than its caller has. Neither needs code
 * compiled for linked stacks, because such code does both automatically.
 */
#include <stdio.h>
#include <weft/thread.h>
#include <weft/weft.h>

enum { WORKERS = 4, LEVELS = 2000 };

/* doc: begin system */
/* A megabyte of frames, more than a worker's coroutine has. */
static long deep(long level)
{
	volatile char frame[512];

	frame[level % 512] = 1;
	return level ? deep(level - 1) + frame[level % 512] : 0;
}

static void *counts(void *levels)
{
	return (void *)weft_on_system_stack(deep, *(long *)levels);
}
/* doc: end */

/* doc: begin thread */
static void *work(void *levels)
{
	weft_coro_t *k = weft_create(counts, levels);
	weft_request_t r;

	if (!k)
		return NULL;
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return weft_returned(r) ? r.payload : NULL;
}

int main(void)
{
	weft_attr_t attr = {.name = "worker", .stack_size = 64 * 1024};
	long levels = LEVELS, sum = 0;
	pthread_t thread[WORKERS];
	int started = 0, done = 0;
	void *result;

	while (started < WORKERS && !weft_thread_create(&thread[started], &attr, work, &levels))
		started++;
	for (int i = 0; i < started; i++) {
		pthread_join(thread[i], &result);
		sum += (long)result;
		done += result != NULL;
	}
	if (done < WORKERS) {
		fprintf(stderr, "no memory for %d of the workers\n", WORKERS - done);
		return 1;
	}
	printf("%d workers counted %ld levels\n", WORKERS, sum);
}
/* doc: end */
