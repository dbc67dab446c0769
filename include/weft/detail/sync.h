/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/sync.h: the private part of weft/sync.h: the queues of waiters, and the bodies of inline
 * functions. weft/sync.h includes it at its end.
 */
#ifndef WEFT_DETAIL_SYNC_H
#define WEFT_DETAIL_SYNC_H

#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <weft/sync.h>

WEFT_EXTERN_C_BEGIN

/* A wait in one queue. */
struct weft__queued {
	weft_waiter_t waiter;
	struct weft__place place;
};

WEFT__INLINE void weft__queued_init(struct weft__queued *w, const char *what, void *object, uint64_t deadline)
{
	weft_waiter_init(&w->waiter, what, object, deadline);
	w->place.queued = false;
	w->place.waiter = &w->waiter;
	w->place.index = 0;
	w->place.status = 0;
}

/* Removes the place from the queue. After the call nobody hands the waiter anything. */
WEFT_API void weft__queue_leave(struct weft__queue *q, struct weft__place *place);

/* A bit of `state`. The owner sets it to make its unlock check whether the task must yield. */
enum { WEFT__MUTEX_MARKED = 16 };

/* Lock the mutex if it is free, even if other tasks wait for it. */
WEFT_API bool weft__mutex_barge(weft_mutex_t *m, weft_coro_t *owner);
/* True: the caller owns the mutex now. Else `w` is in the queue. `lost`: how often the caller was woken and found the
 * mutex locked again. */
WEFT_API bool weft__mutex_enter(weft_mutex_t *m, struct weft__queued *w, unsigned lost);
WEFT_API int weft__mutex_release(weft_mutex_t *m);

/* For the owner. The mark makes its unlock check whether the task must yield; an unlock without the mark does not pay
 * for this check. */
WEFT__INLINE void weft__mutex_mark(weft_mutex_t *m)
{
	__atomic_fetch_or(&m->state, WEFT__MUTEX_MARKED, __ATOMIC_RELAXED);
}

