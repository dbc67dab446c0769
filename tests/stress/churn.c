/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * churn SECONDS: coroutines of all policies and many sizes are created on one thread, run on a second and deleted on a
 * third; threads come and go. At the end nothing is in use, and address space has not grown without bound.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/weft.h>

enum { THREADS = 6, HALL = 512 };

static struct {
	pthread_mutex_t lock;
	weft_coro_t *k[HALL];
	int count;
} hall = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_ulong made, ended;
static time_t until;

static void fail(const char *why)
{
	fprintf(stderr, "churn: %s\n", why);
	exit(1);
}

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static __attribute__((noinline)) size_t use(size_t bytes)
{
	volatile char frame[512];

	frame[0] = (char)bytes;
	return bytes > sizeof frame ? use(bytes - sizeof frame) + (size_t)(frame[0] & 1) : 0;
}

static void *lives(void *argument)
{
	size_t n = (size_t)argument;
	double x = (double)n;

	for (size_t i = 0; i < n % 7; i++) {
		use(n % 24 * 1024);
		weft_suspend(argument);
		if (x != (double)n)
			fail("a value changed");
	}
	return argument;
}

/* Puts a coroutine in (NULL: none) and takes a coroutine out; returns k if the hall is full. */
static weft_coro_t *exchange(weft_coro_t *k, uint64_t x)
{
	weft_coro_t *out = NULL;
	int i;

	pthread_mutex_lock(&hall.lock);
	if (hall.count && (x % 2 || hall.count == HALL)) {
		i = (int)(x % (uint64_t)hall.count);
		out = hall.k[i];
		hall.k[i] = hall.k[--hall.count];
	}
	if (k)
		hall.k[hall.count++] = k;
	pthread_mutex_unlock(&hall.lock);
	return out;
}

static weft_coro_t *make(uint64_t x)
{
	weft_attr_t attr = {.policy = (weft_policy_t)(x % WEFT_POLICY_COUNT),
			    .stack_size = (size_t)(64 << x / 8 % 3) << 10};
	weft_coro_t *k = weft_create_with(lives, (void *)x, &attr);

	if (!k)
		fail("weft_create_with");
	atomic_fetch_add_explicit(&made, 1, memory_order_relaxed);
	return k;
}

static void end(weft_coro_t *k)
{
	if (WEFT_NO_CANARY(leaks) || atomic_load(&ended) % 100)
		weft_delete(k);
	atomic_fetch_add_explicit(&ended, 1, memory_order_relaxed);
}

static void *work(void *argument)
{
	uint64_t state = (uint64_t)argument;
	weft_coro_t *k;

	for (int i = 0; i < 20000 && time(NULL) < until; i++) {
		uint64_t x = next(&state);

		k = exchange(x % 3 ? NULL : make(x), next(&state));
		if (!k)
			continue;
		if (x % 4 && weft_state(k) == WEFT_SUSPENDED) {
			weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

			if (!weft_returned(r) && r.effect != &weft_suspended)
				fail(weft_request_name(r));
			k = exchange(k, 2 * next(&state) + 1);
			if (!k)
				continue;
		}
		end(k);
		if (x % 4096 == 0)
			weft_stack_trim();
	}
	return NULL;
}

static void check(void)
{
	size_t reserved = 0;
	weft_stack_stats_t stats;

	for (int p = 1; p < WEFT_POLICY_COUNT; p++) {
		weft_stack_stats((weft_policy_t)p, &stats);
		if (stats.live)
			fail("stacks are in use at the end");
		if (stats.failures)
			fail("a coroutine failed");
		reserved += stats.reserved;
	}
	printf("%lu made, %lu ended, %zu MiB reserved\n", made, ended, reserved >> 20);
	if (made != ended || made < 10000)
		fail("too few, or not all were ended");
	/* At most the stacks of the hall, of the threads' bins, and the gaps between them. */
	if (reserved > (size_t)8 << 30)
		fail("address space grew without bound");
}

int main(int count, char **arguments)
{
	pthread_t thread[THREADS];
	weft_coro_t *k;
	uint64_t seed = 1;

	until = time(NULL) + (count > 1 ? atol(arguments[1]) : 5);
	while (time(NULL) < until) {
		for (int i = 0; i < THREADS; i++)
			if (pthread_create(&thread[i], NULL, work, (void *)seed++))
				fail("pthread_create");
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
	}
	while ((k = exchange(NULL, 1)))
		end(k);
	check();
	return 0;
}
