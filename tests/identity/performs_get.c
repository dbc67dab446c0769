/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Performs an effect that mistaken.c declares differently. */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

int performs_get(void);
int performs_get(void)
{
	return get();
}
