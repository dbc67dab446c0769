/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Room above a coroutine's first frame. A frame of the coroutine's own would be too late for what its function is
 * given, and a block of memory costs more than making the coroutine does.
 */
#include "coro/copying.h"
#include "internal/valgrind.h"

#include <stdlib.h>

enum {
	LARGEST = 4096, /* open from the start under every policy */
	SHARE = 4,	/* of the stack, as a divisor */
	ALIGNMENT = 16,
};

void *weft_reserve(weft_coro_t *k, size_t bytes)
{
	char *sp;

	weft__require(k, "weft_reserve");
	sp = k->link.sp;
	/* A copied stack is nowhere yet. Nor must frames start outside of a linked stack's first chunk. */
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
