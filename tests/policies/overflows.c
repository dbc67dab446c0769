/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tail clauses and no other policies: the messages are there all the same. Argument: what goes wrong. */
#include <stdlib.h>
#include <string.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

#ifndef EVERY
WEFT_POLICIES();
#endif
WEFT_EFFECT(int, next, int, after);
WEFT_EFFECT(int, other);

static int on_next(void *state, int after)
{
	return after + *(int *)state;
}

WEFT_HANDLER(counter, weft_tail(next, on_next));

static int deep(int n)
{
	volatile char frame[4096];

	frame[0] = 1;
	return n ? deep(n - 1) + frame[0] : next(0);
}

static void *body(void *what)
{
	static weft_coro_t *volatile none;

	if (!strcmp(what, "overflow"))
		return (void *)(intptr_t)deep(1000000);
	if (!strcmp(what, "unhandled"))
		return (void *)(intptr_t)other();
	if (!strcmp(what, "null"))
		weft_resume(none, NULL, WEFT_HANDLE_NONE);
	return (void *)(intptr_t)next(1);
}

int main(int argc, char **argv)
{
	int state = 1;

	return (int)(intptr_t)weft_run(&counter, &state, body, argc > 1 ? argv[1] : "") != 2;
}
