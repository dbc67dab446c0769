/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread that is alone needs no atomic instructions. An item's way through a channel has eight of them, and they take
 * longer than the rest together: without them an item takes 0.45 of the time. If there are several workers, the check
 * costs such an item 3 of 56 ns.
 *
 * The worker of a runtime that has only this worker is alone, while no other thread of the process touches tasks or the
 * objects that they wait for. Three kinds of words are then read and written back by plain instructions: spin locks,
 * the states of waiters, and the words by which tasks are cancelled (weft__task.cancel). Other threads may read such a
 * word at any time. The first thread that is about to change such a word turns the two threads into a crowd, and from
 * then on, until the process ends, all accesses are atomic:
 *
 * 	the worker:      inside = 1;   allowed?  then read and write the word;   inside = 0
 * 	another thread:  allowed = 0;  a barrier in all threads (membarrier);    wait until inside == 0;   crowd = 1
 *
 * Each thread writes first, and then reads the other thread's word. The barrier replaces a fence in both, so at least
 * one of them sees the other's store: the worker sees that it is not alone any more, or the other thread sees that the
 * worker is inside, and waits for it. A thread that finds a crowd continues at once.
 *
 * A thread that makes a runtime and waits for its end (weft_rt_run) makes no crowd: it does nothing to tasks meanwhile.
 * Nor does the only thread of a process. A thread that steps an embedded runtime, or simulates, is alone while it does.
 *
 * Signal handlers must not use these functions: the protocol does not see a handler that interrupts the worker inside.
 * Code between step_in and step_out never suspends.
 *
 * After biased locks (Kawachiya et al., "Lock reservation", 2002), where one thread owns an object; here the thread
 * owns all objects, so that they need not record an owner. Rejected: plain instructions for only some of the eight
 * words, because the remaining atomic instructions wait for the same stores.
 */
#ifndef WEFT_SRC_SCHED_SINGLE_THREAD_H
#define WEFT_SRC_SCHED_SINGLE_THREAD_H

#include <stdatomic.h>
#include <weft/sched.h>

/* A thread's knowledge of other threads that use tasks: there are some, it must check, there are none. */
enum weft__company { WEFT__IN_CROWD = -1, WEFT__LOOKS, WEFT__ALONE };

struct weft__here {
	signed char company; /* enum weft__company */
	unsigned making;     /* depth of weft_rt_run */
};

extern __thread struct weft__here weft__here WEFT__HIDDEN __attribute__((tls_model("initial-exec")));

extern struct weft__alone {
	_Atomic uint32_t inside;
	_Atomic bool allowed; /* some thread is alone */
	uint32_t lock;	      /* protects changes */
} weft__alone WEFT__HIDDEN __attribute__((aligned(64)));

/* The calling thread is about to change a word, and does not know whether there is a crowd. */
void weft__crowd_join(void) WEFT__HIDDEN;

/* The calling thread was alone, and is not alone any more. */
void weft__alone_lost(void) WEFT__HIDDEN;

/* The calling thread resumes tasks, and no other thread does for this runtime. True: until weft__alone_end it is alone,
 * unless another thread uses tasks. */
bool weft__alone_begin(void) WEFT__HIDDEN;
void weft__alone_end(bool began) WEFT__HIDDEN;

/* For tests/orders, which runs all its threads in a single one. */
struct weft__here *weft__where(void) WEFT__HIDDEN;

#ifndef weft__light_fence
#define weft__light_fence() atomic_signal_fence(memory_order_seq_cst)
#endif

/* True: until weft__step_out the caller may read a word and write it back by plain instructions. False: it must use
 * atomic instructions. */
static inline __attribute__((always_inline)) bool weft__step_in(void)
{
	const signed char company = weft__here.company;

	if (company < WEFT__LOOKS)
		return false;
	if (__builtin_expect(company == WEFT__LOOKS, 0)) {
		weft__crowd_join();
		return false;
	}
	atomic_store_explicit(&weft__alone.inside, 1, memory_order_relaxed);
	weft__light_fence();
	if (__builtin_expect(atomic_load_explicit(&weft__alone.allowed, memory_order_acquire), 1))
		return true;
	weft__alone_lost();
	return false;
}

static inline void weft__step_out(void)
{
	/* Release: pairs with the acquire in make_crowd, which waits for 0. */
	atomic_store_explicit(&weft__alone.inside, 0, memory_order_release);
}

/* weft__waiter_become for the library's hot paths, without a call. */
static inline __attribute__((always_inline)) uint32_t weft__waiter_become_here(weft_waiter_t *w, uint32_t bits)
{
	uint32_t before;

	if (!weft__step_in())
		return __atomic_fetch_or(&w->state, bits, __ATOMIC_ACQ_REL);
	before = __atomic_load_n(&w->state, __ATOMIC_RELAXED);
	__atomic_store_n(&w->state, before | bits, __ATOMIC_RELAXED);
	weft__step_out();
	return before;
}

/* weft_waiter_claim, likewise. */
static inline __attribute__((always_inline)) bool weft__waiter_claim_here(weft_waiter_t *w, int result)
{
	if (__atomic_load_n(&w->state, __ATOMIC_RELAXED) & WEFT__CLAIMED ||
	    weft__waiter_become_here(w, WEFT__CLAIMED) & WEFT__CLAIMED)
		return false;
	w->result = result;
	return true;
}

/* A compare-and-exchange of a word that weft__step_in protects. */
static inline bool weft__exchange_if(uintptr_t *word, uintptr_t *expected, uintptr_t desired)
{
	uintptr_t now;

	if (!weft__step_in())
		return __atomic_compare_exchange_n(word, expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
	now = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (now == *expected)
		__atomic_store_n(word, desired, __ATOMIC_RELAXED);
	weft__step_out();
	if (now == *expected)
		return true;
	*expected = now;
	return false;
}

#endif
