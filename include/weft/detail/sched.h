/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/sched.h: the private part of weft/sched.h: how tasks wait, how operations are counted, and
 * the bodies of inline functions. weft/sched.h includes it at its end.
 */
#ifndef WEFT_DETAIL_SCHED_H
#define WEFT_DETAIL_SCHED_H

#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <weft/sched.h>

WEFT_EXTERN_C_BEGIN

/* The functions by which weft/io.h lets a select wait for its objects. */
struct weft__awaited {
	/* Sets `status` of each object of the list. */
	void (*look)(struct weft__awaited *list);
	/* Like weft_wait, but the first object that has a status also claims the waiter. After it has returned, no
	 * object will claim the waiter. -EAGAIN: the select must begin again. */
	int (*wait)(struct weft__awaited *list, weft_waiter_t *w);
	struct weft__awaited *next;
	int index;  /* the index of its case */
	int status; /* 0: none yet */
};

/* States of a waiter. Bits are only added. */
enum {
	WEFT__PARKED = 1,  /* the handler of `wait` has suspended the task: the claimer ends the wait by `wake` */
	WEFT__CLAIMED = 2, /* the claimer ends the wait, nobody else may */
	WEFT__DONE = 4,	   /* the wait ended before it was parked: the handler continues the task at once */
	WEFT__WOKEN = 8,   /* a waiting thread's `wake` was called, and does not access the waiter any more */
};

WEFT__INLINE void weft_waiter_init(weft_waiter_t *w, const char *what, void *object, uint64_t deadline)
{
	w->state = 0;
	w->result = 0;
	w->what = what;
	w->object = object;
	w->timer.at = deadline;
	w->timer.wheel = NULL;
	w->timer.is_scope = 0;
}

/* Not 0: several threads use tasks, or objects that tasks wait for. See src/sched/single_thread.h. */
extern WEFT_API unsigned char weft__crowd;
WEFT_API uint32_t weft__waiter_add(weft_waiter_t *w, uint32_t bits);

/* Atomically adds bits to a waiter's state. Returns the state before. */
WEFT__INLINE uint32_t weft__waiter_become(weft_waiter_t *w, uint32_t bits)
{
	if (__atomic_load_n(&weft__crowd, __ATOMIC_ACQUIRE))
		return __atomic_fetch_or(&w->state, bits, __ATOMIC_ACQ_REL);
	return weft__waiter_add(w, bits);
}

WEFT__INLINE bool weft_waiter_claim(weft_waiter_t *w, int result)
{
	/* Acquire: pairs with the release of weft_waiter_park, whose `wake` the claimer calls. */
	if (__atomic_load_n(&w->state, __ATOMIC_RELAXED) & WEFT__CLAIMED ||
	    weft__waiter_become(w, WEFT__CLAIMED) & WEFT__CLAIMED)
		return false;
	w->result = result;
	return true;
}

WEFT__INLINE void weft_waiter_complete(weft_waiter_t *w)
{
	/* After the waiter is parked only this call ends the wait, so that no second atomic operation is needed. */
	if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) & WEFT__PARKED ||
	    weft__waiter_become(w, WEFT__DONE) & WEFT__PARKED)
		w->wake(w);
}

WEFT__INLINE bool weft_waiter_park(weft_waiter_t *w)
{
	return !(weft__waiter_become(w, WEFT__PARKED) & WEFT__DONE);
}

/* The calling task itself was cancelled, not only a scope of it. True: unwind it, do not return -ECANCELED. */
WEFT_API bool weft__unwinds(void);

WEFT_API WEFT__COLD weft_coro_t *weft__owner_above(void);

/* Returns the first coroutine of the caller's task, whichever of its coroutines calls; in a thread, the thread's first
 * coroutine. A wait suspends this coroutine, and it owns the locks that the caller takes. */
WEFT__INLINE weft_coro_t *weft__owner(void)
{
	weft_coro_t *self = weft__self();

	if (weft__likely(self && self->handled == weft_handles(weft_op_sched).word) ||
	    WEFT_CANARY(coroutines_own_locks))
		return self;
	return weft__owner_above();
}

