/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads: the recursive handler of the stack-management paper on four of them, with equal sums; a coroutine that goes
 * from one thread to the next between two resumes; a default handler on a thread that never had a coroutine. C and C++.
 */
#include <pthread.h>
#include <stdio.h>

#include "seff.h"

DEFINE_EFFECT(async_op, 12, int64_t, { int64_t id; });
DEFINE_EFFECT(where, 13, intptr_t, {});

#define THREADS 4
#define OPERATIONS 1000

static void *operations(void *arg)
{
	for (int64_t i = (int64_t)arg; i; i--)
		PERFORM(async_op, i);
	return NULL;
}

static int64_t handle(seff_coroutine_t *k)
{
	seff_request_t request = seff_resume(k, NULL, HANDLES(async_op));

	switch (request.effect) {
		CASE_EFFECT(request, async_op, { return (payload.id + handle(k)) ^ 0xABCDEF; })
		CASE_RETURN(request, { return 0; })
	}
	abort();
}

static void *run_many(void *result)
{
	int64_t sum = 0;

	for (int i = 0; i < 50; i++) {
		seff_coroutine_t *k = seff_coroutine_new(operations, (void *)(int64_t)OPERATIONS);

		sum += handle(k);
		seff_coroutine_delete(k);
	}
	*(int64_t *)result = sum;
	return NULL;
}

/* Returns the result of the recursion above. */
static int64_t expected(void)
{
	int64_t rest = 0;

	for (int64_t i = 1; i <= OPERATIONS; i++)
		rest = (i + rest) ^ 0xABCDEF;
	return 50 * rest;
}

static __thread intptr_t thread_number;

static void *sums_threads(void *arg)
{
	intptr_t sum = 0;

	for (int i = 0; i < THREADS; i++)
		sum = sum * 10 + PERFORM(where);
	return (void *)(sum + (arg ? 1 : 0));
}

struct hop {
	seff_coroutine_t *k;
	intptr_t number;
	seff_request_t request;
};

static void *hop(void *arg)
{
	struct hop *hop = (struct hop *)arg;

	thread_number = hop->number;
	hop->request = seff_resume(hop->k, (void *)thread_number, HANDLES(where));
	return NULL;
}

static void *default_where(void *arg)
{
	(void)arg;
	return (void *)(intptr_t)77;
}

static void *performs_outside(void *result)
{
	*(intptr_t *)result = PERFORM(where);
	return NULL;
}

static void in_a_thread(seff_start_fun_t *fn, void *arg)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, fn, arg))
		abort();
	pthread_join(thread, NULL);
}

int main(void)
{
	pthread_t threads[THREADS];
	int64_t sums[THREADS];
	struct hop journey = {seff_coroutine_new(sums_threads, NULL), 0, {0, NULL}};
	intptr_t outside = 0;
	int equal = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, run_many, &sums[i]))
			abort();
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		equal += sums[i] == expected();
	}
	printf("equal sums: %d\n", equal);
	for (; journey.number <= THREADS; journey.number++)
		in_a_thread(hop, &journey);
	assert(seff_finished(journey.request) && journey.k->state == FINISHED);
	printf("threads seen: %d\n", (int)(intptr_t)journey.request.payload);
	seff_coroutine_delete(journey.k);
	seff_set_default_handler(EFF_ID(where), default_where);
	in_a_thread(performs_outside, &outside);
	printf("outside: %d\n", (int)outside);
	return 0;
}
