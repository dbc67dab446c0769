/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: effect foo: each parameter is a type, a comma and a name, as in: int, count; of a type with a comma */
#include <utility>

#include <weft/weft.h>

WEFT_EFFECT(int, foo, std::pair<int, int>, p);
