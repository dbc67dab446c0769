/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The other file of handles.c: what it performs is declared otherwise there. */
#include <weft/weft.h>

#include "named.h"

WEFT_FAMILY(state, (int, get));

int performs_get(void)
{
	return get();
}
