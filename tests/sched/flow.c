/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Again and again, a task of one worker calls a coroutine that becomes deep, and a task of another worker lets it
 * return. The blocks of its frames move from one thread to the other, and must be reused by the first. Otherwise each
 * turn needs new memory.
 */
#include "check.h"

#include <stdio.h>

enum { TURNS = 20000, DEPTH = 50, MOST = 32 << 20 };

static weft_coro_t *coroutine;
static weft_chan_t *deep, *flat;

static __attribute__((noinline)) int descend(int depth)
{
	volatile char room[100];

	room[depth] = 1;
	if (depth)
		return descend(depth - 1) + room[depth];
	weft_suspend(NULL);
	return 0;
}

static void *body(void *unused)
{
	for (;;) {
		CHECK(descend(DEPTH) == DEPTH);
		weft_suspend(NULL);
	}
	return unused;
}

static void *calls(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		weft_resume(coroutine, NULL, WEFT_HANDLE_NONE);
		CHECK(!weft_chan_send(deep, NULL) && !weft_chan_receive(flat, NULL));
	}
	return unused;
}

static void *returns(void *unused)
{
	for (int i = 0; i < TURNS; i++) {
		CHECK(!weft_chan_receive(deep, NULL));
		weft_resume(coroutine, NULL, WEFT_HANDLE_NONE);
		CHECK(!weft_chan_send(flat, NULL));
	}
	return unused;
}

static long resident(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages = 0;

	CHECK(file && fscanf(file, "%*d %ld", &pages) == 1);
	fclose(file);
	return pages * 4096;
}

static void *run(void *unused)
{
	const weft_task_attr_t one = {.worker = 1}, two = {.worker = 2};
	long before = resident();

	deep = weft_chan_make(0, 1);
	flat = weft_chan_make(0, 1);
	coroutine = weft_create(body, NULL);
	CHECK(deep && flat && coroutine);
	WEFT_SCOPE(scope);
	CHECK(!weft_scope_spawn_with(&scope, NULL, calls, NULL, &one));
	CHECK(!weft_scope_spawn_with(&scope, NULL, returns, NULL, &two));
	CHECK(!weft_scope_wait(&scope));
	printf("# %ld KiB more\n", (resident() - before) >> 10);
	CHECK(resident() - before < MOST);
	weft_delete(coroutine);
	CHECK(!weft_chan_free(deep) && !weft_chan_free(flat));
	return unused;
}

int main(void)
{
	CHECK(!weft_rt_run(&(weft_rt_config_t){.workers = 2}, run, NULL, NULL));
	puts("ok - the blocks of frames come back");
	return 0;
}
