/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An object's queue of places. The caller holds the queue's lock, except for lock(). */
#ifndef WEFT_SRC_SYNC_QUEUE_H
#define WEFT_SRC_SYNC_QUEUE_H

#include <weft/sync.h>

#include "sched/sched.h"

static inline __attribute__((always_inline)) void lock(struct weft__queue *q)
{
	weft__task_lock(&q->lock);
}

static inline __attribute__((always_inline)) void unlock(struct weft__queue *q)
{
	weft__task_unlock(&q->lock);
}

/* A deliberate fault for tests: between a check and the action that follows from it, other threads get the lock. Never
 * in the library. */
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

static inline void add_first(struct weft__queue *q, struct weft__place *place)
{
	place->prev = NULL;
	place->next = q->first;
	if (q->first)
		q->first->prev = place;
	else
		q->last = place;
	q->first = place;
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

/* Has a cancellation or a deadline ended the wait? Its place stays in the queue until the waiter runs again. False: not
 * yet, but the wait may end at any time: only a claim tells. */
static inline bool has_ended(const struct weft__place *place)
{
	/* Relaxed: the caller only wants to see claims that happened before its own call. */
	return __atomic_load_n(&place->waiter->state, __ATOMIC_RELAXED) & WEFT__CLAIMED;
}

/* Like weft_waiter_claim. */
static inline __attribute__((always_inline)) bool claim(const struct weft__place *place)
{
	weft_waiter_t *w = place->waiter;

	/* Acquire: pairs with the release of weft_waiter_park: the claiming thread calls the waiter's `wake`. */
	if (has_ended(place) || weft__waiter_become_here(w, WEFT__CLAIMED) & WEFT__CLAIMED)
		return false;
	w->result = place->index;
	return true;
}

/* Like claim_first. Adds to *leaving the number of places that this call removes although a deadline, a cancellation or
 * another case of a select ends their waits: the owners of these places still lock the object to leave the queue. */
static inline __attribute__((always_inline)) struct weft__place *claim_first_counting(struct weft__queue *q,
										      size_t *leaving)
{
	struct weft__place *place;

	while ((place = q->first)) {
		take_out(q, place);
		if (claim(place)) {
			weft__seen_release(place->waiter);
			return place;
		}
		++*leaving;
	}
	return NULL;
}

/* Remove the first place whose wait this thread can claim; NULL: there is none. The caller completes place->waiter,
 * preferably after it has released the lock. */
static inline struct weft__place *claim_first(struct weft__queue *q)
{
	size_t ignored = 0;

	return claim_first_counting(q, &ignored);
}

/* The waiters of a crowd of tasks have equal distances, if the tasks were made, and began to wait, one after the other.
 * So prefetch the address whose distance from `bytes` is eight times the distance from this place to the next. It may
 * be any address: a prefetch never faults. */
static inline void fetch_ahead(const struct weft__place *place, const void *bytes)
{
	uintptr_t step = (uintptr_t)place->next - (uintptr_t)place;

	__builtin_prefetch((const void *)((uintptr_t)bytes + 8 * step), 1);
}

/* Prefetch the lines that complete_all is about to touch. */
static inline void fetch_waiters_ahead(const struct weft__place *place)
{
	const weft_waiter_t *waiter = place->waiter;

	fetch_ahead(place, place);
	fetch_ahead(place, waiter);
	/* Acquire: pairs with weft_waiter_park. Before it, the waiter's owner may not have been written yet. */
	if (__atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) & WEFT__PARKED) {
		/* By numbers, not pointers: a thread's waiter has no owner. */
		uintptr_t owner = (uintptr_t)waiter->owner;

		fetch_ahead(place, (const void *)(owner + offsetof(struct weft__task, shields)));
		fetch_ahead(place, (const void *)(owner + offsetof(struct weft__task, rt)));
	}
}

/* Remove all places whose waits this thread can claim: a list by `next`. Counts like claim_first_counting. */
static inline struct weft__place *claim_all_counting(struct weft__queue *q, size_t *leaving)
{
	struct weft__place *all = NULL, **end = &all, *place;

	while (q->first) {
		fetch_ahead(q->first, q->first);
		fetch_ahead(q->first, q->first->waiter);
		place = claim_first_counting(q, leaving);
		if (!place)
			break;
		*end = place;
		end = &place->next;
	}
	*end = NULL;
	return all;
}

static inline struct weft__place *claim_all(struct weft__queue *q)
{
	size_t ignored = 0;

	return claim_all_counting(q, &ignored);
}

/* `place` may be NULL. */
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
		fetch_waiters_ahead(place);
		weft__seen_release(place->waiter);
		weft_waiter_complete(place->waiter);
	}
}

/* broadcast.c: the same results as weft__broadcast_receive, but an available item stays for the next receive. */
int weft__broadcast_look(weft_receiver_t *r, void *item, struct weft__place *place) WEFT__HIDDEN;

#endif
