/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One effect, declared in a header that a program and two libraries include. It must be one. */
#ifndef BEACON_H
#define BEACON_H

#include <weft/weft.h>

WEFT_EFFECT(int, beacon, const char *, from, int, number);

WEFT_EXTERN_C_BEGIN

/* Each library performs the effect `n` times and sums the answers; and says where its effect is. */
WEFT_API int left_sum(int n);
WEFT_API const weft_effect_t *left_effect(void);
WEFT_API int right_sum(int n);
WEFT_API const weft_effect_t *right_effect(void);

WEFT_EXTERN_C_END

#endif
