/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * seff_queue.h: libseff has three queues of tasks with the same functions: tl_queue.h, tk_queue.h and cl_queue.h. Each
 * includes this file, and names its functions. `pop` takes the oldest element, that of cl_queue.h the newest.
 *
 * Design: a ring of a power of two of elements, which doubles when it is full, under a spin lock. The owner puts an
 * element that is to run next into `next`, where other threads do not see it. libseff's other two queues have no lock,
 * and may return ABORT; these never do. Programs that want a fast queue use weft/sched.h, whose workers have one.
 *
 *   void tl_queue_init(tl_queue_t *queue, size_t log_size)              an empty queue, with room for 2^log_size tasks
 *   void tl_queue_push(tl_queue_t *queue, queue_elt_t task)             put `task` behind all others
 *   void tl_queue_priority_push(tl_queue_t *queue, queue_elt_t task)    the next pop takes `task`, and nobody steals it
 *   queue_elt_t tl_queue_pop(tl_queue_t *queue)                         take one; EMPTY: there is none
 *   queue_elt_t tl_queue_steal(tl_queue_t *queue)                       take the oldest; EMPTY: there is none
 *
 * The caller owns the queue's storage, and the tasks: a queue keeps only their addresses. A queue that cannot grow ends
 * the process with a line, because its functions have no result for an error. Any thread may steal; the other functions
 * are for the queue's owner, one thread at a time. No function suspends, and each may be called on any stack. No
 * function ends a queue, as in libseff: its ring stays allocated.
 *
 * Source of the interface: libseff; none of its code.
 */
#ifndef SEFF_QUEUE_H
#define SEFF_QUEUE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

struct task_t;
typedef struct task_t *queue_elt_t;

/** No element was there. */
#define EMPTY ((queue_elt_t)NULL)
/** Another thread was faster; never returned. */
#define ABORT ((queue_elt_t)(~(uintptr_t)0))

struct seff__queue {
	bool locked; /* atomic */
	queue_elt_t next;
	size_t mask, first, end; /* elements first … end - 1, modulo mask + 1 */
	queue_elt_t *ring;
};

__attribute__((unused, cold, noinline)) static queue_elt_t *seff__queue_ring(size_t elements)
{
	queue_elt_t *ring = (queue_elt_t *)malloc(elements * sizeof(*ring));

	if (!ring)
		weft__die_saying("out of memory for a queue of tasks: ", "start fewer tasks at once, or raise the ",
				 "limits of the system (ulimit -v)");
	return ring;
}

WEFT__HELPER void seff__queue_init(struct seff__queue *q, size_t log_size)
{
	q->locked = false;
	q->next = EMPTY;
	q->first = q->end = 0;
	q->mask = ((size_t)1 << log_size) - 1;
	q->ring = seff__queue_ring(q->mask + 1);
}

WEFT__HELPER void seff__queue_lock(struct seff__queue *q)
{
	while (__atomic_exchange_n(&q->locked, true, __ATOMIC_ACQUIRE))
		while (__atomic_load_n(&q->locked, __ATOMIC_RELAXED))
			sched_yield();
}

WEFT__HELPER void seff__queue_unlock(struct seff__queue *q)
{
	__atomic_store_n(&q->locked, false, __ATOMIC_RELEASE);
}

__attribute__((unused, cold, noinline)) static void seff__queue_grow(struct seff__queue *q)
{
	size_t mask = 2 * q->mask + 1, i;
	queue_elt_t *ring = seff__queue_ring(mask + 1);

	for (i = q->first; i != q->end; i++)
		ring[i & mask] = q->ring[i & q->mask];
	free(q->ring);
	q->ring = ring;
	q->mask = mask;
}

WEFT__HELPER void seff__queue_push(struct seff__queue *q, queue_elt_t element)
{
	seff__queue_lock(q);
	if (q->end - q->first > q->mask)
		seff__queue_grow(q);
	q->ring[q->end++ & q->mask] = element;
	seff__queue_unlock(q);
}

WEFT__HELPER void seff__queue_priority_push(struct seff__queue *q, queue_elt_t element)
{
	queue_elt_t before = q->next;

	q->next = element;
	if (before)
		seff__queue_push(q, before);
}

WEFT__HELPER queue_elt_t seff__queue_take(struct seff__queue *q, bool newest)
{
	queue_elt_t element = EMPTY;

	seff__queue_lock(q);
	if (q->first != q->end)
		element = q->ring[(newest ? --q->end : q->first++) & q->mask];
	seff__queue_unlock(q);
	return element;
}

WEFT__HELPER queue_elt_t seff__queue_pop(struct seff__queue *q, bool newest)
{
	queue_elt_t element = q->next;

	if (!element)
		return seff__queue_take(q, newest);
	q->next = EMPTY;
	return element;
}

#define SEFF__QUEUE(name, newest)                                                                                      \
	typedef struct seff__queue name##_t;                                                                           \
	WEFT__HELPER void name##_init(name##_t *queue, size_t log_size)                                                \
	{                                                                                                              \
		seff__queue_init(queue, log_size);                                                                     \
	}                                                                                                              \
	WEFT__HELPER void name##_push(name##_t *queue, queue_elt_t task)                                               \
	{                                                                                                              \
		seff__queue_push(queue, task);                                                                         \
	}                                                                                                              \
	WEFT__HELPER void name##_priority_push(name##_t *queue, queue_elt_t task)                                      \
	{                                                                                                              \
		seff__queue_priority_push(queue, task);                                                                \
	}                                                                                                              \
	WEFT__HELPER queue_elt_t name##_pop(name##_t *queue)                                                           \
	{                                                                                                              \
		return seff__queue_pop(queue, newest);                                                                 \
	}                                                                                                              \
	WEFT__HELPER queue_elt_t name##_steal(name##_t *queue)                                                         \
	{                                                                                                              \
		return seff__queue_take(queue, false);                                                                 \
	}

WEFT_EXTERN_C_END

#endif /* SEFF_QUEUE_H */
