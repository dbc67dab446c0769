/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory of a group's activities: frames and variables, in place and in copies. */
#include <errno.h>

#include "activity/activity.h"

struct scan {
	struct weft__activity_group *group;
	void (*fn)(void *arg, const void *low, const void *high);
	void *arg;
	const char *sp; /* the running activity's stack pointer */
};

static void range(const struct scan *scan, const void *low, const void *high)
{
	if (low < high)
		scan->fn(scan->arg, low, high);
}

static void part(const struct scan *scan, const struct weft__part *p)
{
	range(scan, p->copy, p->copy + p->bytes);
}

/* Ranges of the segments outside the newest segment. `s` is the newest segment's record, and `at` its present
 * address. */
static void outer_segments(const struct scan *scan, const struct weft__segment *s, const struct weft__segment *at)
{
	for (; s; s = at->older, at = s) {
		if (at->outer)
			break;
		range(scan, weft__segment_end(scan->group, s), weft__segment_end(scan->group, at->older));
	}
	for (; s; s = at->older, at = weft__part_record(at->outer))
		part(scan, at->outer);
}

/* Ranges of the activity's own stacks. `sp` is its stack pointer. */
static void stacks(const struct scan *scan, const struct weft__activity_stack *stack, const char *sp)
{
	for (; stack; sp = stack->came_from, stack = stack->outer)
		range(scan, sp, stack);
}

static void running(const struct scan *scan)
{
	struct weft__activity_group *g = scan->group;
	struct weft__activity_stack *oldest = weft__stack_oldest(g->stack);
	const char *low = oldest ? weft__stack_window(oldest) : scan->sp;

	stacks(scan, g->stack, scan->sp);
	if (oldest && oldest->parked) {
		part(scan, oldest->parked);
		outer_segments(scan, g->segment, weft__part_record(oldest->parked));
		return;
	}
	range(scan, low, weft__segment_end(g, g->segment));
	outer_segments(scan, g->segment, g->segment);
}

static void parked(const struct scan *scan, const weft_activity_t *a)
{
	const char *frames = a->frames;
	struct weft__deep *deep = a->frames;

	if (a->size) {
		range(scan, frames, frames + (size_t)a->size * 16);
		return;
	}
	stacks(scan, deep->stack, deep->sp);
	part(scan, weft__deep_part(deep));
	outer_segments(scan, deep->segment, weft__part_record(weft__deep_part(deep)));
}

static void activity(weft_activity_t *a, void *scan)
{
	struct weft__activity_var *v;

	if (a->state <= WEFT__A_NEW || a->state == WEFT__A_ENDED)
		return;
	for (v = a->vars; v; v = v->next)
		range(scan, v->memory, (char *)v + (v->bytes & ~(size_t)1));
	if (a->state == WEFT__A_RUNNING)
		running(scan);
	else
		parked(scan, a);
}

int weft_activity_each_range(void (*fn)(void *arg, const void *low, const void *high), void *arg)
{
	struct scan scan = {weft__activity_hot.group, fn, arg, __builtin_frame_address(0)};

	if (!scan.group || !weft__activity_hot.self)
		return -EPERM;
	if (scan.group->stackful)
		return -ENOTSUP;
	weft__each_activity(scan.group, activity, &scan);
	return 0;
}
