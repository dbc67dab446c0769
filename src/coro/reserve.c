/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Room above a coroutine's first frame. A frame of the coroutine itself does not exist yet when the function's argument
 * is prepared, and a heap block costs more than making the coroutine.
 */
#include "coro/copying.h"
#include "internal/valgrind.h"

#include <stdlib.h>

enum {
	LARGEST = 4096, /* open from the start under every policy */
	SHARE = 4,	/* the divisor for the largest share of the stack */
	ALIGNMENT = 16,
};

void *weft_reserve(weft_coro_t *k, size_t bytes)
{
	char *sp;

	weft__require(k, "weft_reserve");
	sp = k->link.sp;
	/* A copied stack has no address yet. And frames must not start outside of a linked stack's first chunk. */
	if (weft_state(k) != WEFT_SUSPENDED || weft__has_started(k) || k->flags & WEFT__COPYING ||
	    bytes > LARGEST - ALIGNMENT || bytes > weft_stack_usable(k) / SHARE)
		return NULL;
	sp -= (bytes + ALIGNMENT - 1) & -(size_t)ALIGNMENT;
	if ((uintptr_t)sp < (uintptr_t)k->link.limit)
		return NULL;
	k->link.sp = sp;
	/* Memcheck follows the stack pointer down from here. */
	VALGRIND_MAKE_MEM_UNDEFINED(sp - 128, bytes + 128);
	return sp;
}