/* Converts a wait's result: performs weft_cancelled in place of -ECANCELED if the task is to be unwound. */
WEFT__INLINE int weft__waited(int result)
{
	if (weft__unlikely(result == -ECANCELED) && weft__unwinds())
		weft_cancelled();
	return result;
}

/* The results of weft__turn_ends. */
enum { WEFT__TURN_GOES_ON, WEFT__TURN_YIELDS, WEFT__TURN_LOOKS };

/* The argument of weft__turn_ends. Three values are for the time before an operation takes effect: the operation may
 * wait, and fails if its task is cancelled; it may wait, and does not fail; it never waits. The fourth is for the time
 * after the effect: other tasks may be able to run. With the last two a task yields only in a simulation. */
enum { WEFT__MAY_WAIT, WEFT__MAY_CHECK, WEFT__NEVER_WAITS, WEFT__LETS_GO };

/* The thread has spent its operations (src/sched/turn.c). WEFT__TURN_YIELDS: the caller must yield, and then check
 * whether its task is cancelled; WEFT__TURN_LOOKS: it must only check. */
WEFT_API WEFT__COLD int weft__turn_ends(int when);
/* -ECANCELED: the operation fails, because a wait of the calling task would end so. Else 0. */
WEFT_API WEFT__COLD int weft__turn_result(bool fails);

/* Returns 0 or, for WEFT__MAY_WAIT, -ECANCELED: the caller must not do the operation. */
__attribute__((cold, noinline, unused)) static int weft__give_way(int when)
{
	int end = weft__turn_ends(when);

	if (end == WEFT__TURN_YIELDS)
		(void)weft_op_yield();
	return end == WEFT__TURN_GOES_ON ? 0 : weft__waited(weft__turn_result(when == WEFT__MAY_WAIT));
}

/* Begin an operation, before it has any effect and with no lock held: the task yields if its turn is over. `waits`: the
 * operation may wait; with a deadline of 0 no operation does. Returns as weft__give_way. */
WEFT__INLINE int weft__begin_operation(bool waits)
{
	return weft__likely(!weft__spend_operation()) ? 0 : weft__give_way(waits ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS);
}

WEFT__INLINE void weft__begin_check(void)
{
	if (weft__unlikely(weft__spend_operation()))
		(void)weft__give_way(WEFT__MAY_CHECK);
}

/* Begin an operation that never waits, but may make other tasks ready. The result is the argument for
 * weft__end_release. */
WEFT__INLINE bool weft__begin_release(void)
{
	if (weft__likely(!weft__spend_operation()))
		return false;
	(void)weft__give_way(WEFT__NEVER_WAITS);
	return true;
}

WEFT__INLINE void weft__end_release(bool spent)
{
	if (weft__unlikely(spent))
		(void)weft__give_way(WEFT__LETS_GO);
}

WEFT__INLINE int weft_wait(weft_waiter_t *w)
{
	weft_op_wait(w);
	return w->result;
}

/* For a broken rule of the interface: writes a line with the function and the rule, then calls abort(). */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__misused(const char *function, const char *rule);

WEFT__INLINE uint64_t weft_now(void)
{
	return weft_op_now();
}

WEFT__INLINE int weft_task_yield(void)
{
	return weft__waited(weft_op_yield());
}

WEFT__INLINE int weft_sleep_until(uint64_t when)
{
	weft_waiter_t w;
	int result;

	weft_waiter_init(&w, "sleep", NULL, when);
	result = weft_wait(&w);
	return result == -ETIMEDOUT ? 0 : weft__waited(result);
}

WEFT__INLINE int weft_sleep(uint64_t nanoseconds)
{
	uint64_t now = weft_now();

	return weft_sleep_until(nanoseconds < WEFT_NEVER - now ? now + nanoseconds : WEFT_NEVER - 1);
}

