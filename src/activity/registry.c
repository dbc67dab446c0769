/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * All activities of a group, for reports, and to cancel them all. Activities without a handle are in slabs, which need
 * no memory beside them. Activities with a handle are in a table, at the index `number`.
 */
#include <stdlib.h>

#include "activity/activity.h"

enum { SLAB = 84 };

struct weft__slab {
	struct weft__slab *next;
	size_t unused;
	weft_activity_t activities[SLAB]; /* WEFT__A_NONE: free */
};

static bool add_slab(struct weft__activity_group *g)
{
	struct weft__slab *slab = weft__piece_cut(g, (sizeof *slab + 15) & ~(size_t)15);
	int i;

	if (!slab)
		return false;
	slab->next = g->slabs;
	g->slabs = slab;
	for (i = SLAB; i-- > 0;) {
		slab->activities[i].state = WEFT__A_NONE;
		slab->activities[i].next = g->free;
		g->free = &slab->activities[i];
	}
	return true;
}

weft_activity_t *weft__slab_take(struct weft__activity_group *g)
{
	weft_activity_t *a;

	if (weft__unlikely(!g->free) && !add_slab(g))
		return NULL;
	a = g->free;
	g->free = a->next;
	return a;
}

bool weft__table_add(struct weft__activity_group *g, weft_activity_t *a)
{
	size_t room = g->room ? 2 * g->room : 16;
	weft_activity_t **table;

	if (weft__unlikely(g->count == g->room)) {
		table = room > UINT32_MAX ? NULL : realloc(g->table, room * sizeof *table);
		if (!table)
			return false;
		g->table = table;
		g->room = room;
	}
	a->number = (uint32_t)g->count;
	g->table[g->count++] = a;
	return true;
}

void weft__table_forget(struct weft__activity_group *g, weft_activity_t *a)
{
	weft_activity_t *last;

	if (a->flags & WEFT__SLAB) {
		a->state = WEFT__A_NONE;
		a->next = g->free;
		g->free = a;
		return;
	}
	last = g->table[--g->count];
	g->table[a->number] = last;
	last->number = a->number;
}

/* fn must not end activities. */
void weft__each_activity(struct weft__activity_group *g, void (*fn)(weft_activity_t *a, void *arg), void *arg)
{
	struct weft__slab *slab;
	size_t i;

	for (i = 0; i < g->count; i++)
		fn(g->table[i], arg);
	for (slab = g->slabs; slab; slab = slab->next)
		for (i = 0; i < SLAB; i++)
			if (slab->activities[i].state != WEFT__A_NONE)
				fn(&slab->activities[i], arg);
}

/* Forget the activities that do not stay. In slabs their places are free afterwards. */
void weft__table_keep(struct weft__activity_group *g, bool (*stays)(weft_activity_t *a, void *arg), void *arg)
{
	size_t count = 0, i;
	struct weft__slab *slab;

	for (i = 0; i < g->count; i++)
		if (stays(g->table[i], arg)) {
			g->table[i]->number = (uint32_t)count;
			g->table[count++] = g->table[i];
		}
	g->count = count;
	for (slab = g->slabs; slab; slab = slab->next)
		for (i = 0; i < SLAB; i++)
			if (slab->activities[i].state != WEFT__A_NONE && !stays(&slab->activities[i], arg))
				weft__table_forget(g, &slab->activities[i]);
}
