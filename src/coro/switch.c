/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The slow path of a switch sideways, for coroutines that are not in the same group: see "Sideways" in
 * arch/README.md. */
#define WEFT__PART_ENDS
#include "coro/copying.h"
#include "coro/ends.h"

/* A coroutine that switches away stays suspended, and may be deleted. */
WEFT__BRINGS(weft__end_suspended);

/*
 * `to` has the same words of its parent as `from`, and as each other member of that group: a switch between them need
 * check nothing else, until one of them is resumed. If a switch has more work to do, because a landing pad is special
 * or `to` was suspended from below, `to` is in a group of its own, whose number is its address. An address is never the
 * number of a shared group, which is odd.
 */
static void join(weft_coro_t *from, weft_coro_t *to)
{
	static atomic_uintptr_t last = 1;

	to->group = (uintptr_t)to;
	if ((from->flags | to->flags) & (WEFT__SAVING | WEFT__COPIED) || to->innermost != to)
		return;
	/* Relaxed: only the number must be unique. */
	if (from->group == (uintptr_t)from)
		from->group = atomic_fetch_add_explicit(&last, 2, memory_order_relaxed);
	to->group = from->group;
}

struct weft__switch weft__prepare_switch(weft_coro_t *to, void *value)
{
	weft_coro_t *from = weft__self();

	if (!from || weft__is_bound(from->view))
		weft__check_bound(from, "weft_switch");
	if (to->parent != from->parent)
		weft__adopt(from->parent, to);
	if (to->handled != from->handled)
		weft__rehandle(to, from->handled);
	weft__retag(to, from->tags);
	to->link.parent_words = from->link.parent_words;
	weft__suspend_by(from, from);
	join(from, to);
	if (from->flags & WEFT__HOOKED && to != from)
		weft__before_switch(from, to);
	return (struct weft__switch){to, value};
}