WEFT__INLINE weft_ticker_t weft_ticker(uint64_t period, weft_missed_t missed)
{
	uint64_t now = weft_now();
	weft_ticker_t t;

	t.period = period ? period : 1;
	t.next = t.period < WEFT_NEVER - now ? now + t.period : WEFT_NEVER - 1;
	t.missed = missed;
	return t;
}

WEFT__INLINE int weft_ticker_wait(weft_ticker_t *t)
{
	int error = weft_sleep_until(t->next);
	uint64_t now, from;

	if (error)
		return error;
	now = weft_now();
	from = t->missed == WEFT_TICK_DELAY && now - t->next >= t->period ? now
	       : t->missed == WEFT_TICK_SKIP ? t->next + (now - t->next) / t->period * t->period
					     : t->next;
	t->next = t->period < WEFT_NEVER - from ? from + t->period : WEFT_NEVER - 1;
	return 0;
}

/* For the functions below. -EPERM: no runtime resumes the caller. */
WEFT__INLINE int weft__spawn(weft_scope_t *scope, weft_task_t *handle, weft_fn_t *fn, void *arg,
			     const weft_task_attr_t *attr)
{
	struct weft_spawn what = {fn, arg, attr, scope, handle};
	int error = weft_op_spawn(&what);

	/* After the spawn: in a simulation the new task may run before the caller's next instruction. */
	(void)weft__begin_operation(false);
	return error;
}

WEFT__INLINE WEFT__USE_RESULT int weft_spawn_detached(weft_fn_t *fn, void *arg, const weft_task_attr_t *attr)
{
	return weft__spawn(NULL, NULL, fn, arg, attr);
}

WEFT_API void weft__cancel_task(weft_task_t *t);

WEFT__INLINE void weft_task_cancel(weft_task_t *t)
{
	bool spent = weft__begin_release();

	weft__cancel_task(t);
	weft__end_release(spent);
}

/* Begins a join. True: the caller must wait for `w`. */
WEFT_API bool weft__join_begin(weft_task_t *t, weft_waiter_t *w);
/* For a wait that a deadline or a cancellation ended. True: the task has ended nevertheless. */
WEFT_API bool weft__join_end(weft_task_t *t, weft_waiter_t *w);

WEFT__INLINE int weft_join_until(weft_task_t *t, void **result, uint64_t deadline)
{
	weft_waiter_t w;
	bool told = false;

	if (weft__unlikely(!t)) /* compilers know that the address of a variable is not NULL */
		weft__misused("weft_join", "was called with NULL: it needs a handle that a task was started with");
	weft__begin_check();
	/* Acquire: pairs with the end of the task. */
	if (!deadline && __atomic_load_n(&t->task, __ATOMIC_ACQUIRE))
		return -ETIMEDOUT;
	weft_waiter_init(&w, "task", t, deadline);
	while (weft__join_begin(t, &w)) {
		if (weft_wait(&w) == 0 || weft__join_end(t, &w))
			break;
		if (w.result == -ETIMEDOUT)
			return -ETIMEDOUT;
		told = true;
		weft__cancel_task(t);
		weft_shield_begin();
		weft_waiter_init(&w, "cancelled task", t, WEFT_NEVER);
	}
	if (told)
		weft_shield_end();
	if (result)
		*result = t->result;
	return t->error;
}

WEFT__INLINE int weft_join(weft_task_t *t, void **result)
{
	return weft_join_until(t, result, WEFT_NEVER);
}

WEFT_API bool weft__task_is_cancelled(void);

WEFT__INLINE bool weft_task_is_cancelled(void)
{
	weft__begin_check();
	return weft__task_is_cancelled();
}

WEFT_API int weft__check_cancelled(void);

WEFT__INLINE int weft_task_check(void)
{
	return weft__waited(weft__check_cancelled());
}

/* A bound value, in the frame of the block. */
struct weft__binding {
	const void *key;
	void *value;
	const struct weft__binding *outer; /* the innermost binding that was visible when this binding was made */
	unsigned depth;			   /* the number of bindings on the chain by `outer`, this binding included */
};

