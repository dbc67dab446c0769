/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A worker's ring of ready tasks: first in, first out, so that no task waits for ever. Only the owner adds, at the
 * tail; the owner and thieves take, at the head. After the queue of Go's scheduler.
 *
 *      head             tail               head <= tail <= head + WEFT__RING, modulo 2^32
 *       v                v
 *   ... | a | b | c | d |   |   | ...      a place is written by the owner alone, and only outside of head…tail
 *
 * Taking is: read the place, then move the head by compare-and-exchange. If the head has moved in between, what was
 * read may be another lap's task, and is thrown away. So places are atomic, relaxed: the head's exchange says whether
 * what they held was meant.
 *
 * Rejected: the deque of Chase and Lev. Its owner takes what was added last; a task that yields would run again at
 * once, and others would never. Its advantage, an owner that takes without an atomic exchange, needs a full fence.
 */
#ifndef WEFT_SRC_SCHED_QUEUE_H
#define WEFT_SRC_SCHED_QUEUE_H

#include "sched/sched.h"

static inline struct weft__task *weft__ring_at(struct weft__ring *r, uint32_t i)
{
	return atomic_load_explicit(&r->tasks[i % WEFT__RING], memory_order_relaxed);
}

static inline uint32_t weft__ring_count(struct weft__ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	return atomic_load_explicit(&r->tail, memory_order_relaxed) - head;
}

/* Owner only. False: full. */
static inline bool weft__ring_add(struct weft__ring *r, struct weft__task *task)
{
	/* Acquire: pairs with the exchange of whoever took; the place that is reused has been read. */
	uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - head == WEFT__RING)
		return false;
	atomic_store_explicit(&r->tasks[tail % WEFT__RING], task, memory_order_relaxed);
	/* Release: pairs with the acquire of thieves, who then see the place and the task. */
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return true;
}

/* Owner only. NULL: empty. */
static inline struct weft__task *weft__ring_take(struct weft__ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct weft__task *task;

	do {
		if (head == tail)
			return NULL;
		task = weft__ring_at(r, head);
		/* Sequentially consistent: what was added before is seen by whoever is parking, or the other way
		 * round. */
	} while (!atomic_compare_exchange_weak_explicit(&r->head, &head, head + 1, memory_order_seq_cst,
							memory_order_relaxed));
	return task;
}

/* Owner only: take up to half out at once, into `out`, for the shared queue. */
static inline uint32_t weft__ring_take_half(struct weft__ring *r, struct weft__task *out[WEFT__RING / 2])
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed), count, i;

	do {
		count = (tail - head) / 2;
		for (i = 0; i < count; i++)
			out[i] = weft__ring_at(r, head + i);
	} while (count && !atomic_compare_exchange_weak_explicit(&r->head, &head, head + count, memory_order_acq_rel,
								 memory_order_relaxed));
	return count;
}

/* A thief, whose ring `to` is empty: move half of the tasks, one at least. Returns one of them; NULL: nothing there. */
static inline struct weft__task *weft__ring_steal(struct weft__ring *r, struct weft__ring *to)
{
	uint32_t at = atomic_load_explicit(&to->tail, memory_order_relaxed);
	uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire), tail, count, i;

	do {
		/* Acquire: pairs with weft__ring_add. */
		tail = atomic_load_explicit(&r->tail, memory_order_acquire);
		count = tail - head - (tail - head) / 2;
		if (!count)
			return NULL;
		if (count > WEFT__RING / 2) { /* the head was read long before the tail */
			head = atomic_load_explicit(&r->head, memory_order_acquire);
			continue;
		}
		for (i = 0; i < count; i++)
			atomic_store_explicit(&to->tasks[(at + i) % WEFT__RING], weft__ring_at(r, head + i),
					      memory_order_relaxed);
		/* Acquire and release: the places were read before the owner may write them again. */
		if (atomic_compare_exchange_weak_explicit(&r->head, &head, head + count, memory_order_acq_rel,
							  memory_order_acquire))
			break;
	} while (true);
	atomic_store_explicit(&to->tail, at + count - 1, memory_order_release);
	return weft__ring_at(to, at + count - 1);
}

#endif
