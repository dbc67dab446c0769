/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: weft_effect_gte */
/* clang: call to undeclared function 'weft__gte__call' */
/* clang++: weft__gte__effect_declaration */
/* gcc-errors: 2 */
/* g++-errors: 2 */
/* gcc-lines: 12 */
/* clang-lines: 45 */
/* clang++-lines: 25 */
#include <weft/weft.h>

WEFT_EFFECT(int, get);
WEFT_HANDLER(handler, weft_requested(gte));
