/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a switch decides, on the hot stack of the group: is there another activity to go to, and where are the frames of
 * this one kept? Assembly calls these functions (x86_64.S), and carries the decision out.
 */
#include <string.h>

#include "activity/activity.h"
#include "internal/line.h"

#define OFFSET_IS(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field)
OFFSET_IS(struct weft__activity_hot, flag, HOT_FLAG);
OFFSET_IS(struct weft__activity_hot, arguments, HOT_ARGUMENTS);
OFFSET_IS(struct weft__activity_hot, target, HOT_TARGET);
OFFSET_IS(struct weft__activity_hot, group, HOT_GROUP);
OFFSET_IS(struct weft__activity_hot, full, HOT_FULL);
OFFSET_IS(struct weft_activity, frames, ACTIVITY_FRAMES);
OFFSET_IS(struct weft_activity, size, ACTIVITY_SIZE);
OFFSET_IS(struct weft__activity_group, base, GROUP_BASE);
OFFSET_IS(struct weft__activity_group, driver, GROUP_DRIVER);
OFFSET_IS(struct weft__activity_group, garbage, GROUP_GARBAGE);
OFFSET_IS(struct weft__activity_group, blocks, GROUP_BLOCKS);
OFFSET_IS(struct weft__activity_stack, came_from, STACK_CAME_FROM);
_Static_assert(sizeof(struct weft__activity_stack) == STACK_RECORD, "unwinders find it so");

__thread struct weft__activity_hot weft__activity_hot __attribute__((tls_model("initial-exec")));

enum { GO_ON = 0, TO_DRIVER = 1 };

/* Frames of a switch are few words: a call of memcpy would take longer. */
static inline void copy(char *to, const char *from, size_t bytes)
{
	typedef long long words __attribute__((vector_size(16), may_alias));

	for (size_t i = 0; i < bytes; i += 16)
		*(words *)(to + i) = *(const words *)(from + i);
}

/* `low`: where the part in the window begins. */
static bool keep_deep(struct weft__activity_group *g, weft_activity_t *self, char *sp, char *low)
{
	size_t bytes = (size_t)(g->base - low);
	struct weft__deep *deep = weft__piece_take(g, sizeof *deep + bytes);

	if (!deep)
		return false;
	deep->stack = g->stack;
	deep->sp = sp;
	deep->deferred = g->coro->deferred;
	deep->bytes = bytes;
	memcpy(deep->window, low, bytes);
	self->frames = deep;
	self->size = 0;
	if (g->stack) {
		g->stack = NULL;
		weft__limits(g, g->base - WEFT__WINDOW);
	}
	g->coro->deferred = NULL;
	return true;
}

static bool keep_unusual(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	struct weft__activity_stack *oldest;

	weft__stacks_settle(g, sp);
	if (!g->stack)
		return keep_deep(g, self, sp, sp);
	for (oldest = g->stack; oldest->outer; oldest = oldest->outer)
		continue;
	return keep_deep(g, self, sp, (char *)((uintptr_t)oldest->came_from & ~(uintptr_t)15));
}

/* Copy the frames of the running activity, from sp on. False: no memory. */
static inline bool keep(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	size_t bytes = (size_t)(g->base - sp);
	char *block;

	if (weft__unlikely((uintptr_t)g->stack | (uintptr_t)g->coro->deferred))
		return keep_unusual(g, self, sp);
	if (weft__unlikely(bytes / 16 > UINT16_MAX))
		return keep_unusual(g, self, sp);
	block = weft__likely(bytes <= LARGEST_BLOCK) ? weft__piece(g, bytes) : weft__piece_take(g, bytes);
	if (weft__unlikely(!block))
		return false;
	copy(block, sp, bytes);
	self->frames = block;
	self->size = (uint16_t)(bytes / 16);
	return true;
}

