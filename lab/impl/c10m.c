/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * c10m: `live` coroutines at a time, n in all, each touching 32 KB of its stack, suspending, and finishing when it is
 * resumed again. The result counts the bytes that each coroutine found unchanged.
 */
#include "lab.h"
#include <weft/weft.h>

enum { TOUCHED = 32 * 1024, STACK = 64 * 1024 };

static void *body(void *arg)
{
	int64_t *sum = arg;
	char buffer[TOUCHED];
	char *bytes = buffer;

	memset(bytes, 1, TOUCHED);
	LAB_KEEP(bytes);
	weft_suspend(NULL);
	LAB_KEEP(bytes);
	*sum += bytes[0] + bytes[TOUCHED - 1];
	return NULL;
}

static weft_coro_t *start(int64_t *sum)
{
	weft_attr_t attr = {.stack_size = STACK};
	weft_coro_t *k = weft_create_with(body, sum, &attr);

	if (!k)
		lab_die("weft_create_with");
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return k;
}

static void finish(weft_coro_t *k)
{
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

static int64_t run(int64_t n, int64_t live)
{
	weft_coro_t **k = malloc((size_t)live * sizeof(*k));
	int64_t sum = 0, i;

	if (!k)
		lab_die("malloc");
	for (i = 0; i < n; i++) {
		if (i >= live)
			finish(k[i % live]);
		k[i % live] = start(&sum);
	}
	for (i = 0; i < live; i++)
		finish(k[i]);
	free(k);
	return sum / 2;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 100000), live = lab_number(argc, argv, "live", 10000), result;

	lab_start();
	result = run(n, live);
	lab_stop();
	return lab_report((uint64_t)n, result);
}
