/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends while coroutines are suspended (or, with an argument, inside a coroutine): memory that their frames, or the
 * frames of main, refer to has not leaked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

#define NOINLINE __attribute__((noinline))

static weft_coro_t *generator;

static NOINLINE void *generates(void *arg)
{
	char *volatile mine = malloc(100);

	do {
		*(char *)arg = *mine = 1;
		(void)weft_suspend(mine);
	} while (*mine);
	return arg;
}

static NOINLINE void *chained(void *arg)
{
	char *volatile mine = malloc(200);
	weft_coro_t *k = weft_create(generates, arg);

	do {
		*mine = 1;
		(void)weft_suspend(weft_resume(k, NULL, WEFT_HANDLE_NONE).payload);
	} while (*mine);
	return arg;
}

static NOINLINE void *ends(void *arg)
{
	char *volatile mine = malloc(300);

	(void)weft_suspend(mine);
	exit(0);
	return arg;
}

/* Clears main's frame of copies of the pointers. */
static NOINLINE void clear(void)
{
	char stack[4096];

	memset(stack, 0, sizeof stack);
	__asm__ volatile("" : : "r"(stack) : "memory");
}

int main(int argc, char **argv)
{
	char *volatile mine = malloc(50);
	weft_coro_t *k = weft_create(ends, NULL);

	(void)argv;
	generator = weft_create(chained, malloc(33));
	(void)weft_resume(generator, NULL, WEFT_HANDLE_NONE);
	(void)weft_resume(generator, NULL, WEFT_HANDLE_NONE);
	clear();
	if (argc > 1)
		while (weft_state(k) == WEFT_SUSPENDED)
			(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	free(mine);
	return 0;
}
