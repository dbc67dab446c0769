/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Activities for gdb to look at (gdb.py): an activity that waits four calls deep with locals that other activities
 * know, an activity so deep that it continued in other stacks, and a coroutine that is suspended.
 */
#include <stdlib.h>
#include <weft/charcoal.h>
#include <weft/coro.h>

static activity_sem_t never;
static weft_coro_t *suspended;

static __attribute__((noinline)) void inner(int depth, int *shared)
{
	int local = depth * 10;

	if (depth)
		inner(depth - 1, &local);
	else
		activity_sem_wait(&never);
	*shared += local;
}

static __attribute__((noinline)) int bottom(void)
{
	activity_sem_wait(&never);
	return 1;
}

static int deep(int n)
{
	volatile char pad[100] = {1};

	return n ? deep(n - 1) + pad[0] : bottom();
}

static WEFT_NO_YIELD __attribute__((noinline)) void *suspends(void *argument)
{
	return weft_suspend(argument);
}

static __attribute__((noinline)) void stop(void)
{
	if (getenv("DUMPS_CORE"))
		abort();
}

int activity_main(int argc, char **argv)
{
	activity_t a, b;
	int sum = argc;

	(void)argv;
	activity_sem_init(&never, 0);
	suspended = weft_create(suspends, &sum);
	if (!suspended)
		return 1;
	weft_resume(suspended, NULL, WEFT_HANDLE_NONE);
	activate(&a)
	{
		inner(3, &sum);
	}
	activate(&b)
	{
		deep(2000);
	}
	yield_now();
	stop();
	exit(0);
}
