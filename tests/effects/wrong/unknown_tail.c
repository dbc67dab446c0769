/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: call to undeclared function 'weft__gte__call' */
/* clang++: weft__gte__effect_declaration */
/* gcc-errors: 2 */
/* g++-errors: 3 */
/* gcc-lines: 12 */
/* g++-lines: 12 */
/* clang-lines: 45 */
/* clang++-lines: 25 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static int on_get(void *state)
{
	return *(int *)state;
}

WEFT_HANDLER(handler, weft_tail(gte, on_get));
