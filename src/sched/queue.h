/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A worker's ring of ready tasks: first in, first out, so that no task waits for ever. Only the owner adds, at the
 * tail; the owner and thieves take, at the head. After the queue of Go's scheduler.
 *
 *      head             tail               head <= tail <= head + WEFT__RING, modulo 2^32
 *       v                v
 *   ... | a | b | c | d |   |   | ...      a place is written by the owner alone, and only outside of head…tail
 *
 * To take a task, a thread reads its place, then moves the head by compare-and-exchange. If the head has moved in
 * between, the place may hold a task of the next lap, and the thread discards it. So places are atomic, relaxed: the
 * exchange of the head tells whether the value read was valid. The only worker of a runtime (no_thieves) takes without
 * an exchange.
 *
 * Rejected: the deque of Chase and Lev. Its owner takes the task that was added last; a task that yields would run
 * again at once, and the rest would starve. Its advantage, an owner that takes without an atomic exchange, needs a full
 * fence.
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
	/* Acquire: pairs with the exchange of the thread that took the task; that thread has read the place that is
	 * reused. */
	uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	if (tail - head == WEFT__RING)
		return false;
	atomic_store_explicit(&r->tasks[tail % WEFT__RING], task, memory_order_relaxed);
	/* Release: pairs with the acquire of thieves, so that they see the place and the task. */
	atomic_store_explicit(&r->tail, tail + 1,
			      WEFT_CANARY(ring_hides_its_tasks) ? memory_order_relaxed : memory_order_release);
	return true;
}

/* Owner only. NULL: empty. */
static inline struct weft__task *weft__ring_take(struct weft__ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	struct weft__task *task;

	if (r->no_thieves) {
		if (head == tail)
			return NULL;
		atomic_store_explicit(&r->head, head + 1, memory_order_relaxed);
		return weft__ring_at(r, head);
	}
	do {
		if (head == tail)
			return NULL;
		task = weft__ring_at(r, head);
		/* Sequentially consistent: this thread sees a worker that is parking, or that worker sees the tasks
		 * added before. */
	} while (!atomic_compare_exchange_weak_explicit(&r->head, &head, head + 1, memory_order_seq_cst,
							memory_order_relaxed));
	return task;
}

/* Owner only: the next task, which stays in the ring; NULL: empty. */
static inline struct weft__task *weft__ring_peek(struct weft__ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	return head != atomic_load_explicit(&r->tail, memory_order_relaxed) ? weft__ring_at(r, head) : NULL;
}

/* Any thread: take the next task; NULL: empty. */
static inline struct weft__task *weft__ring_take_from(struct weft__ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_acquire), tail;
	struct weft__task *task;

	do {
		/* Acquire: pairs with weft__ring_add. */
		tail = atomic_load_explicit(&r->tail, memory_order_acquire);
		if ((int32_t)(tail - head) <= 0)
			return NULL;
		task = weft__ring_at(r, head);
		/* Acquire and release: the place was read before the owner may write it again. */
	} while (!atomic_compare_exchange_weak_explicit(&r->head, &head, head + 1, memory_order_acq_rel,
							memory_order_acquire));
	return task;
}

/* Owner only: move up to half of the tasks into `out`, in one exchange, for the shared queue. */
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

/* Called by a thief, whose ring `to` is empty: move half of the tasks, at least one. Returns one of them; NULL:
 * empty. */
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
		if (count > WEFT__RING / 2) { /* the head was read long before the tail: read it again */
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

/* ---- spawned tasks --------------------------------------------------------------------------------------------------
 *
 * The owner takes the newest task, thieves the oldest half. So a tree of tasks is walked to its leaves before the next
 * branch begins, and few tasks are alive at a time, while a thief gets the largest branches.
 *
 * Head and tail are in one word, because both ends are taken from, and several tasks at a time. The version counts the
 * tasks that the owner took: between a thief's look and its exchange the owner may take a task and add another task in
 * its place.
 */
static inline uint32_t weft__fresh_count(uint64_t word)
{
	return (uint16_t)((word >> 16) - word);
}

static inline uint32_t weft__fresh_now(struct weft__fresh *f)
{
	return weft__fresh_count(atomic_load_explicit(&f->word, memory_order_relaxed));
}

static inline uint64_t weft__fresh_word(uint64_t version, uint64_t tail, uint64_t head)
{
	return version << 32 | (tail & 0xffff) << 16 | (head & 0xffff);
}

static inline struct weft__task *weft__fresh_at(struct weft__fresh *f, uint64_t i)
{
	return atomic_load_explicit(&f->tasks[i % WEFT__RING], memory_order_relaxed);
}

/* Owner only. False: a thief has taken tasks meanwhile, and *word is the present word. */
static inline bool weft__fresh_become(struct weft__fresh *f, uint64_t *word, uint64_t next)
{
	if (!f->no_thieves)
		return atomic_compare_exchange_weak(&f->word, word, next);
	atomic_store_explicit(&f->word, next, memory_order_relaxed);
	return true;
}

/* Owner only. Returns the number of tasks then; 0: full, and the task was not added. A full fence, if there are
 * thieves. */
static inline uint32_t weft__fresh_add(struct weft__fresh *f, struct weft__task *task)
{
	uint64_t word = atomic_load_explicit(&f->word, memory_order_relaxed), more;

	do {
		if (weft__fresh_count(word) == WEFT__RING)
			return 0;
		atomic_store_explicit(&f->tasks[(word >> 16) % WEFT__RING], task, memory_order_relaxed);
		more = weft__fresh_word(word >> 32, (word >> 16) + 1, word);
		/* Release: pairs with the acquire of thieves. */
	} while (!weft__fresh_become(f, &word, more));
	return weft__fresh_count(more);
}

/* Owner only: take the newest task; NULL: empty. A full fence, if there are thieves. */
static inline struct weft__task *weft__fresh_take(struct weft__fresh *f)
{
	uint64_t word = atomic_load_explicit(&f->word, memory_order_relaxed), less;
	struct weft__task *task;

	do {
		if (!weft__fresh_count(word))
			return NULL;
		task = weft__fresh_at(f, (word >> 16) - 1);
		less = weft__fresh_word((word >> 32) + WEFT_NO_CANARY(fresh_has_no_version), (word >> 16) - 1, word);
	} while (!weft__fresh_become(f, &word, less));
	return task;
}

/* Any thread: take the oldest task; NULL: empty. */
static inline struct weft__task *weft__fresh_take_oldest(struct weft__fresh *f)
{
	uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire);
	struct weft__task *task;

	do {
		if (!weft__fresh_count(word))
			return NULL;
		task = weft__fresh_at(f, word);
	} while (!atomic_compare_exchange_weak(&f->word, &word, weft__fresh_word(word >> 32, word >> 16, word + 1)));
	return task;
}

/* Any thread: move the oldest half into `out`, at least one unless the stack is empty. */
static inline uint32_t weft__fresh_take_half(struct weft__fresh *f, struct weft__task *out[WEFT__RING])
{
	/* Acquire: pairs with weft__fresh_add. */
	uint64_t word = atomic_load_explicit(&f->word, memory_order_acquire);
	uint32_t count, i;

	do {
		count = weft__fresh_count(word);
		count -= count / 2;
		for (i = 0; i < count; i++)
			out[i] = weft__fresh_at(f, word + i);
	} while (count && !atomic_compare_exchange_weak(&f->word, &word,
							weft__fresh_word(word >> 32, word >> 16, word + count)));
	return count;
}

#endif
