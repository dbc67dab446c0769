/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines whose frames are copied leave their region, when they are suspended or end: the counterpart of
 * copying.c. */
#define WEFT__PART_COPY
#define WEFT__PART_SAVING
#include "coro/copying.h"

#include <string.h>
#include <weft/defer.h>

#include "coro/ends.h"

char *weft__landing_spare;

char *weft__landing(void)
{
	if (weft__unlikely(!weft__tls_landing) && !weft__landing_make())
		return weft__landing_spare;
	return weft__tls_landing - WEFT_LANDING_OWN;
}

static inline void park(weft_coro_t *k, char *sp)
{
	struct weft__copied *c = weft__copied_of(k);

	c->sp = sp;
	weft__region_leave(c->region, weft__tls_thread, WEFT__REGION_IDLE);
}

static WEFT__COLD void park_chain(weft_coro_t *k)
{
	char *sp = k->link.sp;

	for (weft_coro_t *c = k->innermost;; c = c->parent) {
		if (c->flags & WEFT__COPYING)
			park(c, sp);
		if (c == k)
			break;
		sp = c->link.parent_sp;
	}
	if (k->innermost->flags & WEFT__COPYING)
		k->link.sp = weft__landing();
}

/* The record used for a thread when there is no memory for its own. Memory that it frees is not used again. Functions
 * for regions and images read only this part of a thread's record. */
static char nobody_bytes[offsetof(struct weft__thread, bins)] __attribute__((aligned(_Alignof(struct weft__thread))));
#define NOBODY ((struct weft__thread *)(void *)nobody_bytes)

static void abandon(weft_coro_t *k, bool leaves)
{
	struct weft__copied *c = weft__copied_of(k);
	struct weft__region *region = c->region;
	struct weft__thread *me = weft__thread();
	int before;

	if (weft__unlikely(!me))
		me = NOBODY;
	else if (leaves)
		weft__drop_points(me, c);
	if (!region)
		return;
	weft__end_seclusion(me, k);
	/* After this call no thread is moving its frames. */
	before = weft__likely(me != NOBODY) ? weft__region_hold(region, me, false)
					    : weft__region_hold_slow(region, me, false);
	c->sp = NULL;
	if (weft__likely(me != NOBODY) || before == WEFT__REGION_OTHERS)
		weft__image_let_go(me, c, before);
	c->image = NULL;
	if (weft__unlikely(before == WEFT__REGION_OTHERS)) { /* another thread runs a different coroutine there */
		if (leaves)
			atomic_fetch_add_explicit(&region->left, 1, memory_order_relaxed); /* relaxed: a count */
		return;
	}
	region->members -= leaves;
	if (region->occupant == c) {
		if (leaves) {
			region->occupant = NULL;
			/* Relaxed: a thread that still loads the old owner finds a readable object. */
			atomic_store_explicit(&weft__region_slot(region)->owner, NULL, memory_order_relaxed);
		}
		before = WEFT__REGION_IDLE;
	}
	weft__region_leave(region, me, before);
}

/* k will not run again. Its frames may be read until another coroutine runs in the region. */
void weft__abandon_copied(weft_coro_t *k)
{
	abandon(k, false);
}

/* k is deleted or starts over. */
void weft__forget_copied(weft_coro_t *k)
{
	abandon(k, true);
	weft__copied_of(k)->region = NULL;
}

void weft__leave_copying(weft_coro_t *k)
{
	if (weft__unlikely(k->flags & WEFT__SAVING))
		weft__exchange_saved(k);
	if (weft__unlikely(k->link.pc == (void *)weft__in_finished)) {
		weft__abandon_copied(k);
		return;
	}
	k->inner_pc = k->link.pc;
	k->link.pc = (void *)weft__land_copying;
	if (weft__unlikely(k->innermost != k)) {
		park_chain(k);
		return;
	}
	park(k, k->link.sp);
	k->link.sp = weft__landing();
}

/* The chain from `self` up to k is about to be suspended, and may contain copied coroutines although k is not
 * copied. */
