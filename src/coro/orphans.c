/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that were running inside a coroutine which was left, deleted or failed. */
#define WEFT__PART_ENDS
#include "coro/copying.h"
#include "coro/ends.h"

static bool is_among(uint64_t id, const weft_coro_t *from, const weft_coro_t *to)
{
	for (;; from = from->parent) {
		if (from->id == id)
			return true;
		if (from == to)
			return false;
	}
}

/* Its resumers are checked first, because usually one of them made it. */
static bool made_within(const weft_coro_t *c, const weft_coro_t *innermost, const weft_coro_t *k)
{
	return c->creator && (is_among(c->creator, c->parent, k) ||
			      (is_among(c->creator, innermost, c) && WEFT_NO_CANARY(made_further_inside_is_nobodys)));
}

void weft__note_owned(weft_coro_t *k, weft_coro_t *innermost)
{
	for (weft_coro_t *c = innermost; c != k; c = c->parent)
		if (made_within(c, innermost, k))
			c->flags |= WEFT__OWNED;
}

/*
 * Coroutines that were running inside k will not run again. They all become FINISHED. If the lost frames made such a
 * coroutine, it has no owner left. Such orphans are kept until k is reset or deleted, because the payload of a request
 * may be on their stacks. They form a list: k->innermost is the first, `parent` the next, and k ends the list.
 * `handled`, which a finished coroutine does not need, marks an orphan, and its `innermost` points to the word that
 * names it.
 */
void weft__orphan(weft_coro_t *c, weft_coro_t **list, weft_coro_t *k)
{
	c->handled = WEFT__ORPHAN;
	c->parent = *list;
	c->innermost = (weft_coro_t *)list;
	weft__name_orphan(&c->parent, k);
	*list = c;
}

void weft__adopt_orphans(weft_coro_t *k, weft_coro_t *list)
{
	k->innermost = list;
	weft__name_orphan(&k->innermost, k);
}

void weft__hand_on_orphans(const struct weft__ending *e, weft_coro_t **list, const weft_coro_t *k)
{
	weft_coro_t *last = e->orphans;

	if (last == e->target)
		return;
	while (last->parent != e->target)
		last = last->parent;
	last->parent = *list;
	weft__name_orphan(&last->parent, k);

	*list = e->orphans;
	weft__name_orphan(list, k);
}

void weft__abandon_inside(weft_coro_t *k, weft_coro_t *innermost, weft_coro_t **orphans, weft_coro_t *home)
{
	weft_coro_t *c = innermost, *up;

	k->flags &= ~(uint32_t)WEFT__THROUGH;
	weft__note_owned(k, innermost);
	for (; c != k; c = up) {
		up = c->parent;
		if (weft__unlikely(c->flags & WEFT__COPYING))
			weft__abandon_copied(c);
		weft__drop_thens(c, NULL);
		c->link.pc = (void *)weft__in_finished;
		c->deferred = NULL;
		c->innermost = c;
		if (weft__take_owned(c))
			weft__orphan(c, orphans, home);
	}
}

void weft__abandon(weft_coro_t *k, weft_coro_t *innermost)
{
	weft_coro_t *orphans = k;

	weft__abandon_inside(k, innermost, &orphans, k);
	weft__adopt_orphans(k, orphans);
}
