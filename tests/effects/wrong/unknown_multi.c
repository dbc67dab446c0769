/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: fatal error: field 'gte' with variable sized type */
/* clang++: fatal error: field 'gte' with variable sized type */
/* clang-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* clang++-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* gcc-errors: 3 */
/* g++-errors: 4 */
/* gcc-lines: 15 */
/* g++-lines: 15 */
/* clang-lines: 4 */
/* clang++-lines: 4 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static void *on_get(void *state, weft_resumption_t *k)
{
	return weft_tail_continue(get, k, *(int *)state);
}

WEFT_HANDLER(handler, weft_multi(gte, on_get));
