/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Segments of the window. A twin that finds WEFT__SEGMENT bytes of its segment used is called again below a record
 * (weft__activity_fresh in x86_64.S), and returns through that record. So when an activity parks again and again, not
 * all its frames are copied each time: the segments outside the newest segment stay in the copies that were made first,
 * and a return through a record restores the next segment.
 *
 *   window                              heap
 *   ------------------  base
 *   oldest segment                      copy, from which it is restored      <-.
 *   ------------------                                                       |
 *   record: outer ------------------------------------------------------------'
 *   newest segment      sp              copied at each park
 *
 * Some frames are read by frames inside them, and must be in place while the inner frames run. Three kinds of functions
 * therefore pin the activity (weft__activity_pin) until they return: a function that calls setjmp, because longjmp
 * continues there directly; a function that catches exceptions; and a function with va_start, because the list points
 * into its frame. While an activity is pinned, no segment begins, and its calls continue in another stack after PINNED
 * bytes. A function with arguments on the stack begins no segment, because it reads them from its caller's segment.
 *
 * Source of the idea: stacks in segments that return through an underflow handler (Chez Scheme: Hieb, Dybvig,
 * Bruggeman, 1990).
 */
#include <string.h>

#include "activity/activity.h"

WEFT_API int weft__activity_pin(void);
WEFT_API void weft__activity_unpin(int was_first);

/* Pinned frames, which are copied together, take at most about this many bytes. */
enum { PINNED = 64 << 10 };

void weft__set_full(struct weft__activity_group *g, uintptr_t full)
{
	struct weft__activity_hot *hot = g->hot;

	hot->full = full;
	hot->limit = g->profile || __atomic_load_n(&hot->flag, __ATOMIC_RELAXED) ? UINTPTR_MAX : full;
}

static char *highest(char *a, char *b)
{
	return a > b ? a : b;
}

void weft__limits(struct weft__activity_group *g)
{
	char *full = (g->segment ? (char *)g->segment : g->base) - WEFT__SEGMENT;

	g->deepest = g->base - weft__window_bytes(g);
	if (g->stackful)
		g->deepest = full = NULL;
	else if (g->stack)
		g->deepest = full = g->stack->full;
	else if (g->pinned_at)
		g->deepest = full = highest(g->deepest, g->pinned_at - PINNED);
	weft__set_full(g, (uintptr_t)highest(full, g->deepest));
}

/* Returns the record of the segment that `s` returns into, inside `part`, the copy of that segment. */
static struct weft__segment *in_copy(const struct weft__segment *s, const struct weft__segment *older,
				     struct weft__part *part)
{
	return older ? (struct weft__segment *)(void *)(part->copy + ((const char *)older - (const char *)(s + 1)))
		     : NULL;
}

struct weft__part *weft__part_take(struct weft__activity_group *g, const char *from, size_t bytes)
{
	struct weft__part *part = weft__piece_take(g, sizeof *part + bytes);

	if (!part)
		return NULL;
	part->bytes = bytes;
	memcpy(part->copy, from, bytes);
	return part;
}

void weft__part_give(struct weft__activity_group *g, struct weft__part *part)
{
	if (part)
		weft__piece_give(g, part, sizeof *part + part->bytes);
}

/* `at`: the present address of record `s`, in the window or in a copy. */
bool weft__segments_park(struct weft__activity_group *g)
{
	struct weft__segment *s = g->segment, *at = s, *older;

	for (; s && !at->outer; s = older) {
		const char *begin = weft__segment_end(g, s);
		struct weft__part *part = weft__part_take(g, begin, (size_t)(weft__segment_end(g, at->older) - begin));

		if (!part)
			return false;
		part->returns = at->returns;
		at->outer = part;
		at->returns = NULL;
		older = at->older;
		at = in_copy(s, older, part);
	}
	return true;
}

/* The loop copies each record, because the record may be in the copy that is freed next. */
void weft__segments_free(struct weft__activity_group *g, const struct weft__segment *s, const struct weft__segment *at)
{
	struct weft__part *part = NULL;

	while (s) {
		struct weft__segment record = *at;

		weft__part_give(g, part);
		part = record.outer;
		at = part ? in_copy(s, record.older, part) : record.older;
		s = record.older;
	}
	weft__part_give(g, part);
}

/* An unwinder in a signal handler sees no frames outside `s` before all of them are in place. */
static struct weft__part *put_back(struct weft__segment *s, char *to)
{
	struct weft__part *part = s->outer;

	memcpy(to, part->copy, part->bytes);
	atomic_signal_fence(memory_order_release);
	s->returns = part->returns;
	s->outer = NULL;
	return part;
}

/* A function returns through `s`, the newest record, to frames that are not in the window: restore them. */
void weft__activity_underflow(struct weft__segment *s)
{
	weft__part_give(weft__activity_hot.group, put_back(s, (char *)(s + 1)));
}

void weft__window_show(const struct weft__segment *s, const struct weft__part *part, char *to)
{
	memcpy(to, part->copy, part->bytes);
	to += part->bytes;
	while (s) {
		struct weft__segment *at = (struct weft__segment *)(void *)to - 1;

		s = at->older;
		to += put_back(at, to)->bytes;
	}
}

/* ---- for code made by the pass ---------------------------------------------------------------------------------- */

/* @return 1 if the activity was not pinned: the caller must call weft__activity_unpin; else 0 */
int weft__activity_pin(void)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (g->pinned_at || g->stackful)
		return 0;
	g->pinned_at = __builtin_frame_address(0);
	weft__limits(g);
	return 1;
}

void weft__activity_unpin(int was_first)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (!was_first)
		return;
	g->pinned_at = NULL;
	weft__limits(g);
}
