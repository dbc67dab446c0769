/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A lock that the worker which opened a scope takes by plain instructions. If there are several workers, a task that a
 * scope starts takes at least four atomic instructions, and two of them are the scope's lock. But nearly all tasks of a
 * scope begin and end on the worker that opened it. So that worker reserves the lock, and takes it by plain
 * instructions until another thread wants it:
 *
 * 	home:            inside = 1;  still its home?  then lock = 1;   inside = 0
 * 	another thread:  home = SHARING;  ask the worker, and wait for its answer;  home = NULL;  then as any lock
 *
 * A worker answers whenever it opens a scope or looks at timers; from then on it sees SHARING. A worker in a long task
 * does not answer. So after a microsecond or two the other thread issues a barrier in all threads (membarrier), which
 * replaces a fence in both, and waits until inside == 0. Each thread writes first, and then reads the other thread's
 * word: at least one of them sees the other's store, as in single_thread.h.
 *
 * The barrier takes as long as a thousand locks, 10 microseconds in a virtual machine. So a worker that had to share a
 * scope opens the next 16 scopes without reserving them, 32 after the next shared scope, and so on up to 4096; each
 * reserved scope that it did not share reduces that number by one.
 *
 * A tree of a million tasks by two workers (the lab's sched/skynet2) takes 0.91 of the CPU time without reservations.
 *
 * After lock reservation (Kawachiya et al., 2002). Rejected: the same for the stack of spawned tasks (queue.h). It
 * saved another 3 % of that time, and put a barrier into each theft.
 */
#ifndef WEFT_SRC_SCHED_BIASED_LOCK_H
#define WEFT_SRC_SCHED_BIASED_LOCK_H

#include "sched/sched.h"

enum { WEFT__PAUSE_LEAST = 16, WEFT__PAUSE_MOST = 4096 /* scopes */ };

/* Take a scope's lock away from the worker that reserved it. */
void weft__scope_share(weft_scope_t *s) WEFT__HIDDEN;

/* Called by a worker, about itself, at a point where it holds no reserved lock. */
static inline void weft__home_answers(struct weft__worker *w)
{
	/* Acquire and release: both pair with ask() in scope.c. */
	uint32_t asked = atomic_load_explicit(&w->asked, memory_order_acquire);

	if (weft__unlikely(asked != atomic_load_explicit(&w->answered, memory_order_relaxed)))
		atomic_store_explicit(&w->answered, asked, memory_order_release);
}

/* False: another thread wants the lock. */
static inline bool weft__reserved_lock(weft_scope_t *s, struct weft__worker *home)
{
	bool mine;

	atomic_store_explicit(&home->inside, 1, memory_order_relaxed);
	weft__light_fence();
	mine = __atomic_load_n(&s->home, __ATOMIC_RELAXED) == home;
	if (__builtin_expect(mine, 1))
		__atomic_store_n(&s->lock, 1, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in ask(), which waits for 0. */
	atomic_store_explicit(&home->inside, 0, memory_order_release);
	return mine;
}

static inline void weft__scope_lock(weft_scope_t *s)
{
	struct weft__worker *home;

	weft__touch_stack();
	/* Acquire: pairs with weft__scope_share; so the exchange sees the value that the home wrote into the lock. */
	home = __atomic_load_n(&s->home, __ATOMIC_ACQUIRE);
	if (home) {
		if (home == weft__worker() && weft__reserved_lock(s, home))
			return;
		weft__scope_share(s);
	}
	weft__spin_lock(&s->lock);
	weft__seen_acquire(&s->lock);
}

static inline void weft__scope_unlock(weft_scope_t *s)
{
	weft__task_unlock(&s->lock);
}

#endif
