/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the preprocessor makes of one declaration stands between the two words. */
#include <weft/effect.h>

before WEFT_EFFECT(int, tell, const char *, text);
after
