/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Activities that wait for a time: a heap, the earliest first. A sleeping activity's `object` is its index in the
 * heap. */
#include <stdlib.h>

#include "activity/activity.h"

static void put(struct weft__sleepers *s, size_t i, struct weft__sleeper sleeper)
{
	s->heap[i] = sleeper;
	sleeper.activity->object = (void *)i;
}

static void up(struct weft__sleepers *s, size_t i, struct weft__sleeper sleeper)
{
	for (; i && s->heap[(i - 1) / 2].when > sleeper.when; i = (i - 1) / 2)
		put(s, i, s->heap[(i - 1) / 2]);
	put(s, i, sleeper);
}

static void down(struct weft__sleepers *s, size_t i, struct weft__sleeper sleeper)
{
	size_t child;

	for (; (child = 2 * i + 1) < s->count; i = child) {
		if (child + 1 < s->count && s->heap[child + 1].when < s->heap[child].when)
			child++;
		if (s->heap[child].when >= sleeper.when)
			break;
		put(s, i, s->heap[child]);
	}
	put(s, i, sleeper);
}

/* False: no memory. */
bool weft__sleeper_add(struct weft__activity_group *g, weft_activity_t *a, uint64_t when)
{
	struct weft__sleepers *s = &g->sleepers;
	size_t room = s->room ? 2 * s->room : 16;
	struct weft__sleeper *heap;

	if (s->count == s->room) {
		heap = realloc(s->heap, room * sizeof *heap);
		if (!heap)
			return false;
		s->heap = heap;
		s->room = room;
	}
	weft__wait_for(a, NULL, WEFT__FOR_TIME);
	up(s, s->count++, (struct weft__sleeper){when, a});
	return true;
}

void weft__sleeper_remove(struct weft__activity_group *g, weft_activity_t *a)
{
	struct weft__sleepers *s = &g->sleepers;
	size_t i = (size_t)a->object;
	struct weft__sleeper last = s->heap[--s->count];

	if (i == s->count)
		return;
	if (i && s->heap[(i - 1) / 2].when > last.when)
		up(s, i, last);
	else
		down(s, i, last);
}

void weft__sleepers_wake(struct weft__activity_group *g)
{
	struct weft__sleepers *s = &g->sleepers;
	uint64_t now;

	if (!s->count)
		return;
	now = weft_now();
	while (s->count && s->heap[0].when <= now) {
		weft_activity_t *a = s->heap[0].activity;

		weft__sleeper_remove(g, a);
		weft__activity_ready(g, a);
	}
}

bool weft__activity_sleep_begin(uint64_t when)
{
	struct weft__activity_hot *hot = &weft__activity_hot;

	if (hot->self && !weft__sleeper_add(hot->group, hot->self, when))
		weft__activity_fail(ENOMEM);
	return true;
}
