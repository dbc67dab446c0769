/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Mutexes and conditions.
 *
 * `state` has these bits. The mutex is free if OWNED is not set.
 *
 *   OWNED     set by the task that locks, cleared by the owner
 *   WAITERS   the queue may have a place
 *   WOKEN     an unlock has woken a waiter, which has not tried to lock the mutex since
 *   STARVING  the next unlock does not free the mutex but hands it to the first waiter in the queue
 *   WEFT__MUTEX_MARKED   set and cleared by the owner: its unlock takes the slow path. See src/sched/turn.c
 *
 * An unlock frees the mutex before the task that it wakes can run. So tasks that use a mutex often do so many times in
 * a turn, with their data in the cache, instead of a switch for each section: with strict hand-over, ten tasks with an
 * empty section take four times as long. The price is that another task may lock the mutex first, which is called
 * barging. A waiter that is woken, and finds the mutex locked, waits again as the first of the queue. After MOST_LOST
 * such wake-ups it sets STARVING, and the next unlock makes it the owner. So the first waiter in the queue is passed
 * over in MOST_LOST wake-ups at most. Counts instead of a time make the bound the same in a simulation. Rejected: a
 * lasting mode, as Go has, in which each unlock hands the mutex over until a wait was short: it would need the clock.
 *
 * No wake-up is lost
 *   While the mutex is owned, all bits except OWNED change under the queue's lock only; WAITERS changes under this lock
 *   at any time. While the mutex is free, a barging task may set OWNED without the lock. The owner frees the mutex if
 *   WAITERS is not set, or if WOKEN is, by a compare-and-exchange that sees all four bits; otherwise it locks the
 *   queue, wakes the first waiter, and sets WOKEN. A woken waiter has been claimed, so nothing else ends its wait. It
 *   clears WOKEN in the same step in which it locks the mutex, or finds it owned and is back in the queue with WAITERS
 *   set: then the owner has not freed it, and looks at the queue when it does. If a cancellation or a deadline ends
 *   that wait, no wake-up has to be passed on. If STARVING is set and the queue is empty, because the waiter's deadline
 *   has passed, the next unlock clears it.
 *
 * No access to freed memory
 *   The compare-and-exchange that clears OWNED is the last access of an unlock to the mutex, because the next owner may
 *   be the last user and free the memory. The slow path therefore never clears OWNED under the queue's lock, which it
 *   would have to release afterwards. The waiter that it wakes stays valid until weft_waiter_complete. An unlock that
 *   hands the mutex over accesses it for the last time before the new owner can run.
 */
#include "os/os.h"
#include "sync/queue.h"

enum { OWNED = 1, WAITERS = 2, WOKEN = 4, STARVING = 8 };

enum { MOST_LOST = 4 };

static void set_owner(weft_mutex_t *m, void *owner)
{
	weft__seen_acquire(&m->state);
	__atomic_store_n(&m->owner, owner, __ATOMIC_RELAXED);
}

bool weft__mutex_barge(weft_mutex_t *m, weft_coro_t *owner)
{
	uint32_t state = __atomic_load_n(&m->state, __ATOMIC_RELAXED);

	do
		if (state & OWNED)
			return false;
	/* Acquire: pairs with the release that freed the mutex, here or in weft_mutex_unlock. */
	while (
	    !__atomic_compare_exchange_n(&m->state, &state, state | OWNED, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
	set_owner(m, owner);
	return true;
}

/* The caller holds the queue's lock. Returns the state after the caller has locked the mutex or joined the queue. */
static uint32_t entered(const weft_mutex_t *m, uint32_t state, unsigned lost)
{
	if (lost)
		state &= ~(uint32_t)WOKEN;
	if (state & OWNED)
		return state | WAITERS | (lost >= MOST_LOST && WEFT_NO_CANARY(mutex_never_hands_over) ? STARVING : 0);
	return OWNED | (m->queue.first ? state : state & WOKEN);
}

bool weft__mutex_enter(weft_mutex_t *m, struct weft__queued *w, unsigned lost)
{
	uint32_t state;

	lock(&m->queue);
	state = __atomic_load_n(&m->state, __ATOMIC_RELAXED);
	/* Acquire: pairs with the release that freed the mutex. */
	while (!__atomic_compare_exchange_n(&m->state, &state, entered(m, state, lost), false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED))
		;
	if (!(state & OWNED))
		set_owner(m, w->place.value);
	else if (lost)
		add_first(&m->queue, &w->place);
	else
		add(&m->queue, &w->place);
	unlock(&m->queue);
	return !(state & OWNED);
}

/* Wake the first waiter in the queue. NULL: nobody waits. *state is set to the mutex's state, or to 0 if the mutex was
 * handed over. */
static struct weft__place *wake_first(weft_mutex_t *m, uint32_t *state)
{
	struct weft__place *next;
	bool hands_over;

	lock(&m->queue);
	next = claim_first(&m->queue);
	hands_over = next && __atomic_load_n(&m->state, __ATOMIC_RELAXED) & STARVING;
	if (hands_over)
		__atomic_store_n(&m->owner, next->value, __ATOMIC_RELAXED);
	if (next)
		next->status = hands_over || WEFT_CANARY(mutex_has_two_owners) ? 0 : -EAGAIN;
	*state = OWNED | (m->queue.first ? WAITERS : 0) | (next && !hands_over ? WOKEN : 0);
	if (!next && WEFT_CANARY(mutex_is_free_too_early))
		*state = 0;
	/* Relaxed: no task gets the mutex by this store. */
	__atomic_store_n(&m->state, *state, __ATOMIC_RELAXED);
	if (WEFT_CANARY(mutex_is_free_too_early))
		weft__os_yield();
	unlock(&m->queue);
	if (hands_over)
		*state = 0;
	return next;
}

int weft__mutex_release(weft_mutex_t *m)
{
	uint32_t state = __atomic_load_n(&m->state, __ATOMIC_RELAXED);
	struct weft__place *next = NULL;

	weft__seen_release(&m->state);
	do {
		if ((state & (WAITERS | WOKEN)) == WAITERS)
			next = wake_first(m, &state);
		if (!state)
			break;
		/* Release: pairs with the acquire of the task that locks it next. */
	} while (!__atomic_compare_exchange_n(&m->state, &state, state & ~(uint32_t)(OWNED | WEFT__MUTEX_MARKED), false,
					      __ATOMIC_RELEASE, __ATOMIC_RELAXED));
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
