/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mutexes and conditions.
 *
 * `state` leaves 0 by compare-and-exchange alone, and 1 in two ways: to 0 by its owner, or to 2 under the queue's lock,
 * by who is about to wait. With 2 its owner takes the slow way, under that lock; so whoever waits is seen.
 *
 * The compare-and-exchange that makes `state` 0 is the last access of an unlock to the mutex, because the next owner
 * may be the last user and free the memory. So the slow way never stores 0 under the queue's lock, which it would have
 * to release afterwards: if the queue is empty it stores 1, releases that lock, and then frees the mutex as the fast
 * way does. If a waiter came in between, `state` is 2, and the slow way begins again.
 */
#include "os/os.h"
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
	bool two_owners = WEFT_CANARY(mutex_has_two_owners), early = WEFT_CANARY(mutex_is_free_too_early);
	struct weft__place *next;
	uint32_t owned;

	weft__seen_release(&m->state);
	do {
		lock(&m->queue);
		next = claim_first(&m->queue);
		if (next)
			__atomic_store_n(&m->owner, next->value, __ATOMIC_RELAXED);
		/* With 1 the next unlock need not look here. Relaxed: nobody gets the mutex by it. */
		if (!m->queue.first || (next && two_owners))
			__atomic_store_n(&m->state, (next && two_owners) || (!next && early) ? 0 : 1, __ATOMIC_RELAXED);
		if (early)
			weft__os_yield();
		unlock(&m->queue);
		if (next || early)
			break;
		owned = 1;
		/* Release: pairs with who locks it next. */
	} while (!__atomic_compare_exchange_n(&m->state, &owned, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
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

void weft__cond_signal(weft_cond_t *c)
{
	struct weft__place *next;

	lock(&c->queue);
	next = claim_first(&c->queue);
	unlock(&c->queue);
	complete(next);
}

void weft__cond_broadcast(weft_cond_t *c)
{
	struct weft__place *all;

	lock(&c->queue);
	all = claim_all(&c->queue);
	unlock(&c->queue);
	complete_all(all);
}
