/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suspending more than the current coroutine, and finding the coroutine that runs. */
#include <weft/defer.h>

#include "coro/copying.h"
#include "coro/ends.h"

/* Suspend k, and all coroutines from `self` up to k. Not inlined: a caller that suspends more than itself has paid for
 * a search. `innermost` tells other functions which coroutine will land; here the frame knows. */
void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	void *value;

	k->innermost = self;
	/* Relaxed: the chain is this thread's. */
	if (weft__unlikely(__atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED))
		weft__before_through(k, self);
	value = weft_arch_yield(&k->link, effect, payload);
	k->innermost = k;
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

/* The coroutine that runs. Just before and just after a switch, it is not the current coroutine. */
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

static bool is_in_entry(const void *place)
{
	return is_between(place, (void *)weft__entry, weft__entry_catch) ||
	       is_between(place, (void *)weft__entry_saving, weft__entry_saving_catch);
}

/*
 * The entry calls the function itself, and nothing else before the place where it catches exceptions. On a linked stack
 * it calls the function through weft__icall, which calls NULL on a system stack. There the words of the link show this:
 * a resume leaves them unchanged, and the first suspension replaces the function and the stack pointer.
 */
WEFT__COLD bool weft__owner_lacks_function(const void *owner, const void *from)
{
	const weft_coro_t *k = owner;

	return is_in_entry(from) || (k->slot->chunk.limit && !k->link.fp && k->link.sp == (void *)k->slot);
}

/*
 * The entry's frame: the return address in the entry, the coroutine, the function. It is at the top of the slot, or
 * below the room that weft_reserve took. The frame stays there after the coroutine's end, until the next coroutine
 * starts. Returns NULL if the frame is not in the page of the slot's record, which is always mapped.
 */
static WEFT__COLD __attribute__((no_sanitize("address", "thread"))) void **entry_frame(const struct weft__slot *slot)
{
	const char *page = weft__page_of(slot);
	void **frame = (void **)(uintptr_t)slot - 2;

	for (; (const char *)(frame - 1) >= page; frame -= 2)
		if (is_in_entry(frame[-1]))
			return frame;
	return NULL;
}

WEFT__COLD __attribute__((no_sanitize("address", "thread"))) const void *weft__owner_function(
    const struct weft__slot *slot)
{
	void **frame = entry_frame(slot);

	return frame ? frame[1] : NULL;
}

void weft__stands_for(weft_coro_t *k, const void *function)
{
	void **frame;

	if (weft__likely(weft__slot_is_record(k->slot) || !weft__policies[k->slot->policy]->learns))
		return;
	frame = entry_frame(k->slot);
	if (frame && WEFT_NO_CANARY(trampolines_are_functions))
		frame[1] = (void *)(uintptr_t)function;
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
