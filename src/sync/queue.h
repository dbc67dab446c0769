/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An object's queue of places. All but the locks: under the queue's lock. */
#ifndef WEFT_SRC_SYNC_QUEUE_H
#define WEFT_SRC_SYNC_QUEUE_H

#include <weft/sync.h>

#include "sched/sched.h"

static inline void lock(struct weft__queue *q)
{
	weft__task_lock(&q->lock);
}

static inline void unlock(struct weft__queue *q)
{
	weft__task_unlock(&q->lock);
}

/* A mistake, for tests: between a look and what follows from it others get the lock. Never in the library. */
static inline void lose_the_lock(struct weft__queue *q, bool canary)
{
	if (canary) {
		unlock(q);
		lock(q);
	}
}

static inline void add(struct weft__queue *q, struct weft__place *place)
{
	place->next = NULL;
	place->prev = q->last;
	if (q->last)
		q->last->next = place;
	else
		q->first = place;
	q->last = place;
	place->queued = true;
}

static inline void take_out(struct weft__queue *q, struct weft__place *place)
{
	if (place->prev)
		place->prev->next = place->next;
	else
		q->first = place->next;
	if (place->next)
		place->next->prev = place->prev;
	else
		q->last = place->prev;
	place->queued = false;
}

/* Take the first whose wait nobody else ends; NULL: there is none. The caller completes place->waiter, at best when the
 * lock is released. */
static inline struct weft__place *claim_first(struct weft__queue *q)
{
	struct weft__place *place;

	while ((place = q->first)) {
		take_out(q, place);
		if (weft_waiter_claim(place->waiter, place->index)) {
			weft__seen_release(place->waiter);
			return place;
		}
	}
	return NULL;
}

/* Take all whose waits nobody else ends: a list by `next`. */
static inline struct weft__place *claim_all(struct weft__queue *q)
{
	struct weft__place *all = NULL, **end = &all, *place;

	while ((place = claim_first(q))) {
		*end = place;
		end = &place->next;
	}
	*end = NULL;
	return all;
}

/* NULL is allowed. */
static inline void complete(struct weft__place *place)
{
	if (!place)
		return;
	weft__seen_release(place->waiter);
	weft_waiter_complete(place->waiter);
}

static inline void complete_all(struct weft__place *place)
{
	struct weft__place *next;

	for (; place; place = next) {
		next = place->next;
		weft__seen_release(place->waiter);
		weft_waiter_complete(place->waiter);
	}
}

#endif
