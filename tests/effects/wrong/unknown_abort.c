/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: fatal error: field 'gte' with variable sized type */
/* clang++: fatal error: field 'gte' with variable sized type */
/* clang-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* clang++-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* gcc-errors: 4 */
/* g++-errors: 5 */
/* gcc-lines: 18 */
/* g++-lines: 18 */
/* clang-lines: 4 */
/* clang++-lines: 4 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static void *on_get(void *state)
{
	return state;
}

WEFT_HANDLER(handler, weft_abort(gte, on_get));
