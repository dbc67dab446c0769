/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mutexes and conditions.
 *
 * `state` leaves 0 by compare-and-exchange alone, and 1 in two ways: to 0 by its owner, or to 2 under the queue's lock,
 * by who is about to wait. With 2 its owner takes the slow way, under that lock; so whoever waits is seen.
 */
#include "sync/queue.h"

bool weft__mutex_enter(weft_mutex_t *m, struct weft__queued *w)
{
	bool free;

	lock(&m->queue);
	/* Acquire: pairs with weft_mutex_unlock. */
	free = __atomic_exchange_n(&m->state, 2, __ATOMIC_ACQUIRE) == 0;
	weft__seen_acquire(&m->state);
	if (free)
		__atomic_store_n(&m->owner, w->place.value, __ATOMIC_RELAXED);
	else
		add(&m->queue, &w->place);
	unlock(&m->queue);
	return free;
}

int weft__mutex_release(weft_mutex_t *m)
{
	struct weft__place *next;

	lock(&m->queue);
	next = claim_first(&m->queue);
	weft__seen_release(&m->state);
	if (next)
		__atomic_store_n(&m->owner, next->value, __ATOMIC_RELAXED);
	/* Release: pairs with who locks it next. With 1 the next unlock need not look here. */
	if (!m->queue.first || WEFT_CANARY(mutex_has_two_owners))
		__atomic_store_n(&m->state, next && WEFT_NO_CANARY(mutex_has_two_owners) ? 1 : 0, __ATOMIC_RELEASE);
	unlock(&m->queue);
	complete(next);
	return 0;
}

void weft__queue_enter(struct weft__queue *q, struct weft__queued *w)
{
	lock(q);
	add(q, &w->place);
	unlock(q);
}

void weft__queue_leave(struct weft__queue *q, struct weft__place *place)
{
	lock(q);
	if (place->queued)
		take_out(q, place);
	unlock(q);
}

void weft_cond_signal(weft_cond_t *c)
{
	struct weft__place *next;

	lock(&c->queue);
	next = claim_first(&c->queue);
	unlock(&c->queue);
	complete(next);
}

void weft_cond_broadcast(weft_cond_t *c)
{
	struct weft__place *all;

	lock(&c->queue);
	all = claim_all(&c->queue);
	unlock(&c->queue);
	complete_all(all);
}