WEFT__INLINE bool weft__mutex_try(weft_mutex_t *m)
{
	uint32_t free = 0;

	/* Acquire: pairs with weft_mutex_unlock. */
	if (!__atomic_compare_exchange_n(&m->state, &free, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&m->owner, weft__owner(), __ATOMIC_RELAXED);
	return true;
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT bool weft_mutex_try_lock(weft_mutex_t *m)
{
	bool spent = weft__spend_operation(), locked;

	if (weft__unlikely(spent))
		(void)weft__give_way(WEFT__NEVER_WAITS);
	locked = weft__mutex_try(m) || weft__mutex_barge(m, weft__owner());
	if (weft__unlikely(spent) && locked)
		weft__mutex_mark(m);
	return locked;
}

__attribute__((noinline, unused)) static int weft__mutex_wait(weft_mutex_t *m, uint64_t deadline)
{
	weft_coro_t *owner = weft__owner();
	struct weft__queued w;
	unsigned lost = 0;
	int result;

	if (!deadline)
		return weft__mutex_barge(m, owner) ? 0 : -ETIMEDOUT;
	do {
		weft__queued_init(&w, "mutex", m, deadline);
		w.place.value = owner;
		w.place.status = -EAGAIN;
		if (weft__mutex_enter(m, &w, lost++))
			return 0;
		result = weft_wait(&w.waiter);
	} while (!result && w.place.status == -EAGAIN);
	if (result)
		weft__queue_leave(&m->queue, &w.place);
	return result;
}

WEFT__INLINE int weft__mutex_lock_until(weft_mutex_t *m, uint64_t deadline)
{
	if (weft__likely(weft__mutex_try(m)))
		return 0;
	if (weft__unlikely(__atomic_load_n(&m->owner, __ATOMIC_RELAXED) == weft__owner()))
		return -EDEADLK;
	return weft__waited(weft__mutex_wait(m, deadline));
}

__attribute__((cold, noinline, unused)) static int weft__mutex_lock_in_turn(weft_mutex_t *m, uint64_t deadline)
{
	int error = weft__give_way(deadline ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS);

	if (!error)
		error = weft__mutex_lock_until(m, deadline);
	if (!error)
		weft__mutex_mark(m);
	return error;
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_mutex_lock_until(weft_mutex_t *m, uint64_t deadline)
{
	int error;

	if (weft__unlikely(weft__operations_are_spent()))
		return weft__mutex_lock_in_turn(m, deadline);
	error = weft__mutex_lock_until(m, deadline);
	weft__count_operation();
	return error;
}

WEFT__INLINE WEFT__NOT_NULL int weft_mutex_lock(weft_mutex_t *m)
{
	return weft_mutex_lock_until(m, WEFT_NEVER);
}

__attribute__((cold, noinline, unused)) static int weft__mutex_unlock_in_turn(weft_mutex_t *m)
{
	int error;

	(void)weft__give_way(WEFT__NEVER_WAITS);
	error = weft__mutex_release(m);
	(void)weft__give_way(WEFT__LETS_GO);
	return error;
}

WEFT__INLINE WEFT__NOT_NULL int weft_mutex_unlock(weft_mutex_t *m)
{
	uint32_t state = 1;

	if (weft__unlikely(__atomic_load_n(&m->owner, __ATOMIC_RELAXED) != weft__owner()))
		return -EPERM;
	__atomic_store_n(&m->owner, NULL, __ATOMIC_RELAXED);
	/* Release: pairs with the next lock. */
	if (weft__likely(__atomic_compare_exchange_n(&m->state, &state, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)))
		return 0;
	return weft__unlikely(state & WEFT__MUTEX_MARKED) ? weft__mutex_unlock_in_turn(m) : weft__mutex_release(m);
}

WEFT_API void weft__queue_enter(struct weft__queue *q, struct weft__queued *w);

__attribute__((noinline, unused)) WEFT__NOT_NULL static int weft_cond_wait_until(weft_cond_t *c, weft_mutex_t *m,
										 uint64_t deadline)
{
	bool spent = weft__spend_operation();
	struct weft__queued w;
	int result;

	if (__atomic_load_n(&m->owner, __ATOMIC_RELAXED) != weft__owner())
		return -EPERM;
	result = weft__unlikely(spent) ? weft__give_way(deadline ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS) : 0;
	if (result)
		return result;
	if (!deadline)
		return -ETIMEDOUT;
	weft__queued_init(&w, "condition", c, deadline);
	weft__queue_enter(&c->queue, &w);
	__atomic_store_n(&m->owner, NULL, __ATOMIC_RELAXED);
	(void)weft__mutex_release(m);
	result = weft_wait(&w.waiter);
	if (result)
		weft__queue_leave(&c->queue, &w.place);
	weft_shield_begin();
	if (!weft__mutex_try(m))
		(void)weft__mutex_wait(m, WEFT_NEVER);
	if (weft__unlikely(spent))
		weft__mutex_mark(m);
	weft_shield_end();
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL int weft_cond_wait(weft_cond_t *c, weft_mutex_t *m)
{
	return weft_cond_wait_until(c, m, WEFT_NEVER);
}

WEFT_API void weft__cond_signal(weft_cond_t *c);
WEFT_API void weft__cond_broadcast(weft_cond_t *c);

WEFT__INLINE WEFT__NOT_NULL void weft_cond_signal(weft_cond_t *c)
{
	bool spent = weft__begin_release();

	weft__cond_signal(c);
	weft__end_release(spent);
}

WEFT__INLINE WEFT__NOT_NULL void weft_cond_broadcast(weft_cond_t *c)
{
	bool spent = weft__begin_release();

	weft__cond_broadcast(c);
	weft__end_release(spent);
}

/* 1: entered. 0: not yet. -EDEADLK: the caller is the writer. `w` NULL: do not wait. */
WEFT_API int weft__rwlock_enter(weft_rwlock_t *l, struct weft__queued *w, weft_coro_t *writer);
/* For a wait that a deadline or a cancellation ended: the next in the queue may be able to enter. */
WEFT_API void weft__rwlock_leave(weft_rwlock_t *l, struct weft__place *place);

__attribute__((noinline, unused)) static int weft__rwlock_wait(weft_rwlock_t *l, bool writes, uint64_t deadline)
{
	int result = weft__begin_operation(deadline != 0);
	struct weft__queued w;

	if (result)
		return result;
	weft__queued_init(&w, writes ? "lock for writing" : "lock for reading", l, deadline);
	w.place.value = writes ? weft__owner() : NULL;
	result = weft__rwlock_enter(l, deadline ? &w : NULL, (weft_coro_t *)w.place.value);
	if (result)
		return result < 0 ? result : 0;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w.waiter);
	if (result)
		weft__rwlock_leave(l, &w.place);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rwlock_read_until(weft_rwlock_t *l, uint64_t deadline)
{
	return weft__rwlock_wait(l, false, deadline);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rwlock_write_until(weft_rwlock_t *l, uint64_t deadline)
{
	return weft__rwlock_wait(l, true, deadline);
}

WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_read(weft_rwlock_t *l)
{
	return weft__rwlock_wait(l, false, WEFT_NEVER);
}

WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_write(weft_rwlock_t *l)
{
	return weft__rwlock_wait(l, true, WEFT_NEVER);
}

WEFT_API int weft__rwlock_unlock(weft_rwlock_t *l);

WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_unlock(weft_rwlock_t *l)
{
	bool spent = weft__begin_release();
	int error = weft__rwlock_unlock(l);

	weft__end_release(spent);
	return error;
}

/* True: the caller has the permits. `place` NULL: do not wait; else its `value` is the number of permits. */
WEFT_API bool weft__sem_enter(weft_sem_t *s, struct weft__place *place, size_t permits);
/* For a wait that a deadline or a cancellation ended: there may be enough permits for the next in the queue. */
WEFT_API void weft__sem_leave(weft_sem_t *s, struct weft__place *place);

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_sem_take_many_until(weft_sem_t *s, size_t permits,
									  uint64_t deadline)
{
	int result = weft__begin_operation(deadline != 0);
	struct weft__queued w;

	if (weft__unlikely(result))
		return result;
	if (!deadline)
		return weft__sem_enter(s, NULL, permits) ? 0 : -ETIMEDOUT;
	weft__queued_init(&w, "semaphore", s, deadline);
	w.place.value = (void *)(uintptr_t)permits;
	if (weft__sem_enter(s, &w.place, permits))
		return 0;
	result = weft_wait(&w.waiter);
	if (result)
		weft__sem_leave(s, &w.place);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL int weft_sem_take_many(weft_sem_t *s, size_t permits)
{
	return weft_sem_take_many_until(s, permits, WEFT_NEVER);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_sem_take_until(weft_sem_t *s, uint64_t deadline)
{
	return weft_sem_take_many_until(s, 1, deadline);
}

WEFT__INLINE WEFT__NOT_NULL int weft_sem_take(weft_sem_t *s)
{
	return weft_sem_take_many_until(s, 1, WEFT_NEVER);
}

WEFT_API int weft__sem_give(weft_sem_t *s, size_t permits);

WEFT__INLINE WEFT__NOT_NULL int weft_sem_give(weft_sem_t *s, size_t permits)
{
	bool spent = weft__begin_release();
	int error = weft__sem_give(s, permits);

	weft__end_release(spent);
	return error;
}

enum { WEFT__LOCKED = 1, WEFT__SET = 2 };

/* True: `place` is in the queue. */
WEFT_API bool weft__event_enter(weft_event_t *e, struct weft__place *place);
/* Like weft__queue_leave. */
WEFT_API void weft__event_leave(weft_event_t *e, struct weft__place *place);

WEFT_API void weft__event_set(weft_event_t *e);
WEFT_API void weft__event_reset(weft_event_t *e);

WEFT__INLINE WEFT__NOT_NULL void weft_event_set(weft_event_t *e)
{
	bool spent = weft__begin_release();

	weft__event_set(e);
	weft__end_release(spent);
}

WEFT__INLINE WEFT__NOT_NULL void weft_event_reset(weft_event_t *e)
{
	(void)weft__begin_operation(false);
	weft__event_reset(e);
}

WEFT__INLINE bool weft__event_is_set(const weft_event_t *e)
{
	/* Acquire: pairs with weft__event_set. */
	return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) & WEFT__SET;
}

WEFT__INLINE WEFT__NOT_NULL bool weft_event_is_set(const weft_event_t *e)
{
	(void)weft__begin_operation(false);
	return weft__event_is_set(e);
}

__attribute__((noinline, unused)) static int weft__event_wait(weft_event_t *e, const char *what, uint64_t deadline)
{
	struct weft__queued w;
	int result;

	if (!deadline)
		return -ETIMEDOUT;
	weft__queued_init(&w, what, e, deadline);
	if (!weft__event_enter(e, &w.place))
		return 0;
	result = weft_wait(&w.waiter);
	/* The event's address is not kept across the wait: it would need a register more, and a task that waits here
	 * with 1 KiB of segmented stack would need a second chunk. */
	if (result)
		weft__event_leave((weft_event_t *)w.waiter.object, &w.place);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_event_wait_until(weft_event_t *e, uint64_t deadline)
{
	int error = weft__begin_operation(deadline != 0);

	if (weft__unlikely(error))
		return error;
	return weft__event_is_set(e) ? 0 : weft__event_wait(e, "event", deadline);
}

WEFT__INLINE WEFT__NOT_NULL int weft_event_wait(weft_event_t *e)
{
	return weft_event_wait_until(e, WEFT_NEVER);
}

WEFT_API int weft__group_add(weft_group_t *g, ptrdiff_t more);

WEFT__INLINE WEFT__NOT_NULL int weft_group_add(weft_group_t *g, ptrdiff_t more)
{
	bool spent = weft__begin_release();
	int error = weft__group_add(g, more);

	weft__end_release(spent);
	return error;
}

WEFT__INLINE WEFT__NOT_NULL int weft_group_done(weft_group_t *g)
{
	return weft_group_add(g, -1);
}

WEFT_API bool weft__group_is_done(weft_group_t *g);

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_group_wait_until(weft_group_t *g, uint64_t deadline)
{
	int error = weft__begin_operation(deadline != 0);

	if (weft__unlikely(error))
		return error;
	return weft__group_is_done(g) ? 0 : weft__event_wait(&g->done, "wait group", deadline);
}

WEFT__INLINE WEFT__NOT_NULL int weft_group_wait(weft_group_t *g)
{
	return weft_group_wait_until(g, WEFT_NEVER);
}

WEFT__INLINE void weft__once_over(void *once)
{
	weft_once_t *o = (weft_once_t *)once;

	__atomic_store_n(&o->by, NULL, __ATOMIC_RELAXED);
	weft_event_set(&o->done);
}

/* For a caller that found that another caller had begun. */
__attribute__((noinline, unused)) static int weft__once_wait(weft_once_t *o, uint64_t deadline)
{
	if (__atomic_load_n(&o->by, __ATOMIC_RELAXED) == weft__owner())
		return -EDEADLK;
	return weft__event_wait(&o->done, "once", deadline);
}

WEFT__INLINE WEFT__NOT_NULL int weft_once_until(weft_once_t *o, void (*fn)(void *), void *arg, uint64_t deadline)
{
	weft__begin_check();
	if (weft__likely(weft__event_is_set(&o->done)))
		return 0;
	if (__atomic_exchange_n(&o->begun, 1, __ATOMIC_ACQ_REL))
		return weft__once_wait(o, deadline);
	__atomic_store_n(&o->by, weft__owner(), __ATOMIC_RELAXED);
	weft_defer(weft__once_over, o);
	fn(arg);
	return 0;
}

WEFT__INLINE WEFT__NOT_NULL int weft_once(weft_once_t *o, void (*fn)(void *), void *arg)
{
	return weft_once_until(o, fn, arg, WEFT_NEVER);
}

/* 1: the caller must call the function. 0: it is done. Else `place` is in the queue, unless it is NULL. */
WEFT_API int weft__once_enter(weft_once_t *o, struct weft__place *place);
/* The caller's call has ended. `done`: no further call is needed; else a waiter calls the function next. */
WEFT_API void weft__once_end(weft_once_t *o, bool done);

/* A call of the function. */
struct weft__once_call {
	weft_once_t *once;
	bool tells;
	int error;
};

__attribute__((unused)) static void weft__once_call_over(void *call)
{
	struct weft__once_call *c = (struct weft__once_call *)call;
	bool spent = weft__begin_release();

	__atomic_store_n(&c->once->by, NULL, __ATOMIC_RELAXED);
	c->once->error = c->tells ? c->error : 0;
	weft__once_end(c->once, c->tells || !c->error);
	weft__end_release(spent);
}

/* 0: the caller must call the function. 1: it is done. */
__attribute__((noinline, unused)) static int weft__once_wait_for_turn(weft_once_t *o, uint64_t deadline)
{
	struct weft__queued w;
	int result;

	if (__atomic_load_n(&o->by, __ATOMIC_RELAXED) == weft__owner())
		return -EDEADLK;
	weft__queued_init(&w, "once", o, deadline);
	result = weft__once_enter(o, deadline ? &w.place : NULL);
	if (result >= 0)
		return !result;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w.waiter);
	if (!result)
		return w.place.status != -EAGAIN;
	weft__event_leave(&o->done, &w.place);
	return weft__waited(result);
}

__attribute__((unused)) static int weft__once_call(weft_once_t *o, int (*fn)(void *), void *arg, bool tells,
						   uint64_t deadline)
{
	struct weft__once_call c = {o, tells, -ECANCELED};
	int turn;

	weft__begin_check();
	if (weft__likely(weft__event_is_set(&o->done)))
		return o->error;
	turn = weft__once_wait_for_turn(o, deadline);
	if (turn)
		return turn < 0 ? turn : o->error;
	__atomic_store_n(&o->by, weft__owner(), __ATOMIC_RELAXED);
	weft_defer(weft__once_call_over, &c);
	c.error = fn(arg);
	return c.error;
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_retry_until(weft_once_t *o, int (*fn)(void *), void *arg,
								       uint64_t deadline)
{
	return weft__once_call(o, fn, arg, false, deadline);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_retry(weft_once_t *o, int (*fn)(void *), void *arg)
{
	return weft__once_call(o, fn, arg, false, WEFT_NEVER);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_tell_until(weft_once_t *o, int (*fn)(void *), void *arg,
								      uint64_t deadline)
{
	return weft__once_call(o, fn, arg, true, deadline);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_tell(weft_once_t *o, int (*fn)(void *), void *arg)
{
	return weft__once_call(o, fn, arg, true, WEFT_NEVER);
}

/* True: the caller is the last to arrive, and the other parties continue. `w` NULL: do not wait. */
WEFT_API bool weft__barrier_enter(weft_barrier_t *b, struct weft__queued *w);
WEFT_API void weft__barrier_leave(weft_barrier_t *b, struct weft__place *place);

__attribute__((noinline, unused)) WEFT__NOT_NULL static int weft_barrier_wait_until(weft_barrier_t *b,
										    uint64_t deadline)
{
	bool spent = weft__spend_operation();
	int result = weft__unlikely(spent) ? weft__give_way(deadline ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS) : 0;
	struct weft__queued w;

	if (!b->parties)
		return -EINVAL;
	if (result)
		return result;
	do {
		weft__queued_init(&w, "barrier", b, deadline);
		if (weft__barrier_enter(b, deadline ? &w : NULL)) {
			if (weft__unlikely(spent))
				(void)weft__give_way(WEFT__LETS_GO);
			return 1;
		}
		if (!deadline)
			return -ETIMEDOUT;
		result = weft_wait(&w.waiter);
	} while (!result && w.place.status == -EAGAIN);
	if (result)
		weft__barrier_leave(b, &w.place);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL int weft_barrier_wait(weft_barrier_t *b)
{
	return weft_barrier_wait_until(b, WEFT_NEVER);
}

/* Returns the time of the caller's turn; *end: the value that replaces `before` in `next`. */
WEFT__INLINE uint64_t weft__rate_turn(const weft_rate_t *r, uint64_t now, uint64_t before, uint64_t *end)
{
	uint64_t begin = before > now ? before : now, slack;

	if (!r->burst || __builtin_mul_overflow(r->interval, r->burst - 1, &slack))
		slack = r->burst ? WEFT_NEVER : 0;
	*end = r->interval < WEFT_NEVER - begin ? begin + r->interval : WEFT_NEVER - 1;
	return begin > slack ? begin - slack : 0;
}

/* Wait for the time of the turn. If the wait is cancelled, and nobody has taken the next turn, the turn becomes free
 * again. */
__attribute__((noinline, unused)) static int weft__rate_wait(weft_rate_t *r, uint64_t at, uint64_t before, uint64_t end)
{
	weft_waiter_t w;
	int result;

	weft_waiter_init(&w, "rate", r, at);
	result = weft_wait(&w);
	if (result == -ETIMEDOUT)
		return 0;
	/* Relaxed, here and below: the word orders nothing but turns. */
	(void)__atomic_compare_exchange_n(&r->next, &end, before, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rate_wait_until(weft_rate_t *r, uint64_t deadline)
{
	int result = weft__begin_operation(deadline != 0);
	uint64_t now, before, end, at;

	if (weft__unlikely(result))
		return result;
	now = weft_now();
	before = __atomic_load_n(&r->next, __ATOMIC_RELAXED);
	do {
		at = weft__rate_turn(r, now, before, &end);
		if (at > now && at > deadline)
			return -ETIMEDOUT;
	} while (!__atomic_compare_exchange_n(&r->next, &before, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	return at > now ? weft__rate_wait(r, at, before, end) : 0;
}

WEFT__INLINE WEFT__NOT_NULL int weft_rate_wait(weft_rate_t *r)
{
	return weft_rate_wait_until(r, WEFT_NEVER);
}

WEFT_API int weft__future_set(weft_future_t *f, void *value, int error);

WEFT__INLINE WEFT__NOT_NULL int weft_future_set(weft_future_t *f, void *value, int error)
{
	bool spent = weft__begin_release();
	int result = weft__future_set(f, value, error);

	weft__end_release(spent);
	return result;
}

WEFT__INLINE WEFT__NOT_NULL weft_event_t *weft_future_event(weft_future_t *f)
{
	return &f->known;
}

WEFT__INLINE WEFT__NOT_NULL int weft_future_get_until(weft_future_t *f, void **value, uint64_t deadline)
{
	int error = weft__begin_operation(deadline != 0);

	if (!error && !weft__event_is_set(&f->known))
		error = weft__event_wait(&f->known, "future", deadline);
	if (error)
		return error;
	if (value)
		*value = f->value;
	return f->error;
}

WEFT__INLINE WEFT__NOT_NULL int weft_future_get(weft_future_t *f, void **value)
{
	return weft_future_get_until(f, value, WEFT_NEVER);
}

WEFT_API void weft__join_set_add(weft_join_set_t *s);
/* `m` NULL: the task could not be started. */
WEFT_API void weft__join_set_ended(weft_join_set_t *s, weft_join_set_task_t *m);
/* 1: place->value is a task. 0: the place is in the queue, if `waits`. -ENOENT. */
WEFT_API int weft__join_set_enter(weft_join_set_t *s, struct weft__place *place, bool waits);
WEFT_API size_t weft__join_set_count(weft_join_set_t *s);

__attribute__((unused)) static void weft__join_set_over(void *task)
{
	weft_join_set_task_t *m = (weft_join_set_task_t *)task;
	bool spent = weft__begin_release();

	weft__join_set_ended(m->set, m);
	weft__end_release(spent);
}

__attribute__((unused)) static void *weft__join_set_run(void *member)
{
	weft_join_set_task_t *m = (weft_join_set_task_t *)member;

	weft_defer(weft__join_set_over, m);
	return m->fn(m->arg);
}

__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_join_set_spawn_until(
    weft_join_set_t *s, weft_join_set_task_t *m, weft_fn_t *fn, void *arg, const weft_task_attr_t *attr,
    uint64_t deadline)
{
	int error;

	if (!fn || !m)
		return -EINVAL;
	error = s->limit ? weft_sem_take_until(&s->permits, deadline) : 0;
	if (error)
		return error;
	m->fn = fn;
	m->arg = arg;
	m->set = s;
	weft__join_set_add(s);
	error = weft_scope_spawn_with(s->scope, &m->handle, weft__join_set_run, m, attr);
	if (error)
		weft__join_set_ended(s, NULL);
	return error;
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_join_set_spawn(weft_join_set_t *s, weft_join_set_task_t *m,
								     weft_fn_t *fn, void *arg)
{
	return weft_join_set_spawn_until(s, m, fn, arg, NULL, WEFT_NEVER);
}

__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_join_set_next_until(weft_join_set_t *s,
											    weft_join_set_task_t **m,
											    uint64_t deadline)
{
	int result = weft__begin_operation(deadline != 0);
	struct weft__queued w;

	if (result)
		return result;
	weft__queued_init(&w, "next task of a join set", s, deadline);
	result = weft__join_set_enter(s, &w.place, deadline != 0);
	if (result < 0)
		return result;
	if (!result && !deadline)
		return -ETIMEDOUT;
	if (!result) {
		result = weft_wait(&w.waiter);
		if (result) {
			weft__queue_leave(&s->queue, &w.place);
			return weft__waited(result);
		}
		if (w.place.status)
			return w.place.status;
	}
	*m = (weft_join_set_task_t *)w.place.value;
	(*m)->error = weft_join(&(*m)->handle, &(*m)->result);
	return 0;
}

WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_join_set_next(weft_join_set_t *s, weft_join_set_task_t **m)
{
	return weft_join_set_next_until(s, m, WEFT_NEVER);
}

WEFT__INLINE WEFT__NOT_NULL size_t weft_join_set_count(weft_join_set_t *s)
{
	(void)weft__begin_operation(false);
	return weft__join_set_count(s);
}

WEFT_API uint64_t weft__broadcast_begin(weft_broadcast_t *b);
WEFT_API int weft__broadcast_send(weft_broadcast_t *b, const void *item);
WEFT_API void weft__broadcast_close(weft_broadcast_t *b);
WEFT_API int weft__broadcast_latest(weft_broadcast_t *b, void *item);
/* 1: received. -EPIPE. 0: there is no item; the place is in the queue, unless it is NULL. */
WEFT_API int weft__broadcast_receive(weft_receiver_t *r, void *item, struct weft__place *place);

WEFT__INLINE WEFT__NOT_NULL weft_receiver_t weft_broadcast_receiver(weft_broadcast_t *b)
{
	weft_receiver_t r;

	(void)weft__begin_operation(false);
	r.from = b;
	r.next = weft__broadcast_begin(b);
	r.missed = 0;
	r.item = NULL;
	return r;
}

WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_send(weft_broadcast_t *b, const void *item)
{
	bool spent = weft__begin_release();
	int error = weft__broadcast_send(b, item);

	weft__end_release(spent);
	return error;
}

WEFT__INLINE WEFT__NOT_NULL void weft_broadcast_close(weft_broadcast_t *b)
{
	bool spent = weft__begin_release();

	weft__broadcast_close(b);
	weft__end_release(spent);
}

WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_latest(weft_broadcast_t *b, void *item)
{
	(void)weft__begin_operation(false);
	return weft__broadcast_latest(b, item);
}

__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_broadcast_receive_until(weft_receiver_t *r,
												void *item,
												uint64_t deadline)
{
	int result = weft__begin_operation(deadline != 0);
	struct weft__queued w;

	if (weft__unlikely(result))
		return result;
	weft__queued_init(&w, "broadcast", r->from, deadline);
	result = weft__broadcast_receive(r, item, deadline ? &w.place : NULL);
	if (result)
		return result < 0 ? result : 0;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w.waiter);
	if (!result)
		return w.place.status;
	weft__queue_leave(&r->from->queue, &w.place);
	return weft__waited(result);
}

WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_receive(weft_receiver_t *r, void *item)
{
	return weft_broadcast_receive_until(r, item, WEFT_NEVER);
}

WEFT_API int weft__chan_free(weft_chan_t *c);
WEFT_API int weft__chan_close(weft_chan_t *c);
WEFT_API size_t weft__chan_count(weft_chan_t *c);

WEFT__INLINE int weft_chan_free(weft_chan_t *c)
{
	(void)weft__begin_operation(false);
	return weft__chan_free(c);
}

WEFT__INLINE int weft_chan_close(weft_chan_t *c)
{
	bool spent = weft__begin_release();
	int error = weft__chan_close(c);

	weft__end_release(spent);
	return error;
}

WEFT__INLINE size_t weft_chan_count(weft_chan_t *c)
{
	(void)weft__begin_operation(false);
	return weft__chan_count(c);
}

/* 1: done, or -EPIPE, -ENOMEM, -EINVAL. 0: `w` was initialised and is in the queue, unless the deadline is 0. */
WEFT_API int weft__chan_send(weft_chan_t *c, const void *item, struct weft__queued *w, uint64_t deadline);
WEFT_API int weft__chan_receive(weft_chan_t *c, void *item, struct weft__queued *w, uint64_t deadline);
WEFT_API void weft__chan_leave(weft_chan_t *c, struct weft__place *place);

/* For a NULL item. True: the channel's items have bytes, so it is an error. Compilers know that the address of a
 * variable is not NULL. */
WEFT_API bool weft__chan_wants_item(const weft_chan_t *c);

WEFT__INLINE int weft__chan_send_until(weft_chan_t *c, const void *item, uint64_t deadline)
{
	struct weft__queued w;
	int result;

	if (weft__unlikely(!item) && weft__chan_wants_item(c))
		return -EINVAL;
	result = weft__chan_send(c, item, &w, deadline);
	if (result)
		return result < 0 ? result : 0;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w.waiter);
	if (!result)
		return w.place.status;
	weft__chan_leave(c, &w.place);
	return weft__waited(result);
}

__attribute__((cold, noinline, unused)) static int weft__chan_send_in_turn(weft_chan_t *c, const void *item,
									   uint64_t deadline)
{
	int result = weft__give_way(deadline ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS);

	if (result)
		return result;
	result = weft__chan_send_until(c, item, deadline);
	(void)weft__give_way(WEFT__LETS_GO);
	return result;
}

WEFT__INLINE WEFT__USE_RESULT int weft_chan_send_until(weft_chan_t *c, const void *item, uint64_t deadline)
{
	if (weft__unlikely(weft__spend_operation()))
		return weft__chan_send_in_turn(c, item, deadline);
	return weft__chan_send_until(c, item, deadline);
}

WEFT__INLINE int weft_chan_send(weft_chan_t *c, const void *item)
{
	return weft_chan_send_until(c, item, WEFT_NEVER);
}

WEFT__INLINE WEFT__USE_RESULT int weft_chan_receive_until(weft_chan_t *c, void *item, uint64_t deadline)
{
	struct weft__queued w;
	int result;

	if (weft__unlikely(!item) && weft__chan_wants_item(c))
		return -EINVAL;
	result = weft__begin_operation(deadline != 0);
	if (weft__unlikely(result))
		return result;
	result = weft__chan_receive(c, item, &w, deadline);
	if (result)
		return result < 0 ? result : 0;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w.waiter);
	if (!result)
		return w.place.status;
	weft__chan_leave(c, &w.place);
	return weft__waited(result);
}

WEFT__INLINE int weft_chan_receive(weft_chan_t *c, void *item)
{
	return weft_chan_receive_until(c, item, WEFT_NEVER);
}

/* Returns a list of the objects of layers above; *wrong: an object is in two cases. */
WEFT_API struct weft__awaited *weft__select_awaited(const weft_case_t *cases, unsigned count, bool *wrong);

/* >= 0: this case is done. -EAGAIN: `w` is in all queues, or in no queue if it is NULL. -EINVAL. -EINPROGRESS: there
 * are objects of layers above, and `looked` is not set. The call checks the case `first` first. */
WEFT_API int weft__select_enter(weft_case_t *cases, unsigned count, weft_waiter_t *w, unsigned first, bool looked);
/* For the time after the wait. `done`: the case whose object ended the wait, which the call does not access again; its
 * status is set. < 0: no case. */
WEFT_API void weft__select_leave(weft_case_t *cases, unsigned count, int done);
WEFT_API unsigned weft__select_draw(unsigned count);

/* A select with objects of layers above. */
__attribute__((noinline, unused)) static int weft__select_above(weft_case_t *cases, unsigned count, uint64_t deadline,
								unsigned first)
{
	bool wrong = false, pauses = false;
	struct weft__awaited *list = weft__select_awaited(cases, count, &wrong);
	weft_waiter_t w;
	int result;

	if (wrong)
		return -EINVAL;
	/* A helper thread has no loop that could wait for these objects beside other objects. */
	if (deadline && weft__blocking_pause(true)) {
		pauses = true;
		(void)weft_op_yield();
	}
	do {
		list->look(list);
		weft_waiter_init(&w, "select", cases, deadline);
		result = weft__select_enter(cases, count, deadline ? &w : NULL, first, true);
		if (result != -EAGAIN || !deadline)
			break;
		result = list->wait(list, &w);
		weft__select_leave(cases, count, result);
	} while (result == -EAGAIN);
	if (pauses) {
		(void)weft__blocking_pause(false);
		(void)weft_op_yield();
	}
	return result == -EAGAIN ? -ETIMEDOUT : weft__waited(result);
}

WEFT__INLINE int weft__select(weft_case_t *cases, unsigned count, uint64_t deadline, unsigned first)
{
	weft_waiter_t w;
	int result;

	if (!cases || !count || count > WEFT_CASES)
		return -EINVAL;
	result = weft__begin_operation(deadline != 0);
	if (weft__unlikely(result))
		return result;
	weft_waiter_init(&w, "select", cases, deadline);
	result = weft__select_enter(cases, count, deadline ? &w : NULL, first, false);
	if (weft__unlikely(result == -EINPROGRESS))
		return weft__select_above(cases, count, deadline, first);
	if (result != -EAGAIN)
		return result;
	if (!deadline)
		return -ETIMEDOUT;
	result = weft_wait(&w);
	weft__select_leave(cases, count, result);
	return weft__waited(result);
}

WEFT__INLINE WEFT__USE_RESULT int weft_select_until(weft_case_t *cases, unsigned count, uint64_t deadline)
{
	return weft__select(cases, count, deadline, 0);
}

WEFT__INLINE int weft_select(weft_case_t *cases, unsigned count)
{
	return weft_select_until(cases, count, WEFT_NEVER);
}

WEFT__INLINE WEFT__USE_RESULT int weft_select_fair_until(weft_case_t *cases, unsigned count, uint64_t deadline)
{
	return weft__select(cases, count, deadline, count ? weft__select_draw(count) : 0);
}

WEFT__INLINE int weft_select_fair(weft_case_t *cases, unsigned count)
{
	return weft_select_fair_until(cases, count, WEFT_NEVER);
}

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_SYNC_H */
