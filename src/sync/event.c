/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Semaphores, events, wait groups, barriers, futures. */
#include "os/os.h"
#include "sync/queue.h"

/* ---- semaphore ------------------------------------------------------------------------------------------------- */

/*
 * Invariant when the lock is free: the first place in the queue whose wait has not ended needs more permits than there
 * are. All places behind it wait, too, so that a wait for many permits ends although other tasks take single permits.
 *
 * Grant permits to the places that can have them now: returns a list by `next`, which the caller completes after it has
 * released the lock.
 */
static struct weft__place *grant(weft_sem_t *s)
{
	struct weft__place *all = NULL, **end = &all, *place;

	while ((place = s->queue.first)) {
		size_t wanted = (size_t)(uintptr_t)place->value;

		if (wanted > s->permits && !has_ended(place))
			break;
		take_out(&s->queue, place);
		if (!claim(place))
			continue;
		weft__seen_release(place->waiter);
		s->permits -= wanted;
		*end = place;
		end = &place->next;
	}
	*end = NULL;
	return all;
}

bool weft__sem_enter(weft_sem_t *s, struct weft__place *place, size_t permits)
{
	struct weft__place *others;
	bool has;

	lock(&s->queue);
	others = grant(s);
	has = !s->queue.first && s->permits >= permits;
	if (has)
		s->permits -= permits;
	lose_the_lock(&s->queue, WEFT_CANARY(semaphore_waits_too_late));
	if (!has && place)
		add(&s->queue, place);
	unlock(&s->queue);
	complete_all(others);
	return has;
}

void weft__sem_leave(weft_sem_t *s, struct weft__place *place)
{
	struct weft__place *others;

	lock(&s->queue);
	if (place->queued)
		take_out(&s->queue, place);
	others = grant(s);
	unlock(&s->queue);
	complete_all(others);
}

int weft__sem_give(weft_sem_t *s, size_t permits)
{
	struct weft__place *others;
	bool too_many;

	lock(&s->queue);
	too_many = permits > SIZE_MAX - s->permits;
	if (!too_many)
		s->permits += permits;
	others = grant(s);
	unlock(&s->queue);
	complete_all(others);
	return too_many ? -EOVERFLOW : 0;
}

/* ---- event ----------------------------------------------------------------------------------------------------- */

/*
 * A thread that sees the event set does not take the lock, and may then free the event. So a single store sets the
 * event and releases the lock of its queue, and is the last access to the event: both are bits of `state`. The waiters
 * are claimed before that store, and completed after it.
 */
static inline __attribute__((always_inline)) void lock_event(weft_event_t *e)
{
	weft__touch_stack();
	weft__spin_lock_bit(&e->state);
	weft__seen_acquire(&e->state);
}

/* Release the lock, and set or reset the event in the same store. */
static inline __attribute__((always_inline)) void unlock_event(weft_event_t *e, bool set)
{
	weft__seen_release(&e->state);
	if (WEFT_CANARY(event_is_set_too_early) && set) {
		__atomic_store_n(&e->state, WEFT__SET | WEFT__LOCKED, __ATOMIC_RELEASE);
		weft__os_yield();
	}
	/* Release: pairs with lock_event and weft_event_is_set. */
	__atomic_store_n(&e->state, set ? WEFT__SET : 0, __ATOMIC_RELEASE);
}

static bool is_set(const weft_event_t *e)
{
	return __atomic_load_n(&e->state, __ATOMIC_RELAXED) & WEFT__SET;
}

bool weft__event_enter(weft_event_t *e, struct weft__place *place)
{
	bool waits;

	lock_event(e);
	waits = !is_set(e);
	if (WEFT_CANARY(event_waits_too_late)) {
		unlock_event(e, !waits);
		lock_event(e);
	}
	if (waits)
		add(&e->queue, place);
	unlock_event(e, !waits);
	return waits;
}

void weft__event_leave(weft_event_t *e, struct weft__place *place)
{
	lock_event(e);
	if (place->queued)
		take_out(&e->queue, place);
	unlock_event(e, is_set(e));
}

void weft__event_set(weft_event_t *e)
{
	struct weft__place *all;

	lock_event(e);
	all = claim_all(&e->queue);
	unlock_event(e, true);
	complete_all(all);
}

void weft__event_reset(weft_event_t *e)
{
	lock_event(e);
	unlock_event(e, false);
}

/* ---- wait group ------------------------------------------------------------------------------------------------ */

static int change(size_t *count, ptrdiff_t more)
{
	size_t fewer = 0 - (size_t)more;

	if (more < 0 && *count < fewer)
		return -EINVAL;
	if (more > 0 && (size_t)more > SIZE_MAX - *count)
		return -EOVERFLOW;
	*count += (size_t)more;
	return 0;
}

