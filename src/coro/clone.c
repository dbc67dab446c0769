/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Multi-shot: a second coroutine with the frames of a suspended one. Both share an image of the frames until they run.
 * So a clone costs an object, and its first resume costs as much as any resume that finds the frames of another
 * coroutine in the region. Also reads and writes the frames of a suspended coroutine, wherever they are.
 */
#define WEFT__PART_COPY
#include "coro/copying.h"

#include <errno.h>
#include <string.h>

/* ---- cloning --------------------------------------------------------------------------------------------------- */

const char *weft_clone_unavailable(void)
{
	return weft_policy_unavailable(weft__policy_that_clones);
}

int weft__refusal(const weft_coro_t *k)
{
	weft_state_t state = weft_state(k);

	if (state == WEFT_FINISHED || state == WEFT_DELETED)
		return -EINVAL;
	if (!(k->flags & WEFT__COPIED))
		return -ENOTSUP;
	if (state == WEFT_RUNNING || k->innermost != k || k->flags & (WEFT__ENDING | WEFT__THENS))
		return -EBUSY;
	if (k->flags & WEFT_SAVE_EXCEPTIONS && (k->caught || k->uncaught))
		return -EBUSY;
	return 0;
}

/* A coroutine inside a tail clause has no clones, because its frames contain its address. */
static int clone_refusal(const weft_coro_t *k)
{
	int error = weft__refusal(k);

	return !error && weft__has_started(k) && weft__masked(k->view) ? -EBUSY : error;
}

/* Give `to` the frames of `from`, which is parked. */
static bool share(struct weft__thread *me, struct weft__copied *from, struct weft__copied *to)
{
	struct weft__region *region = from->region;
	struct weft__image *image;
	int before;

	if (weft__has_no_frames(region, from->sp)) /* without frames, the clone may settle in any region */
		return true;
	before = weft__region_hold(region, me, false);
	if (weft__unlikely(before == WEFT__REGION_OTHERS)) {
		/* Other threads may change the count of holders of the image; but the image stays while `from` holds
		 * it. */
		image = weft__image_with(me, from->image->frames, from->image->bytes);
	} else {
		image = weft__image_of(me, region, from);
		if (image) {
			image->holders++;
			region->members++;
		}
		weft__region_leave(region, me, before);
	}
	if (!image)
		return false;
	if (weft__unlikely(before == WEFT__REGION_OTHERS))
		atomic_fetch_sub_explicit(&region->left, 1, memory_order_relaxed); /* a count */
	to->region = region;
	to->sp = from->sp;
	to->image = image;
	return true;
}

weft_coro_t *weft_clone(weft_coro_t *k)
{
	struct weft__thread *me = weft__thread();
	struct weft__slot *slot;
	weft_coro_t *c;
	int error;

	weft__require(k, "weft_clone");
	error = clone_refusal(k);
	if (!error) {
		error = -ENOMEM;
		if (me)
			weft__end_seclusion(me, k);
		slot = me ? weft__slot_take(&me->bins[k->slot->policy][k->slot->class], &error) : NULL;
		if (slot) {
			c = (weft_coro_t *)slot->object;
			c->flags = 0;
			weft__set_up(c, slot, me, NULL, NULL);
			weft__imitate(c, k);
			if (weft__likely(share(me, weft__copied_of(k), weft__copied_of(c))))
				return c;
			weft_delete(c);
		}
	}
	errno = -error;
	return NULL;
}

int weft__clone_into(weft_coro_t *c, weft_coro_t *k)
{
	struct weft__thread *me = weft__thread();
	int error = clone_refusal(k);

	if (error)
		return error;
	if (c == k || weft_state(c) == WEFT_DELETED || !(c->flags & WEFT__COPIED) || c->slot->class != k->slot->class)
		return -EINVAL;
	if (!me)
		return -ENOMEM;
	weft__end_seclusion(me, k);
	if (weft__clone_in_place(c, k, &error))
		return error;
	weft_reset(c, NULL, NULL);
	weft__imitate(c, k);
	if (weft__likely(share(me, weft__copied_of(k), weft__copied_of(c))))
		return 0;
	c->link.pc = (void *)weft__in_finished;
	return -ENOMEM;
}

/* ---- reading and writing frames -------------------------------------------------------------------------------- */

/* The coroutine under "copy" in k's chain whose stack contains the address, or NULL. `sp` is set to the end of its
 * frames. */
static weft_coro_t *whose(const weft_coro_t *k, const char *at, const char **sp)
{
	*sp = k->link.sp;
	for (weft_coro_t *c = k->innermost;; c = c->parent) {
		if (c->flags & WEFT__COPIED && weft_on_stack(c, at)) {
			if (c->flags & WEFT__COPYING)
				*sp = weft__copied_of(c)->sp;
			return c;
		}
		if (c == k)
			return NULL;
		*sp = c->link.parent_sp;
	}
}

/* Other threads may read c's image: make an image that only c holds. */
static bool own_image(struct weft__thread *me, struct weft__copied *c)
{
	struct weft__image *image = weft__image_with(me, c->image->frames, c->image->bytes);

	if (!image)
		return false;
	weft__image_drop_later(c->region, c->image);
	c->image = image;
	return true;
}

/* The current place of the byte that belongs at `at`; to be written if `writes`. Returns NULL if there is no memory. */
static char *find(struct weft__thread *me, struct weft__copied *c, char *at, int before, bool writes)
{
	size_t below_top = (size_t)(weft__region_top(c->region) - at);

	if (WEFT_CANARY(clones_share_what_changes))
		writes = false;
	if (before != WEFT__REGION_OTHERS) {
		if (c->region->occupant == c)
			return at;
		if (writes && c->image->holders > 1 && before == WEFT__REGION_IDLE)
			return weft__bring_in(me, c->region, c) ? at : NULL;
	}
	if (writes && c->image->holders > 1 && !own_image(me, c))
		return NULL;
	return c->image->frames + (c->image->bytes - below_top);
}

int weft__move_copied(weft_coro_t *k, char *at, void *here, size_t bytes, bool writes)
{
	struct weft__thread *me = weft__thread();
	struct weft__copied *c;
	weft_coro_t *owner;
	const char *sp;
	char *place;
	int before;

	if (weft_state(k) != WEFT_SUSPENDED)
		return -EINVAL;
	owner = whose(k, at, &sp);
	c = owner ? weft__copied_of(owner) : NULL;
	if (c && (!sp || at < sp || bytes > (size_t)(weft__region_top(c->region) - at)))
		return -EINVAL;
	if (!c || owner->flags & WEFT__SECLUDED) { /* the bytes are in place */
		memcpy(writes ? at : here, writes ? here : at, bytes);
		return 0;
	}
	if (!me)
		return -ENOMEM;
	before = weft__region_hold(c->region, me, false);
	place = find(me, c, at, before, writes);
	if (place)
		memcpy(writes ? place : here, writes ? here : place, bytes);
	if (before != WEFT__REGION_OTHERS)
		weft__region_leave(c->region, me, before);
	return place ? 0 : -ENOMEM;
}
