/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Clauses that alone link the code which decides about requests: compiled with WITH a tail clause, a general clause
 * that decides nothing, or an abort clause.
 */
#include <stdio.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

WEFT_POLICIES();
WEFT_EFFECT(int, next);

static void *body(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)next();
}

#ifdef WITH_TAIL
static int on_next(void *state)
{
	return ++*(int *)state;
}
WEFT_HANDLER(handler, weft_tail(next, on_next));
#endif
#ifdef WITH_GENERAL
static void *on_next(void *state, weft_resumption_t *k)
{
	(void)k;
	return state;
}
WEFT_HANDLER(handler, weft_general(next, on_next));
#endif
#ifdef WITH_ABORT
static void *on_next(void *state)
{
	(void)state;
	return (void *)2;
}
WEFT_HANDLER(handler, weft_abort(next, on_next));
#endif

/* The inner run's coroutine is deleted on the way. */
static void *nested(void *state)
{
	return weft_run(&handler, state, body, NULL);
}

int main(void)
{
	int state = 1;

	if (nested(&state) != (void *)2)
		return 1;
	return weft_run(&handler, &state, nested, &state) != (void *)(intptr_t)(state == 1 ? 2 : 3);
}
