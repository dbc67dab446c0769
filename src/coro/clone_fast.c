/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cloning in place of an existing coroutine, which a search does for each choice and for each try. Its two cases have a
 * function each, because they may take no longer than a few calls; weft__clone_into does all other cases.
 *   keep  save the state of k, which is in the region, to the image that c already has
 *   try   restart c, which is in the region or ended there, from k's image
 */
#define WEFT__PART_COPY
#define WEFT__PART_SAVING
#include "coro/copying.h"

#include <errno.h>

/* Copy the words of a coroutine that has run. */
static inline void imitate_frames(weft_coro_t *c, const weft_coro_t *k)
{
	c->link.fp = k->link.fp;
	c->link.bx = k->link.bx;
	c->inner_pc = k->inner_pc;
	c->name = k->name;
	c->user_data = k->user_data;
	c->deferred = k->deferred;
	c->view = weft__view_of(c);
}

void weft__imitate(weft_coro_t *c, const weft_coro_t *k)
{
	c->link.pc = (void *)weft__land_copying;
	c->link.sp = weft__landing();
	imitate_frames(c, k);
	c->flags = k->flags;
	c->failure = WEFT_NO_FAILURE;
	c->fpu = k->fpu;
	c->caught = NULL;
	c->uncaught = 0;
}

/* ---- in place ------------------------------------------------------------------------------------------------- */

bool weft__clone_in_place(weft_coro_t *c, const weft_coro_t *k, int *error)
{
	struct weft__copied *to = weft__copied_of(c), *from = weft__copied_of(k);
	struct weft__thread *me = weft__tls_thread;
	struct weft__region *region = from->region;
	bool done = false;
	int before;

	if (!me || !region || to->region != region || to->points || c->innermost != c || c->deferred ||
	    weft_state(c) == WEFT_RUNNING || c->flags != WEFT__COPYING || k->flags != WEFT__COPYING)
		return false;
	before = weft__region_hold(region, me, false);
	if (before == WEFT__REGION_OTHERS)
		return false;
	if (before == WEFT__REGION_IDLE && region->occupant != from) {
		done = true;
		*error = weft__overwrite(me, region, to, from) ? 0 : -ENOMEM;
	}
	weft__region_leave(region, me, before);
	if (done && !*error)
		weft__imitate(c, k);
	return done;
}

/* ---- the fast paths -------------------------------------------------------------------------------------------- */

static inline bool hold_own(struct weft__region *region, struct weft__thread *me)
{
	return weft__likely(weft__region_hold_own(region, me, WEFT__REGION_IDLE) == WEFT__REGION_IDLE);
}

WEFT__AVX static int keep_fast(weft_coro_t *c, weft_coro_t *k, struct weft__thread *me)
{
	struct weft__copied *to = weft__copied_of(c), *from = weft__copied_of(k);
	struct weft__region *region = from->region;
	struct weft__image *image = to->image;
	size_t bytes = (size_t)(weft__region_top(region) - weft__lowest(from->sp));

	if (!image || !to->sp || !from->sp || from->image || image->holders != 1 ||
	    (image->bytes != bytes && image->class != weft__buffer_class(sizeof *image + bytes)) ||
	    !hold_own(region, me))
		return weft__clone_into(c, k);
	weft__move_lines(image->frames, weft__region_top(region) - bytes, bytes);
	image->bytes = bytes;
	to->sp = from->sp;
	imitate_frames(c, k);
	weft__count_copied(me, bytes);
	weft__region_leave(region, me, WEFT__REGION_IDLE);
	return 0;
}

WEFT__AVX static int try_fast(weft_coro_t *c, weft_coro_t *k)
{
	struct weft__copied *to = weft__copied_of(c), *from = weft__copied_of(k);
	struct weft__thread *me = weft__tls_thread;
	struct weft__region *region = to->region;
	struct weft__image *image = from->image;

	if (c->flags != WEFT__COPYING || k->flags != WEFT__COPYING || c->innermost != c || c->deferred ||
	    k->innermost != k || !region || weft__unlikely(!me) || weft__masked(k->view) || from->region != region ||
	    to->points || k->inner_pc == (void *)weft__entry_saving)
		return weft__clone_into(c, k);
	if (region->occupant == from)
		return keep_fast(c, k, me);
	if (!image || to->image || region->occupant != to || !hold_own(region, me))
		return weft__clone_into(c, k);
	weft__move_lines(weft__region_top(region) - image->bytes, image->frames, image->bytes);
	*(void **)(weft__region_top(region) - 16) = c;
	if (!to->sp) { /* it has finished */
		c->link.pc = (void *)weft__land_copying;
		c->link.sp = weft__landing();
		c->failure = WEFT_NO_FAILURE;
	}
	to->sp = from->sp;
	imitate_frames(c, k);
	weft__count_copied(me, image->bytes);
	weft__region_leave(region, me, WEFT__REGION_IDLE);
	return 0;
}

int weft_clone_into(weft_coro_t *c, weft_coro_t *k)
{
	weft__require(c, "weft_clone_into");
	weft__require(k, "weft_clone_into");
	return weft__likely(weft__tries_fast) ? try_fast(c, k) : weft__clone_into(c, k);
}
