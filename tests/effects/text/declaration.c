/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The preprocessed text of one declaration is between the two words. */
#include <weft/effect.h>

before WEFT_EFFECT(int, tell, const char *, text);
after
