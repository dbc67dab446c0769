/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reader-writer locks. Invariant: the first place in the queue whose wait has not ended cannot enter now. */
#include "sync/queue.h"

static bool may_enter(const weft_rwlock_t *l, const void *writes)
{
	return !l->writer && !(writes && l->readers);
}

/* `writer` is NULL for a reader. */
static void count(weft_rwlock_t *l, weft_coro_t *writer)
{
	if (writer)
		l->writer = writer;
	else
		l->readers++;
}

/* The first place whose wait has not ended. Places before it are removed: a writer whose wait was cancelled must not
 * keep readers out until it runs again. If the reader is the thread that steps the writer's runtime, the writer would
 * never run again. */
static struct weft__place *first_waiting(struct weft__queue *q)
{
	while (q->first && has_ended(q->first) && WEFT_NO_CANARY(ended_writers_keep_readers_out))
		take_out(q, q->first);
	return q->first;
}

/* Let in, in order, the places that can enter now: a writer, or all readers up to the next writer. */
static struct weft__place *let_in(weft_rwlock_t *l)
{
	struct weft__place *all = NULL, **end = &all, *place;

	while ((place = first_waiting(&l->queue)) && may_enter(l, place->value)) {
		take_out(&l->queue, place);
		if (!weft_waiter_claim(place->waiter, 0))
			continue;
		count(l, place->value);
		*end = place;
		end = &place->next;
	}
	*end = NULL;
	return all;
}

int weft__rwlock_enter(weft_rwlock_t *l, struct weft__queued *w, weft_coro_t *writer)
{
	struct weft__place *others = NULL;
	int enters;

	lock(&l->queue);
	if (l->queue.first && has_ended(l->queue.first))
		others = let_in(l);
	enters = !l->queue.first && may_enter(l, writer);
	if (enters)
		count(l, writer);
	else if (l->writer && l->writer == weft__owner())
		enters = -EDEADLK;
	else if (w)
		add(&l->queue, &w->place);
	unlock(&l->queue);
	complete_all(others);
	return enters;
}

void weft__rwlock_leave(weft_rwlock_t *l, struct weft__place *place)
{
	struct weft__place *others;

	lock(&l->queue);
	if (place->queued)
		take_out(&l->queue, place);
	others = let_in(l);
	unlock(&l->queue);
	complete_all(others);
}

int weft__rwlock_unlock(weft_rwlock_t *l)
{
	struct weft__place *others = NULL;
	int error = 0;

	lock(&l->queue);
	if (l->writer == weft__owner())
		l->writer = NULL;
	else if (l->readers && !l->writer)
		l->readers--;
	else
		error = -EPERM;
	if (!error)
		others = let_in(l);
	unlock(&l->queue);
	complete_all(others);
	return error;
}
