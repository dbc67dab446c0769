/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reader-writer locks. Invariant: whoever is first in the queue cannot enter now. */
#include "sync/queue.h"

static bool may_enter(const weft_rwlock_t *l, bool writes)
{
	return !l->writer && !(writes && l->readers);
}

static void count(weft_rwlock_t *l, bool writes)
{
	if (writes)
		l->writer = 1;
	else
		l->readers++;
}

bool weft__rwlock_enter(weft_rwlock_t *l, weft_waiter_t *w, bool writes)
{
	bool enters;

	lock(&l->queue);
	enters = !l->queue.first && may_enter(l, writes);
	if (enters)
		count(l, writes);
	else if (w)
		add(&l->queue, &w->place);
	unlock(&l->queue);
	return enters;
}

/* Let in whoever can enter now, in order: a writer, or all readers up to the next writer. */
static struct weft__place *let_in(weft_rwlock_t *l)
{
	struct weft__place *all = NULL, **end = &all, *place;

	while ((place = l->queue.first) && may_enter(l, place->value)) {
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

int weft_rwlock_unlock(weft_rwlock_t *l)
{
	struct weft__place *others = NULL;
	int error = 0;

	lock(&l->queue);
	if (l->writer)
		l->writer = 0;
	else if (l->readers)
		l->readers--;
	else
		error = -EPERM;
	if (!error)
		others = let_in(l);
	unlock(&l->queue);
	complete_all(others);
	return error;
}