int weft__group_add(weft_group_t *g, ptrdiff_t more)
{
	struct weft__place *all = NULL;
	int error;

	lock_event(&g->done);
	error = change(&g->count, more);
	if (!g->count)
		all = claim_all(&g->done.queue);
	unlock_event(&g->done, !g->count);
	complete_all(all);
	return error;
}

bool weft__group_is_done(weft_group_t *g)
{
	bool done;

	lock_event(&g->done);
	done = !g->count;
	unlock_event(&g->done, is_set(&g->done));
	return done;
}

/* ---- once ------------------------------------------------------------------------------------------------------ */

/*
 * A once whose function may fail. Under the lock of `done`: a waiter is in the queue only while `begun` is set. If a
 * call fails, the first waiter makes the next call, and `begun` stays set. The store that unlocks and sets the event is
 * the last access to the once, as for every event.
 */
int weft__once_enter(weft_once_t *o, struct weft__place *place)
{
	bool done;
	int result;

	lock_event(&o->done);
	done = is_set(&o->done);
	result = done ? 0 : __atomic_load_n(&o->begun, __ATOMIC_RELAXED) ? -EAGAIN : 1;
	if (result > 0)
		__atomic_store_n(&o->begun, 1, __ATOMIC_RELAXED);
	else if (result < 0 && place)
		add(&o->done.queue, place);
	unlock_event(&o->done, done);
	return result;
}

void weft__once_end(weft_once_t *o, bool done)
{
	struct weft__place *others = NULL, *next = NULL;

	lock_event(&o->done);
	if (done)
		others = claim_all(&o->done.queue);
	else
		next = claim_first(&o->done.queue);
	if (next)
		next->status = -EAGAIN;
	else if (!done)
		__atomic_store_n(&o->begun, 0, __ATOMIC_RELAXED);
	unlock_event(&o->done, done);
	complete_all(others);
	complete(next);
}

/* ---- barrier --------------------------------------------------------------------------------------------------- */

/*
 * Invariant: `arrived` is the number of places in the queue. A party whose wait a cancellation or a deadline has ended
 * leaves the queue when it runs again. The barrier must not count it before that: its wait will return that it has not
 * arrived.
 */
static void drop_ended(weft_barrier_t *b)
{
	struct weft__place *place, *next;

	for (place = b->queue.first; place; place = next) {
		next = place->next;
		if (has_ended(place)) {
			take_out(&b->queue, place);
			b->arrived--;
		}
	}
}

/*
 * Claim all waiting parties. If a wait ends during this, fewer parties have arrived than were in the queue, and the
 * barrier stays closed. A claim cannot be undone: the claimed parties get -EAGAIN, and enter the barrier again.
 */
static struct weft__place *claim_parties(weft_barrier_t *b, bool *opens)
{
	struct weft__place *all = claim_all(&b->queue), *place;
	uint32_t claimed = 0;

	for (place = all; place; place = place->next)
		claimed++;
	*opens = claimed + 1 >= b->parties || WEFT_CANARY(barrier_counts_ended_waits);
	for (place = all; place; place = place->next)
		place->status = *opens ? 0 : -EAGAIN;
	b->arrived = 0;
	return all;
}

static bool is_last(const weft_barrier_t *b)
{
	return b->arrived + 1 >= b->parties;
}

bool weft__barrier_enter(weft_barrier_t *b, struct weft__queued *w)
{
	struct weft__place *all = NULL;
	bool opens = false;

	lock(&b->queue);
	if (is_last(b) && WEFT_NO_CANARY(barrier_counts_ended_waits))
		drop_ended(b);
	if (is_last(b))
		all = claim_parties(b, &opens);
	if (!opens && w) {
		b->arrived++;
		add(&b->queue, &w->place);
	}
	unlock(&b->queue);
	complete_all(all);
	return opens;
}

/* Called after a cancellation or a deadline has ended a wait. A party that is not in the queue any more is not counted
 * any more. */
void weft__barrier_leave(weft_barrier_t *b, struct weft__place *place)
{
	lock(&b->queue);
	if (place->queued) {
		take_out(&b->queue, place);
		b->arrived--;
	}
	unlock(&b->queue);
}

/* ---- future ---------------------------------------------------------------------------------------------------- */

int weft__future_set(weft_future_t *f, void *value, int error)
{
	struct weft__place *all = NULL;
	bool known;

	lock_event(&f->known);
	known = is_set(&f->known);
	if (!known) {
		f->value = value;
		f->error = error;
		all = claim_all(&f->known.queue);
	}
	unlock_event(&f->known, true);
	complete_all(all);
	return known ? -EALREADY : 0;
}
