/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Join sets. A task enters the set's list when its function has returned, from a deferred function: while the task is
 * in its scope, so that the scope's end is also the end of all uses of the set. The task that takes a task from the
 * list joins it, which is a short wait.
 *
 * Invariant when the lock is free: a waiter is in the queue only if the list is empty and `count` is not 0.
 */
#include "sync/queue.h"

void weft__join_set_add(weft_join_set_t *s)
{
	lock(&s->queue);
	s->count++;
	unlock(&s->queue);
}

size_t weft__join_set_count(weft_join_set_t *s)
{
	size_t count;

	lock(&s->queue);
	count = s->count;
	unlock(&s->queue);
	return count;
}

static void append(weft_join_set_t *s, weft_join_set_task_t *m)
{
	m->next = NULL;
	if (s->first)
		s->last->next = m;
	else
		s->first = m;
	s->last = m;
}

void weft__join_set_ended(weft_join_set_t *s, weft_join_set_task_t *m)
{
	struct weft__place *next, *others = NULL, *place;

	if (s->limit)
		(void)weft__sem_give(&s->permits, 1);
	lock(&s->queue);
	next = m ? claim_first(&s->queue) : NULL;
	if (next) {
		next->value = m;
		next->status = 0;
	} else if (m) {
		append(s, m);
	}
	if (next || !m)
		s->count--;
	if (!s->count)
		others = claim_all(&s->queue);
	for (place = others; place; place = place->next)
		place->status = -ENOENT;
	unlock(&s->queue);
	complete(next);
	complete_all(others);
}

int weft__join_set_enter(weft_join_set_t *s, struct weft__place *place, bool waits)
{
	weft_join_set_task_t *m;
	int result;

	lock(&s->queue);
	m = s->first;
	result = m ? 1 : s->count ? 0 : -ENOENT;
	if (m) {
		s->first = m->next;
		s->count--;
		place->value = m;
	} else if (!result && waits) {
		add(&s->queue, place);
	}
	unlock(&s->queue);
	return result;
}
