/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: enumeration value 'weft__state__clause_for__put' not handled in switch */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

static int on_get(void *state)
{
	return *(int *)state;
}

WEFT_HANDLER_OF(h, state, weft_tail(get, on_get));
