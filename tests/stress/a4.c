/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * a4 THREADS COROUTINES N RUNS: experiment A4 of the lab over and over. Each thread runs coroutines that perform
 * async_op(N … 1); a recursive handler returns (i + rest) XOR 0xABCDEF. Every second coroutine is handled inside
 * another coroutine, whose stack must grow for the recursion. All sums must equal those of plain recursion.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

WEFT_EFFECT(int64_t, async_op, int64_t, i);

static long threads, coroutines, n, runs;

static void *body(void *argument)
{
	for (int64_t i = n; i > 0; i--)
		if (async_op(i) != i)
			return "wrong reply";
	return argument;
}

static int64_t handle(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(async_op));
	int64_t i;

	if (weft_returned(r)) {
		if (r.payload)
			abort();
		return 0;
	}
	i = weft_args(async_op, r)->i;
	weft_reply(async_op, r, i);
	/* One wrong sum in a thousand. */
	return (i + handle(k)) ^ (WEFT_CANARY(wrong_sum) && i == 7777 && random() % 1000 == 0 ? 0 : 0xABCDEF);
}

static int64_t plain(int64_t i)
{
	return i ? (i + plain(i - 1)) ^ 0xABCDEF : 0;
}

static int64_t one(void)
{
	weft_coro_t *k = weft_create(body, NULL);
	int64_t result;

	if (!k) {
		perror("weft_create");
		exit(2);
	}
	result = handle(k);
	weft_delete(k);
	return result;
}

static void *inside(void *unused)
{
	(void)unused;
	return (void *)one();
}

static int64_t one_inside(void)
{
	weft_attr_t attr = {.name = "handler", .stack_size = 4 << 20};
	weft_coro_t *k = weft_create_with(inside, NULL, &attr);
	weft_request_t r;

	if (!k) {
		perror("weft_create_with");
		exit(2);
	}
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	if (!weft_returned(r)) {
		fprintf(stderr, "a4: %s\n", weft_request_name(r));
		exit(1);
	}
	weft_delete(k);
	return (int64_t)r.payload;
}

static void *work(void *argument)
{
	int64_t *sum = argument;

	for (long i = 0; i < coroutines; i++)
		*sum += i % 2 ? one_inside() : one();
	return NULL;
}

static int64_t run(void)
{
	struct {
		pthread_t thread;
		int64_t sum;
	} job[64];
	int64_t sum = 0;

	for (long i = 0; i < threads; i++) {
		job[i].sum = 0;
		if (pthread_create(&job[i].thread, NULL, work, &job[i].sum))
			exit(2);
	}
	for (long i = 0; i < threads; i++) {
		pthread_join(job[i].thread, NULL);
		sum += job[i].sum;
	}
	return sum;
}

int main(int count, char **arguments)
{
	int64_t expected, sum;

	if (count != 5 || (threads = atol(arguments[1])) < 1 || threads > 64)
		return 2;
	coroutines = atol(arguments[2]), n = atol(arguments[3]), runs = atol(arguments[4]);
	expected = plain(n) * threads * coroutines;
	for (long i = 0; i < runs; i++) {
		sum = run();
		if (sum != expected) {
			fprintf(stderr, "a4: run %ld: %ld, not %ld\n", i, (long)sum, (long)expected);
			return 1;
		}
		if (i % 8 == 0)
			weft_stack_trim(); /* so that stacks grow again */
	}
	printf("%ld runs of %ld threads, %ld coroutines each, n = %ld: all %ld\n", runs, threads, coroutines, n,
	       (long)expected);
	return 0;
}
