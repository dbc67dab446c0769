/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A clause that is inlined at the perform that guesses it. */
#include <weft/weft.h>

WEFT_EFFECT(void, emit, long, value);

static void add(void *sum, long value)
{
	*(long *)sum += value;
}

void hot(long value);
void hot(long value)
{
	weft_perform_hot(emit, add, value);
}