/* The parts of weft_bind. */
#define WEFT__BIND(...) WEFT__BIND_(__VA_ARGS__)
#define WEFT__BIND_(unbind, key_, value_, number)                                                                      \
	struct weft__binding weft__binding_##number;                                                                   \
	weft__bind(&weft__binding_##number, (key_), (void *)(value_));                                                 \
	WEFT__DEFER_(weft__quick_scope_ends, unbind, &weft__binding_##number, number)

WEFT_API void weft__bind(struct weft__binding *b, const void *key, void *value);
WEFT_API void weft__unbind(void *binding);

/* For sched.hpp: a place for a pointer of the calling task; NULL in a thread. */
WEFT_API void **weft__task_locals(void);

/* Moves the task to the helpers' queue (begin), or back. True: the caller must yield for the move to take place. */
WEFT_API bool weft__blocking(bool begin);
/* Leaves the helper thread of a weft_blocking for a wait (pause), or returns to it. True: the caller must yield for the
 * move to take place. */
WEFT_API bool weft__blocking_pause(bool pause);
WEFT__INLINE void weft__move(bool begin)
{
	if (weft__blocking(begin))
		(void)weft_op_yield();
}

WEFT__INLINE void weft__blocking_ends(int *unused)
{
	(void)unused;
	weft__move(false);
}

WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn(weft_scope_t *s, weft_fn_t *fn, void *arg)
{
	return weft__unlikely(!s) ? -EINVAL : weft__spawn(s, NULL, fn, arg, NULL);
}

WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn_with(weft_scope_t *s, weft_task_t *handle, weft_fn_t *fn, void *arg,
							const weft_task_attr_t *attr)
{
	if (weft__unlikely(!s)) {
		if (handle) {
			__builtin_memset(handle, 0, sizeof *handle);
			handle->error = -EINVAL;
		}
		return -EINVAL;
	}
	return weft__spawn(s, handle, fn, arg, attr);
}

WEFT_API void weft__cancel_scope(weft_scope_t *s, int error);

WEFT__INLINE void weft_scope_cancel(weft_scope_t *s, int error)
{
	bool spent = weft__begin_release();

	weft__cancel_scope(s, error);
	weft__end_release(spent);
}

/* True: the caller opened the scope. */
WEFT_API bool weft__scope_is_mine(const weft_scope_t *s);
/* True: the caller must wait for `w`. */
WEFT_API bool weft__scope_begin(weft_scope_t *s, weft_waiter_t *w);
WEFT_API bool weft__scope_end(weft_scope_t *s, weft_waiter_t *w);
WEFT_API int weft__scope_close(weft_scope_t *s);

/* Wait for all tasks. `told`: the tasks have been cancelled because the owner was cancelled. */
WEFT__INLINE bool weft__scope_drain(weft_scope_t *s, bool told)
{
	weft_waiter_t w;

	weft_waiter_init(&w, "tasks of a scope", s, WEFT_NEVER);
	if (told)
		weft_shield_begin();
	while (weft__scope_begin(s, &w)) {
		if (weft_wait(&w) == 0 || weft__scope_end(s, &w))
			continue;
		if (!told) {
			told = true;
			weft_shield_begin();
			weft__cancel_scope(s, -ECANCELED);
		}
		weft_waiter_init(&w, "cancelled tasks of a scope", s, WEFT_NEVER);
	}
	if (told)
		weft_shield_end();
	return told;
}

WEFT__INLINE int weft_scope_wait(weft_scope_t *s)
{
	if (weft__unlikely(!s))
		return -EINVAL;
	if (!s->closed) {
		if (weft__unlikely(!weft__scope_is_mine(s)))
			return -EPERM;
		weft__begin_check();
		(void)weft__scope_drain(s, false);
		s->error = weft__scope_close(s);
	}
	return s->error;
}

/* The function that WEFT_SCOPE defers. */
__attribute__((unused)) static void weft__scope_leave(weft_scope_t *s)
{
	if (s->closed)
		return;
	weft__cancel_scope(s, -ECANCELED);
	(void)weft__scope_drain(s, true);
	(void)weft__scope_close(s);
}

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_SCHED_H */
