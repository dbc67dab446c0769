/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines that are resumed for the first time at each distance from the end of a chunk: the functions that this
 * resume calls are sometimes entered through __morestack, and return through the limit of the stack on which they were
 * called.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

enum { DEPTH = 400 };

static void *add(void *sum)
{
	++*(int *)sum;
	return NULL;
}

static void resume_one(int *sum)
{
	weft_coro_t *k = weft_create(add, sum);

	if (!k || !weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)))
		abort();
	weft_delete(k);
}

/* Each frame has 16 more bytes, so the positions of the calls shift. */
static __attribute__((noinline)) int descend(int depth, int *sum)
{
	volatile char room[16];

	room[depth % 16] = 1;
	resume_one(sum);
	return depth ? descend(depth - 1, sum) + room[depth % 16] : 1;
}

static void *body(void *arg)
{
	int sum = 0, frames = 0;

	for (int depth = 0; depth < DEPTH; depth++)
		frames += descend(depth, &sum);
	*(int *)arg = frames == sum ? sum : -1;
	return NULL;
}

int main(void)
{
	int sum = 0;
	weft_coro_t *k = weft_create(body, &sum);

	if (!k || !weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)))
		return 1;
	weft_delete(k);
	printf("%d\n", sum);
	return sum != DEPTH * (DEPTH + 1) / 2;
}
