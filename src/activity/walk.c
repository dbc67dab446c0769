/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Backtraces of parked activities. The frames are copied to their place in the window, while this thread runs on
 * another stack, and the unwinder starts there (weft__activity_walk); then the window's previous content is restored.
 */
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#include "activity/activity.h"

enum { ASIDE = 128 << 10 };

struct walk {
	void *words[3]; /* see x86_64.S */
	struct weft__activity_group *group;
	char *window;
	const struct weft__segment *segment;
	const struct weft__part *part;
	const char *frames; /* if there is one segment only: its copy */
	char *before;	    /* the window's content, meanwhile */
	size_t bytes;
	void **places;
	size_t most, count;
	bool begun;
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *walk)
{
	_Unwind_Ptr function = _Unwind_GetRegionStart(context);
	struct walk *w = walk;

	if (!w->begun) {
		w->begun = function == (_Unwind_Ptr)weft__activity_walk;
		return _URC_NO_REASON;
	}
	if (w->count == w->most || function == (_Unwind_Ptr)weft__activity_start)
		return _URC_END_OF_STACK;
	w->places[w->count++] = (void *)_Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void unwind(void *walk)
{
	_Unwind_Backtrace(step, walk);
}

static void swap_and_unwind(void *walk)
{
	struct walk *w = walk;

	memcpy(w->before, w->window, w->bytes);
	if (w->frames)
		memcpy(w->window, w->frames, w->bytes);
	else
		weft__window_show(w->segment, w->part, w->window);
	weft__activity_walk(w->words, unwind, w);
	memcpy(w->window, w->before, w->bytes);
}

/* One block holds the walk itself, a stack to run on, the result, and the window's content, because nothing in the
 * window is usable meanwhile. */
static size_t walk_frames(const struct walk *from)
{
	size_t results = from->most * sizeof *from->places;
	struct walk *w = malloc(sizeof *w + ASIDE + results + from->bytes);
	char *aside = (char *)(w + 1);
	size_t count;

	if (!w)
		return 0;
	*w = *from;
	w->places = (void **)(void *)(aside + ASIDE);
	w->before = aside + ASIDE + results;
	weft__activity_aside((char *)((uintptr_t)(aside + ASIDE) & ~(uintptr_t)15), swap_and_unwind, w);
	count = w->count;
	memcpy(from->places, w->places, count * sizeof *w->places);
	free(w);
	return count;
}

static void find_deep(struct walk *w, struct weft__deep *deep)
{
	w->part = weft__deep_part(deep);
	w->segment = deep->segment;
	w->frames = NULL;
	w->window = weft__segment_end(w->group, w->segment) - w->part->bytes;
	w->words[0] = deep->sp;
}

size_t weft__activity_backtrace(struct weft__activity_group *g, const weft_activity_t *a, void **places, size_t most)
{
	struct walk w = {.group = g, .frames = a->frames, .places = places, .most = most};
	struct weft__deep *deep = a->frames;
	const char *at = a->frames;

	if (g->stackful)
		return weft_backtrace(((const struct weft__own *)a->frames)->k, places, most);
	w.words[0] = w.window = g->base - (size_t)a->size * 16;
	if (!a->size) {
		find_deep(&w, deep);
		at = deep->stack ? deep->sp : deep->part.copy;
	}
	w.bytes = (size_t)(g->base - w.window);
	/* rbp and a return address are at sp: in a stack of the activity's own now, in the window after the copy. */
	memcpy(&w.words[2], at, sizeof(void *));
	memcpy(&w.words[1], at + sizeof(void *), sizeof(void *));
	w.words[0] = (char *)w.words[0] + 2 * sizeof(void *);
	return walk_frames(&w);
}
