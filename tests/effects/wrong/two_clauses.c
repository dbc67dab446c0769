/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: duplicate case value */
/* clang-lines: 45 */
/* clang++-lines: 45 */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

static void *on_put_later(void *state, weft_resumption_t *k, int value)
{
	on_put(state, value);
	return weft_tail_continue(put, k);
}

WEFT_HANDLER_OF(h, state, weft_tail(get, on_get), weft_tail(put, on_put), weft_general(put, on_put_later));
