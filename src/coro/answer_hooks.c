/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WEFT__PART_THENS
#include "coro/answer_hooks.h"

#include "stack/buffers.h"

enum { FIRST_BYTES = 512, MOST_BYTES = 1 << 20 };

struct weft__thens *weft__more_thens(weft_coro_t *k, size_t need)
{
	struct weft__thens *below = k->flags & WEFT__THENS ? k->thens : NULL, *t;
	size_t bytes = below ? 2 * below->bytes : FIRST_BYTES;
	struct weft__thread *thread = weft__thread();

	if (bytes > MOST_BYTES)
		bytes = MOST_BYTES;
	while (bytes < need + sizeof *t)
		bytes *= 2;
	t = thread ? weft__buffer_take(thread, weft__buffer_class(bytes), bytes) : NULL;
	if (!t)
		return NULL;
	*t = (struct weft__thens){(char *)(t + 1), (char *)t + bytes, below, bytes, below ? NULL : k->ending};
	k->thens = t;
	k->flags |= WEFT__THENS;
	return t;
}

static void give(weft_coro_t *k)
{
	struct weft__thread *thread = weft__thread();
	struct weft__thens *t = k->thens;

	if (t->below) {
		k->thens = t->below;
	} else {
		k->ending = t->ending;
		k->flags &= ~(uint32_t)WEFT__THENS;
	}
	if (weft__likely(thread != NULL)) /* without memory for the thread's record, the piece is leaked */
		weft__buffer_give(thread, t, weft__buffer_class(t->bytes), t->bytes);
}

struct weft__thens *weft__newest_thens(weft_coro_t *self, const char *since, char **bottom)
{
	while (self->flags & WEFT__THENS) {
		struct weft__thens *t = self->thens;

		*bottom = (char *)(t + 1);
		if (since >= *bottom && since <= t->end)
			*bottom = (char *)since;
		if (t->top != *bottom)
			return t;
		if (since == *bottom)
			return NULL;
		give(self);
	}
	return NULL;
}

void weft__drop_newest_thens(weft_coro_t *k, const char *since)
{
	struct weft__thens *t;
	char *bottom;

	while ((t = weft__newest_thens(k, since, &bottom)))
		t->top = bottom;
}
