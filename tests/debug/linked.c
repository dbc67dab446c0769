/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instrumented: frames on many chunks, in coroutines and threads, for debuggers to walk. Each scenario ends in
 * stop(name). Arguments:
 *   walk, libunwind   look at itself instead, as chains do
 *   step, cold        go to another chunk and come back, between step_begin and step_end; cold: for the first time
 *   spin              be busy far down, for a profiler
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "look.h"
#include "step.h"

enum { DEPTH = 40, WIDTH = 3000 };

static void (*at_bottom)(void);

/* Forty frames of 3000 bytes do not fit a chunk of 1 KiB, of 8 KiB, nor of 64 KiB. */
FRAME int descend(int depth);
FRAME int descend(int depth)
{
	volatile char here[WIDTH];

	here[depth] = (char)depth;
	if (depth)
		here[depth] = (char)(descend(depth - 1) + 1);
	else
		at_bottom();
	KEEP();
	return here[depth];
}

static const char *scenario;

FRAME void bottom(void);
FRAME void bottom(void)
{
	stop(scenario);
	KEEP();
}

FRAME int compares(const void *a, const void *b);
FRAME int compares(const void *a, const void *b)
{
	static int calls;

	if (!calls++)
		descend(DEPTH);
	KEEP();
	return *(const int *)a - *(const int *)b;
}

FRAME void sorts(void);
FRAME void sorts(void)
{
	int number[] = {2, 1};

	at_bottom = bottom;
	qsort(number, 2, sizeof *number, compares);
	KEEP();
}

FRAME void *body(void *arg);
FRAME void *body(void *arg)
{
	descend(DEPTH);
	KEEP();
	return arg;
}

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k)
		exit(1);
	return k;
}

FRAME void resumes(void);
FRAME void resumes(void)
{
	weft_coro_t *k = make(body, NULL);

	at_bottom = bottom;
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	KEEP();
}

FRAME void run(const char *name, void (*deepest)(void));
FRAME void run(const char *name, void (*deepest)(void))
{
	weft_coro_t *k = make(body, NULL);

	scenario = name;
	at_bottom = deepest;
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	KEEP();
}

FRAME void *threaded(void *arg);
FRAME void *threaded(void *arg)
{
	descend(DEPTH);
	KEEP();
	return arg;
}

static void in_thread(const char *name, void (*deepest)(void))
{
	pthread_t thread;

	scenario = name;
	at_bottom = deepest;
	if (weft_thread_create(&thread, NULL, threaded, NULL) || pthread_join(thread, NULL))
		exit(1);
}

FRAME void spin(void);
FRAME void spin(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 2;

	while (clock() < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	KEEP();
}

FRAME void nothing(void);
FRAME void nothing(void)
{
	KEEP();
}

FRAME void *steps(void *arg);
FRAME void *steps(void *arg)
{
	at_bottom = nothing;
	if (!arg)
		descend(1); /* so that slow paths of the first call have been taken */
	step_begin();
	descend(1);
	step_end();
	KEEP();
	return arg;
}

FRAME void step_main(void *cold);
FRAME void step_main(void *cold)
{
	weft_coro_t *k = make(steps, cold);

	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	KEEP();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	weft_stack_stats_t stats;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(mode, "step") || !strcmp(mode, "cold")) {
		step_main(*mode == 'c' ? argv : NULL);
	} else if (!strcmp(mode, "spin")) {
		run(mode, spin);
	} else {
		if (argc > 1 && !look_by(mode))
			return 2;
		run("one", bottom);
		run("nested", resumes);
		run("callback", sorts);
		in_thread("thread", bottom);
		in_thread("coroutine in a thread", resumes);
	}
	if (weft_stack_stats(WEFT_DEFAULT_POLICY, &stats))
		return 1;
	printf("links %zu\n", stats.splits);
	return 0;
}
