/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An effect of seff.h with the number NUMBER; if UNKNOWN, a perform of an effect that is not declared. */
#include "seff.h"

DEFINE_EFFECT(known, NUMBER, void, { int x; });

void f(void);
void f(void)
{
#ifdef UNKNOWN
	PERFORM(unknown, 1);
#else
	PERFORM(known, 1);
#endif
}
