/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The worst of 20 000 depths at which a loop calls an empty function: docs/explanation/stacks.md, Limits. */
#define _GNU_SOURCE
#include <stdio.h>
#include <time.h>
#include <weft/weft.h>

static __attribute__((noinline)) void empty(void)
{
	volatile char frame[64];

	frame[0] = 0;
	(void)frame[0];
}

static double worst;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static __attribute__((noinline)) void measure(void)
{
	double start = now(), each;

	for (int i = 0; i < 1000; i++)
		empty();
	each = (now() - start) / 1000;
	if (each > worst)
		worst = each;
}

static __attribute__((noinline)) void descend(long n)
{
	volatile long here = n;

	measure();
	if (n)
		descend(n - 1);
	here++;
}

static void *body(void *n)
{
	descend((long)n);
	return NULL;
}

int main(void)
{
	weft_coro_t *k = weft_create(body, (void *)20000);

	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	printf("%s: %.1f ns\n", weft_policy_name(weft_policy(k)), worst);
}
