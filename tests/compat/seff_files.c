/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The other files that programs for libseff include: queues of tasks, compared with a simple array, from which threads
 * steal each element exactly once; names of atomic operations, and the spin lock. C and C++.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "mem/seff_mem.h"
#include "mem/seff_mem_common.h"

#include "cl_queue.h"
#include "seff.h"
#include "tk_queue.h"
#include "tl_queue.h"
#ifndef __cplusplus
#include "atomic.h"
#endif

struct task_t {
	int taken;
};

enum { MOST = 200, TASKS = 20000, THIEVES = 2 };
static struct task_t tasks[TASKS];

/* ---- one thread, against an array -------------------------------------------------------------------------------- */

static unsigned random_of(unsigned n)
{
	static unsigned state = 1;

	state = state * 1103515245u + 12345u;
	return (state >> 16) % n;
}

/* Removes the element at `at` from the array, and returns it. */
static queue_elt_t remove_at(queue_elt_t *all, int *count, int at)
{
	queue_elt_t element = all[at];

	memmove(all + at, all + at + 1, (size_t)(--*count - at) * sizeof(*all));
	return element;
}

#define AGAINST_AN_ARRAY(queue, newest)                                                                                \
	static int queue##_differs(void)                                                                               \
	{                                                                                                              \
		queue_elt_t all[MOST], next = EMPTY, wanted, element;                                                  \
		int count = 0, differs = 0;                                                                            \
		queue##_t q;                                                                                           \
                                                                                                                       \
		queue##_init(&q, 1);                                                                                   \
		for (int i = 0; i < 5000; i++) {                                                                       \
			unsigned what = random_of(5);                                                                  \
                                                                                                                       \
			element = &tasks[i];                                                                           \
			wanted = EMPTY;                                                                                \
			if (what < 2 && count < MOST - 1) {                                                            \
				queue##_push(&q, element);                                                             \
				all[count++] = element;                                                                \
			} else if (what == 2 && count < MOST - 1) {                                                    \
				queue##_priority_push(&q, element);                                                    \
				if (next)                                                                              \
					all[count++] = next;                                                           \
				next = element;                                                                        \
			} else if (what == 3) {                                                                        \
				if (count)                                                                             \
					wanted = remove_at(all, &count, 0);                                            \
				differs += queue##_steal(&q) != wanted;                                                \
			} else {                                                                                       \
				if (next)                                                                              \
					wanted = next;                                                                 \
				else if (count)                                                                        \
					wanted = remove_at(all, &count, (newest) ? count - 1 : 0);                     \
				next = EMPTY;                                                                          \
				differs += queue##_pop(&q) != wanted;                                                  \
			}                                                                                              \
		}                                                                                                      \
		free(q.ring);                                                                                          \
		return differs;                                                                                        \
	}
AGAINST_AN_ARRAY(tl_queue, false)
AGAINST_AN_ARRAY(tk_queue, false)
AGAINST_AN_ARRAY(cl_queue, true)

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static tl_queue_t shared;
static bool done;

static void *steals(void *unused)
{
	queue_elt_t element;

	while ((element = tl_queue_steal(&shared)) || !__atomic_load_n(&done, __ATOMIC_ACQUIRE))
		if (element)
			__atomic_fetch_add(&element->taken, 1, __ATOMIC_RELAXED);
	return unused;
}

static int taken_wrongly(void)
{
	pthread_t thieves[THIEVES];
	queue_elt_t element;
	int wrong = 0;

	tl_queue_init(&shared, 2);
	for (int i = 0; i < THIEVES; i++)
		assert(pthread_create(&thieves[i], NULL, steals, NULL) == 0);
	for (int i = 0; i < TASKS; i++) {
		if (i % 3)
			tl_queue_push(&shared, &tasks[i]);
		else
			tl_queue_priority_push(&shared, &tasks[i]);
		if (i % 7 == 0 && (element = tl_queue_pop(&shared)))
			__atomic_fetch_add(&element->taken, 1, __ATOMIC_RELAXED);
	}
	while ((element = tl_queue_pop(&shared)))
		__atomic_fetch_add(&element->taken, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	for (int i = 0; i < THIEVES; i++)
		pthread_join(thieves[i], NULL);
	for (int i = 0; i < TASKS; i++)
		wrong += tasks[i].taken != 1;
	free(shared.ring);
	return wrong;
}

#ifndef __cplusplus
static _Atomic(bool) lock;
static _Atomic(long) relaxed;
static long counted;

static void *counts(void *unused)
{
	for (int i = 0; i < TASKS; i++) {
		SPINLOCK(&lock, { counted++; });
		RELAXED(fetch_add, &relaxed, 1);
	}
	return unused;
}

static bool counts_right(void)
{
	pthread_t other;

	assert(pthread_create(&other, NULL, counts, NULL) == 0);
	counts(NULL);
	pthread_join(other, NULL);
	return counted == 2 * TASKS && ACQUIRE(load, &relaxed) == 2 * TASKS;
}
#else
static bool counts_right(void)
{
	return true;
}
#endif

static void *nothing(void *unused)
{
	return unused;
}

int main(void)
{
	seff_coroutine_t *k = seff_coroutine_new(nothing, NULL);

	assert(k && k->state == SUSPENDED);
	seff_resume(k, NULL, 0);
	assert(k->state == FINISHED);
	seff_coroutine_delete(k);
	printf("differ: %d %d %d\n", tl_queue_differs(), tk_queue_differs(), cl_queue_differs());
	printf("not taken once: %d\n", taken_wrongly());
	printf("lock: %s\n", counts_right() ? "right" : "wrong");
	return 0;
}
