/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suspending more than the current coroutine, and who runs. */
#include <weft/defer.h>

#include "coro/copying.h"
#include "coro/ends.h"

/* Suspend k from `self` below it. Out of line: whoever suspends more than itself has paid for a search. `leaf` tells
 * others who will land; here the frame knows. */
void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	void *value;

	k->leaf = self;
	/* Relaxed: the chain is this thread's. */
	if (weft__unlikely(__atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED))
		weft__before_through(k, self);
	value = weft_arch_yield(&k->link, effect, payload);
	k->leaf = k;
	weft__become(self);
	return value;
}

bool weft__is_ancestor(const weft_coro_t *k, const weft_coro_t *of)
{
	for (; of && of->parent; of = of->parent)
		if (of == k)
			return true;
	return false;
}

/* The coroutine that runs. Just before and just after a switch that is not yet, or no more, the current one. */
WEFT__COLD weft_coro_t *weft__runner_at(const char *sp)
{
	for (weft_coro_t *c = weft__self(); c && c->parent; c = c->parent)
		if (weft_on_stack(c, sp))
			return c;
	return NULL;
}

static bool is_between(const void *place, const void *begin, const void *end)
{
	return (uintptr_t)place - (uintptr_t)begin < (uintptr_t)end - (uintptr_t)begin;
}

/*
 * The entry calls the function itself, and nothing else before the place where it catches exceptions; or on a linked
 * stack by weft__icall, which calls NULL on a system stack. There the words of the link tell: a resume leaves them as
 * they are, and the first suspension replaces the function and the stack pointer.
 */
WEFT__COLD bool weft__owner_lacks_function(const void *owner, const void *from)
{
	const weft_coro_t *k = owner;

	return is_between(from, (void *)weft__entry, weft__entry_catch) ||
	       is_between(from, (void *)weft__entry_saving, weft__entry_saving_catch) ||
	       (k->slot->chunk.limit && !k->link.fp && k->link.sp == (void *)k->slot);
}

WEFT__COLD const void *weft__owner_running(const char *sp, const struct weft__slot **slot)
{
	const weft_coro_t *runner = weft__runner_at(sp), *self = runner ? runner : weft__self();
	const struct weft__chunk *chunk = self ? self->link.chunk : NULL;

	*slot = NULL;
	if (chunk)
		*slot = chunk->limit == WEFT__HEAP_LIMIT
			    ? NULL
			    : (const struct weft__slot *)((const char *)chunk - WEFT_CHUNK_TOP);
	else if (self && self->parent)
		*slot = weft__stack_of(self);
	else if (self && weft__tls_thread)
		*slot = weft__tls_thread->root;
	return self && (self->parent || *slot) ? self : NULL;
}
