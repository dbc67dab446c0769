/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft__state__clause_for__fail */
/* clang-lines: 45 */
/* clang++-lines: 45 */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_EXCEPTION(fail);

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

static void *on_fail(void *state)
{
	return state;
}

WEFT_HANDLER_OF(h, state, weft_tail(get, on_get), weft_tail(put, on_put), weft_abort(fail, on_fail));
