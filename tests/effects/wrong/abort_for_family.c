/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft__clauses_are_for_the_effects_of_a_family */
/* gcc-errors: 2 */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

static void *on_state(void *state)
{
	return state;
}

WEFT_HANDLER(h, weft_abort(state, on_state));
