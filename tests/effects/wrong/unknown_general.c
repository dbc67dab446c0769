/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: call to undeclared function 'weft__gte__call' */
/* clang++: weft__gte__effect_declaration */
/* gcc-errors: 3 */
/* g++-errors: 4 */
/* gcc-lines: 15 */
/* g++-lines: 15 */
/* clang-lines: 45 */
/* clang++-lines: 25 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);

static void *on_get(void *state, weft_resumption_t *k)
{
	return weft_tail_continue(get, k, *(int *)state);
}

WEFT_HANDLER(handler, weft_general(gte, on_get));
