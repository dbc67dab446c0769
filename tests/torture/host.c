/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a program's main in a coroutine on the stack that WEFT_STACK names: with 1 KiB there is room for the first frame
 * only. Linked with --wrap=main: the C library starts __wrap_main, and __real_main is the program's main.
 */
#include <stdint.h>
#include <stdio.h>
#include <weft/weft.h>

int __real_main(); /* with any parameters */
int __wrap_main(int count, char **words, char **environment);

struct command {
	int count;
	char **words, **environment;
};

static void *body(void *argument)
{
	struct command *c = argument;

	return (void *)(intptr_t)__real_main(c->count, c->words, c->environment);
}

int __wrap_main(int count, char **words, char **environment)
{
	struct command command = {count, words, environment};
	weft_coro_t *k = weft_create(body, &command);
	weft_request_t r;

	if (!k) {
		perror("weft_create");
		return 99;
	}
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	if (!weft_returned(r)) {
		fputs("the program has suspended\n", stderr);
		return 99;
	}
	weft_delete(k);
	return (int)(intptr_t)r.payload;
}
