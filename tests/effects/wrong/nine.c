/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: effect foo: eight parameters at most; put the others into a struct */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a, int, b, int, c, int, d, int, e, int, f, int, g, int, h, int, i);
