/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the pass itself refuses, where the checker of blocks, which says more, is not loaded. */
// RUN: %fresh -DWRONG=return
// RUN: %refused=RETURN
// RETURN: 'return', 'break' or 'goto' leaves the block of activate: an activity cannot continue there; use 'continue'
// RUN: %fresh -DWRONG=break
// RUN: %refused=BREAK
// BREAK: 'return', 'break' or 'goto' leaves the block of activate: an activity cannot continue there; use 'continue'
// RUN: %fresh -DCOPIED=global
// RUN: %refused=COPIED
// COPIED: only a local variable of fixed size can be copied into an activity: copy it into one first
#include <weft/charcoal.h>
#ifndef WRONG
#define WRONG continue
#endif
#ifndef COPIED
#define COPIED n
#endif
int global;

void activates(activity_t *handle, int n)
{
	activate(handle, COPIED)
	{
		yield();
		if (COPIED)
			WRONG;
		yield();
	}
}
