/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: effect fail: each parameter is a type, a comma and a name, as in: int, count; of a type with a comma */
#include <weft/weft.h>

WEFT_EXCEPTION(fail, const char *why);