void weft__before_through(weft_coro_t *k, weft_coro_t *self)
{
	if (k->flags & WEFT__COPYING)
		return;
	for (weft_coro_t *c = self; c != k; c = c->parent) {
		if (!(c->flags & WEFT__COPYING))
			continue;
		if (!(k->flags & WEFT__SAVING))
			k->outer_pc = k->link.parent_pc;
		k->link.parent_pc = (void *)weft__return_copying;
		k->flags |= WEFT__THROUGH;
		return;
	}
}

/* `from`, which is copied, has been suspended by a switch sideways. */
void weft__park_switched(weft_coro_t *from)
{
	from->link.pc = (void *)weft__land_copying;
	park(from, from->link.sp);
	from->link.sp = weft__landing();
}

/* ---- ending without a resume ------------------------------------------------------------------------------------- */

/* Copy bytes of the frames of c, which is suspended. Returns false if there is no memory for the thread's record. */
static bool read_frames(const weft_coro_t *c, const void *at, void *to, size_t bytes)
{
	const struct weft__copied *copied = weft__copied_of(c);
	struct weft__thread *me = weft__thread();
	int before;

	if (!(c->flags & WEFT__COPYING) || !weft_on_stack(c, at)) {
		memcpy(to, at, bytes);
		return true;
	}
	if (!me)
		return false;
	before = weft__region_hold(copied->region, me, false);
	if (before == WEFT__REGION_OTHERS || copied->region->occupant != copied)
		at = copied->image->frames + copied->image->bytes -
		     (weft__region_top(copied->region) - (const char *)at);
	memcpy(to, at, bytes);
	if (before != WEFT__REGION_OTHERS)
		weft__region_leave(copied->region, me, before);
	return true;
}

static bool has_only_bodies(const weft_coro_t *c, weft_coro_t **bodies);

/* True if the only cleanups in k's chain are bodies that can be ended in the same way. If `bodies` is not NULL, the
 * caller knows that, and the bodies are added to that list. */
static bool all_have_only_bodies(const weft_coro_t *k, weft_coro_t **bodies)
{
	bool copying = false;

	for (const weft_coro_t *c = k->innermost;; c = c->parent) {
		copying |= (c->flags & WEFT__COPYING) != 0;
		if (c->flags & (WEFT_UNWIND | WEFT__ENDING) || !has_only_bodies(c, bodies))
			return false;
		if (c == k)
			return copying;
	}
}

static bool ends_silently(const weft_coro_t *body)
{
	return weft_state(body) == WEFT_FINISHED || !weft__must_end(body) || all_have_only_bodies(body, NULL);
}

static bool has_only_bodies(const weft_coro_t *c, weft_coro_t **bodies)
{
	char run_frame[WEFT__RUN_FRAME_BYTES] __attribute__((aligned(8)));
	struct weft__deferred *at, d;
	weft_coro_t *body;

	for (at = weft__deferred_of(c->deferred); at; at = weft__deferred_of(d.next)) {
		if (!read_frames(c, at, &d, sizeof d) || !weft__is_run_frame(&d) ||
		    !read_frames(c, d.arg, run_frame, sizeof run_frame))
			return false;
		body = weft__run_frame_coro(run_frame);
		/* A running body is part of the chain, and is abandoned with the chain. */
		if (!body || weft_state(body) == WEFT_RUNNING)
			continue;
		if (!bodies && !ends_silently(body))
			return false;
		if (bodies) {
			body->parent = *bodies;
			*bodies = body;
		}
	}
	return true;
}

/* End k, whose chain and bodies have no cleanups to call. */
static void end_silently(weft_coro_t *k)
{
	weft_coro_t *bodies = NULL, *next;

	(void)all_have_only_bodies(k, &bodies);
	weft__abandon(k, k->innermost);
	if (k->flags & WEFT__COPYING)
		weft__abandon_copied(k);
	weft__drop_thens(k, NULL);
	k->link.pc = (void *)weft__in_finished;
	k->deferred = NULL;
	for (; bodies; bodies = next) {
		next = bodies->parent;
		if (weft_state(bodies) == WEFT_SUSPENDED && weft__must_end(bodies))
			end_silently(bodies);
		weft_delete(bodies);
	}
}

bool weft__end_in_place(weft_coro_t *k)
{
	if (!all_have_only_bodies(k, NULL))
		return false;
	end_silently(k);
	return true;
}
