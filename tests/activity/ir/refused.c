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
// RUN: %fresh -DCOPIED=pair.first
// RUN: %refused=COPIED
// COPIED: activate copies whole local variables of a fixed size: list a variable, not a part of one
// RUN: %fresh -DLISTS
// RUN: %refused=LISTS
// LISTS: a va_list cannot be used in the block of activate
// RUN: %fresh -DLABELS
// RUN: %refused=LABELS
// LABELS: the address of a label is kept outside of this function's variables
// RUN: %fresh -fsanitize=kcfi
// RUN: %refused=KCFI
// KCFI: activities cannot be compiled with -fsanitize=kcfi: it needs the place in front
// KCFI-NOT: activities cannot be compiled
// RUN: %fresh -fpatchable-function-entry=4,2
// RUN: %refused=PATCHABLE
// PATCHABLE: activities cannot be compiled with -fpatchable-function-entry with a second number: it needs
#include <stdarg.h>
#include <weft/charcoal.h>
#ifndef WRONG
#define WRONG continue
#endif
#ifndef COPIED
#define COPIED n
#endif
int global;

/* Others may point to it, so words are to stand in front of it. */
void turns(int n)
{
	while (n--)
		yield();
}

void activates(activity_t *handle, int n)
{
	struct {
		int first, second;
	} pair = {n, n};

	activate(handle, COPIED)
	{
		yield_now();
		if (COPIED)
			WRONG;
		yield_now();
	}
}

#ifdef LISTS
void sums(activity_t *handle, int *sum, int n, ...)
{
	va_list list;

	va_start(list, n);
	activate(handle, n)
	{
		while (n--)
			*sum += va_arg(list, int);
	}
	activity_wait(handle);
	va_end(list);
}
#endif

#ifdef LABELS
void *add_label;

int threaded(void **code)
{
	int sum = 0;

	if (!code) {
		add_label = &&add;
		return 0;
	}
	goto **code++;
add:
	sum++;
	goto **code++;
}
#endif
