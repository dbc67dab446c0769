/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: call to undeclared function 'weft__gte__call' */
/* clang++: weft__gte__effect_declaration */
/* gcc-errors: 4 */
/* g++-errors: 5 */
/* gcc-lines: 18 */
/* g++-lines: 18 */
/* clang-lines: 45 */
/* clang++-lines: 25 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static void *on_get(void *state)
{
	return state;
}

WEFT_HANDLER(handler, weft_abort(gte, on_get));
