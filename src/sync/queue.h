/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An object's queue of places. All but the locks: under the queue's lock. */
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

/* Has something else ended the wait, a cancellation or a deadline? Its place stays in the queue until the waiter runs
 * again. False: not yet, but it may at any time: only a claim tells. */
static inline bool has_ended(const struct weft__place *place)
{
	/* Relaxed: the caller only wants to see claims that happened before its own call. */
	return __atomic_load_n(&place->waiter->state, __ATOMIC_RELAXED) & WEFT__CLAIMED;
}

/* As weft_waiter_claim. */
static inline __attribute__((always_inline)) bool claim(const struct weft__place *place)
{
	weft_waiter_t *w = place->waiter;

	/* Acquire: pairs with the release of weft_waiter_park, whose `wake` the claimer calls. */
	if (has_ended(place) || weft__waiter_become_here(w, WEFT__CLAIMED) & WEFT__CLAIMED)
		return false;
	w->result = place->index;
	return true;
}

/* Like claim_first. Adds to *leaving the number of places that are taken out although their waits end otherwise, by a
 * deadline, a cancellation or another case of a select: their owners still lock the object to leave the queue. */
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

/* Take the first whose wait nobody else ends; NULL: there is none. The caller completes place->waiter, at best when the
 * lock is released. */
static inline struct weft__place *claim_first(struct weft__queue *q)
{
	size_t ignored = 0;

	return claim_first_counting(q, &ignored);
}

/* The waiters of a crowd of tasks lie at equal distances, if the tasks were made, and began to wait, one after the
 * other. So fetch what lies as far from `bytes` as the eighth from here would lie from this place. It may be anything:
 * fetching never faults. */
static inline void fetch_ahead(const struct weft__place *place, const void *bytes)
{
	uintptr_t step = (uintptr_t)place->next - (uintptr_t)place;

	__builtin_prefetch((const void *)((uintptr_t)bytes + 8 * step), 1);
}

/* What complete_all is about to touch. */
static inline void fetch_waiters_ahead(const struct weft__place *place)
{
	const weft_waiter_t *waiter = place->waiter;

	fetch_ahead(place, place);
	fetch_ahead(place, waiter);
	/* Acquire: pairs with weft_waiter_park. Before that the owner is still to be written. */
	if (__atomic_load_n(&waiter->state, __ATOMIC_ACQUIRE) & WEFT__PARKED) {
		/* By numbers: a thread's waiter has no owner. */
		uintptr_t owner = (uintptr_t)waiter->owner;

		fetch_ahead(place, (const void *)(owner + offsetof(struct weft__task, shields)));
		fetch_ahead(place, (const void *)(owner + offsetof(struct weft__task, rt)));
	}
}

/* Take all whose waits nobody else ends: a list by `next`. Counts as claim_first_counting does. */
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
		fetch_waiters_ahead(place);
		weft__seen_release(place->waiter);
		weft_waiter_complete(place->waiter);
	}
}

/* broadcast.c: the results of weft__broadcast_receive, but an item that is there stays for the next receive. */
int weft__broadcast_look(weft_receiver_t *r, void *item, struct weft__place *place) WEFT__HIDDEN;

#endif
