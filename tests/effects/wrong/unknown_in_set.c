/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_stat */
/* clang: fatal error: field 'stat' with variable sized type */
/* clang++: fatal error: field 'stat' with variable sized type */
/* clang-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* clang++-names: weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares */
/* g++-errors: 2 */
/* g++-lines: 11 */
/* clang-lines: 4 */
/* clang++-lines: 4 */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_EFFECT(int, ask);

void answer(weft_coro_t *k);
void answer(weft_coro_t *k)
{
	weft_request_t r;

	weft_handle (r, k, stat, ask)
		weft_reply(get, r, 1);
}