static inline uintptr_t to(struct weft__activity_group *g, weft_activity_t *next)
{
	if (weft__unlikely(g->garbage))
		weft__garbage_give(g);
	if (!next) {
		g->hot->self = NULL;
		return TO_DRIVER;
	}
	next->state = WEFT__RUNNING;
	g->hot->self = next;
	return (uintptr_t)next;
}

/* Now and then, also where nothing rings. */
static inline void look(struct weft__activity_group *g)
{
	if (weft__unlikely(!--g->turns))
		weft__take_in(g);
}

uintptr_t weft__activity_parked(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;

	if (weft__unlikely(weft__is_to_end(self)))
		weft__activity_ends_cancelled();
	look(g);
	if (weft__unlikely(g->stackful)) {
		weft__own_suspend(self);
		return GO_ON;
	}
	if (weft__unlikely(!keep(g, self, sp))) {
		if (!(self->flags & WEFT__IN_CALL))
			weft__activity_fail(ENOMEM);
		weft__wait_in_place(g, self);
		return GO_ON;
	}
	return to(g, weft__pick(g));
}

static void unset(struct weft__activity_group *g)
{
	if (g->every_yield)
		return;
	__atomic_store_n(&g->hot->flag, 0, __ATOMIC_RELAXED);
	g->hot->limit = g->hot->full;
}

uintptr_t weft__activity_yielded(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;

	unset(g);
	if (weft__unlikely(weft__is_to_end(self)))
		weft__activity_ends_cancelled();
	look(g);
	if (!g->first)
		return GO_ON;
	self->object = NULL;
	if (weft__unlikely(g->stackful)) {
		weft__ready(g, self);
		weft__own_suspend(self);
		return GO_ON;
	}
	/* Without memory for a copy it goes on: others wait a little longer. */
	if (weft__unlikely(!keep(g, self, sp)))
		return GO_ON;
	weft__ready(g, self);
	return to(g, weft__pick(g));
}

/* The timer has rung: a time to look at what comes from outside, and to let other tasks run, too. */
uintptr_t weft__activity_rang(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (!g->every_yield)
		g->turns = 1;
	if (g->turns == 1 && g->in_task && weft__group_yield(g))
		weft__activity_cancel_all(g);
	return weft__activity_yielded(sp);
}

uintptr_t weft__activity_ended(void *result)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	int error = g->ending;

	g->ending = 0;
	weft__activity_finish(g, weft__activity_hot.self, result, error);
	return to(g, weft__pick(g));
}

char *weft__activity_deep(weft_activity_t *a)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	struct weft__deep *deep = a->frames;
	char *sp = deep->sp;

	memcpy(g->base - deep->bytes, deep->window, deep->bytes);
	g->stack = deep->stack;
	g->coro->deferred = deep->deferred;
	weft__piece_give(g, deep, sizeof *deep + deep->bytes);
	weft__limits(g, g->stack ? g->stack->full : g->base - WEFT__WINDOW);
	return sp;
}

void weft__frames_free(struct weft__activity_group *g, weft_activity_t *a)
{
	struct weft__deep *deep = a->frames;

	if (g->stackful) {
		weft__own_delete(g, a);
		return;
	}
	if (!a->size) {
		weft__stacks_free(g, deep->stack);
		weft__piece_give(g, deep, sizeof *deep + deep->bytes);
	} else {
		weft__piece_give(g, a->frames, (size_t)a->size * 16);
	}
}

void weft__divert(struct weft__activity_group *g, weft_activity_t *a)
{
	char *at = a->frames;

	if (g->stackful) {
		a->flags |= WEFT__DIVERTED;
		return;
	}
	if (!a->size) {
		struct weft__deep *deep = a->frames;

		at = deep->stack ? deep->sp : deep->window + (deep->sp - (g->base - deep->bytes));
	}
	/* Above rbp: see x86_64.S. */
	((void **)(void *)at)[1] = weft__activity_cancelled;
}
