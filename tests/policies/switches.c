/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tail clauses, and a body that is suspended all the same: it switches away, and weft_run deletes it when the other
 * coroutine has returned. What the body deferred is called. */
#include <weft/defer.h>
#include <weft/link_policies.h>
#include <weft/weft.h>

WEFT_POLICIES();
WEFT_EFFECT(int, next);

static weft_coro_t *other;
static int ended;

static int on_next(void *state)
{
	return ++*(int *)state;
}
WEFT_HANDLER(handler, weft_tail(next, on_next));

static void end(void *count)
{
	++*(int *)count;
}

static void *returns(void *result)
{
	return result;
}

static void *switches(void *unused)
{
	weft_defer(end, &ended);
	other = weft_create(returns, &ended);
	if (!other || next() != 2)
		return NULL;
	return weft_switch(other, unused);
}

int main(void)
{
	int state = 1;
	void *result = weft_run(&handler, &state, switches, NULL);

	weft_delete(other);
	return result != &ended || ended != 1;
}
