/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The decisions of a switch, on the hot stack of the group: is there another activity to run, and where are the frames
 * of the running activity kept? Assembly calls these functions, and carries the decision out (x86_64.S).
 */
#include <string.h>

#include "activity/activity.h"
#include "internal/message.h"

#define OFFSET_IS(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #field)
OFFSET_IS(struct weft__activity_hot, limit, HOT_LIMIT);
OFFSET_IS(struct weft__activity_hot, flag, HOT_FLAG);
OFFSET_IS(struct weft__activity_hot, arguments, HOT_ARGUMENTS);
OFFSET_IS(struct weft__activity_hot, target, HOT_TARGET);
OFFSET_IS(struct weft__activity_hot, group, HOT_GROUP);
OFFSET_IS(struct weft__activity_hot, full, HOT_FULL);
OFFSET_IS(struct weft_activity, frames, ACTIVITY_FRAMES);
OFFSET_IS(struct weft_activity, size, ACTIVITY_SIZE);
OFFSET_IS(struct weft__activity_group, base, GROUP_BASE);
OFFSET_IS(struct weft__activity_group, driver, GROUP_DRIVER);
OFFSET_IS(struct weft__activity_group, deepest, GROUP_DEEPEST);
OFFSET_IS(struct weft__activity_group, segment, GROUP_SEGMENT);
OFFSET_IS(struct weft__activity_group, blocks, GROUP_BLOCKS);
OFFSET_IS(struct weft__activity_stack, came_from, STACK_CAME_FROM);
_Static_assert(sizeof(struct weft__segment) == SEGMENT_RECORD, "assembly pushes it");
_Static_assert(sizeof(struct weft__activity_stack) == STACK_RECORD, "unwinders find it so");

__thread struct weft__activity_hot weft__activity_hot __attribute__((tls_model("initial-exec")));

enum { GO_ON = 0, TO_DRIVER = 1 };

/* Frames of a switch are mostly few words: a call of memcpy would take longer. */
static inline void copy(char *to, const char *from, size_t bytes)
{
	typedef long long words __attribute__((vector_size(16), may_alias));

	if (weft__unlikely(bytes > 256)) {
		memcpy(to, from, bytes);
		return;
	}
	for (size_t i = 0; i < bytes; i += 16)
		*(words *)(to + i) = *(const words *)(from + i);
}

/* Allocates a record for the running activity, with a copy of the window from `low` on, if the newest segment is in
 * the window. */
static struct weft__deep *deep_take(struct weft__activity_group *g, const char *low,
				    struct weft__activity_stack *oldest)
{
	size_t bytes = oldest && oldest->parked ? 0 : (size_t)(weft__segment_end(g, g->segment) - low);
	struct weft__deep *deep = weft__piece_take(g, sizeof *deep + bytes);

	if (!deep)
		return NULL;
	deep->part.bytes = bytes;
	memcpy(deep->part.copy, low, bytes);
	return deep;
}

/* Frames in the window, outside the activity's own stacks, stay parked until the activity returns to them, unless it
 * is pinned. */
static bool keep_window(struct weft__activity_group *g, struct weft__activity_stack *oldest)
{
	const char *low = weft__stack_window(oldest);

	if (oldest->parked || g->pinned_at)
		return true;
	oldest->parked = weft__part_take(g, low, (size_t)(weft__segment_end(g, g->segment) - low));
	return oldest->parked != NULL;
}

/* Exceptions in flight, or in a handler, belong to the thread: C++ knows no activities. An activity that has
 * exceptions is pinned by the function that catches them. */
static struct weft__cxa_globals exchange_exceptions(struct weft__cxa_globals with)
{
	struct weft__cxa_globals *of_thread, were = {NULL, 0};

	if (!weft__cxa_globals)
		return were;
	of_thread = weft__cxa_globals();
	were = *of_thread;
	*of_thread = with;
	return were;
}

static bool keep_deep(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	struct weft__activity_stack *oldest;
	struct weft__deep *deep;

	weft__stacks_settle(g, sp);
	oldest = weft__stack_oldest(g->stack);
	if (!(oldest && oldest->parked) && !weft__segments_park(g))
		return false;
	if (oldest && !keep_window(g, oldest))
		return false;
	deep = deep_take(g, oldest ? weft__stack_window(oldest) : sp, oldest);
	if (!deep)
		return false;
	deep->stack = g->stack;
	deep->segment = g->segment;
	deep->sp = sp;
	deep->full = g->hot->full;
	deep->deferred = g->coro->deferred;
	deep->pinned_at = g->pinned_at;
	if (g->pinned_at)
		deep->exceptions = exchange_exceptions((struct weft__cxa_globals){NULL, 0});
	self->frames = deep;
	self->size = 0;
	g->stack = NULL;
	g->segment = NULL;
	g->coro->deferred = NULL;
	g->pinned_at = NULL;
	weft__limits(g);
	return true;
}

/* Copy the frames of the running activity, from sp on. False: no memory. */
static inline bool keep(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	size_t bytes = (size_t)(g->base - sp);
	char *block;

	if (weft__unlikely(weft__is_deep(g) || g->coro->deferred || bytes > LARGEST_BLOCK))
		return keep_deep(g, self, sp);
	block = weft__group_piece(g, bytes);
	if (weft__unlikely(!block))
		return false;
	copy(block, sp, bytes);
	self->frames = block;
	self->size = (uint16_t)(bytes / 16);
	return true;
}

static inline uintptr_t to(struct weft__activity_group *g, weft_activity_t *next)
{
	if (!next) {
		g->hot->self = NULL;
		return TO_DRIVER;
	}
	next->state = WEFT__A_RUNNING;
	g->hot->self = next;
	return (uintptr_t)next;
}

/* Take in events from outside at every WEFT__TURNS-th call, also if no timer rings. */
static inline void look(struct weft__activity_group *g)
{
	if (weft__unlikely(!--g->turns))
		weft__take_in(g);
}

weft_activity_t *weft__scheduled(struct weft__activity_group *g)
{
	const weft_activity_scheduler_t *s = g->scheduler;
	weft_activity_t *a;

	if (weft__likely(!s))
		return weft__pick(g);
	while ((a = weft__pick(g)))
		s->ready(s->data, a);
	return s->next(s->data);
}

/* No memory for a copy: the activity ends or, if it is in a call that other threads take part in, waits in place. */
static uintptr_t park_in_place(struct weft__activity_group *g, weft_activity_t *self)
{
	if (!(self->flags & WEFT__IN_CALL))
		weft__activity_fail(ENOMEM);
	weft__wait_in_place(g, self);
	return GO_ON;
}

static WEFT__COLD uintptr_t weft__parked_unusually(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	if (!g->stackful)
		return keep(g, self, sp) ? to(g, weft__scheduled(g)) : park_in_place(g, self);
	weft__own_suspend(self);
	return GO_ON;
}

uintptr_t weft__activity_parked(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;

	if (weft__unlikely(weft__is_to_end(self)))
		weft__activity_ends_cancelled();
	look(g);
	if (weft__unlikely(g->unusual))
		return weft__parked_unusually(g, self, sp);
	if (weft__unlikely(!keep(g, self, sp)))
		return park_in_place(g, self);
	return to(g, weft__pick(g));
}

static void unset(struct weft__activity_group *g)
{
	if (g->every_yield || g->to_end)
		return;
	__atomic_store_n(&g->hot->flag, 0, __ATOMIC_RELAXED);
	g->hot->limit = g->profile ? UINTPTR_MAX : g->hot->full;
}

static WEFT__COLD uintptr_t weft__yielded_unusually(struct weft__activity_group *g, weft_activity_t *self, char *sp)
{
	const weft_activity_scheduler_t *s = g->scheduler;

	if (s ? s->may_switch && !s->may_switch(s->data, self) : !g->first)
		return GO_ON;
	self->object = NULL;
	if (!g->stackful && !keep(g, self, sp))
		return GO_ON;
	weft__activity_ready(g, self);
	if (!g->stackful)
		return to(g, weft__scheduled(g));
	weft__own_suspend(self);
	return GO_ON;
}

uintptr_t weft__activity_yielded(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	weft_activity_t *self = weft__activity_hot.self;

	unset(g);
	if (weft__unlikely(weft__is_to_end(self)))
		weft__activity_ends_cancelled();
	look(g);
	if (weft__unlikely(g->unusual))
		return weft__yielded_unusually(g, self, sp);
	if (!g->first)
		return GO_ON;
	self->object = NULL;
	/* If there is no memory for a copy, the activity continues: other activities wait a little longer. */
	if (weft__unlikely(!keep(g, self, sp)))
		return GO_ON;
	weft__activity_ready(g, self);
	return to(g, weft__pick(g));
}

/* The timer has rung: look at events from outside, and let other tasks run, too. */
uintptr_t weft__activity_rang(char *sp)
{
	struct weft__activity_group *g = weft__activity_hot.group;

	if (!g->every_yield)
		g->turns = 1;
	if (g->in_task && (!g->every_yield || !++g->yields_to_task) && weft__group_yield(g))
		weft__activity_cancel_all(g);
	return weft__activity_yielded(sp);
}

uintptr_t weft__activity_ended(void *result)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	int error = g->ending;

	g->ending = 0;
	weft__activity_finish(g, weft__activity_hot.self, result, error);
	return to(g, weft__likely(!g->scheduler) ? weft__pick(g) : weft__scheduled(g));
}

char *weft__activity_deep(weft_activity_t *a)
{
	struct weft__activity_group *g = weft__activity_hot.group;
	struct weft__deep *deep = a->frames;
	char *sp = deep->sp;

	g->stack = deep->stack;
	g->segment = deep->segment;
	g->coro->deferred = deep->deferred;
	g->pinned_at = deep->pinned_at;
	if (g->pinned_at)
		(void)exchange_exceptions(deep->exceptions);
	memcpy(weft__segment_end(g, g->segment) - deep->part.bytes, deep->part.copy, deep->part.bytes);
	if (!deep->part.bytes)
		*(void **)(void *)weft__stack_oldest(g->stack)->came_from = NULL; /* unwinders end here */
	weft__limits(g);
	weft__set_full(g, deep->full);
	weft__piece_give(g, deep, sizeof *deep + deep->part.bytes);
	return sp;
}

/* Free the copies of the running activity, which ends. */
void weft__deep_end(struct weft__activity_group *g)
{
	struct weft__activity_stack *oldest = weft__stack_oldest(g->stack);

	weft__segments_free(g, g->segment, oldest && oldest->parked ? weft__part_record(oldest->parked) : g->segment);
	weft__stacks_free(g, g->stack);
	if (g->pinned_at)
		(void)exchange_exceptions((struct weft__cxa_globals){NULL, 0});
	g->stack = NULL;
	g->segment = NULL;
	g->pinned_at = NULL;
	weft__limits(g);
}

/* Returns the copy of the newest segment of an activity that is parked as `deep`. */
struct weft__part *weft__deep_part(struct weft__deep *deep)
{
	return deep->part.bytes ? &deep->part : weft__stack_oldest(deep->stack)->parked;
}

void weft__frames_free(struct weft__activity_group *g, weft_activity_t *a)
{
	struct weft__deep *deep = a->frames;

	if (g->stackful) {
		weft__own_delete(g, a);
		return;
	}
	if (!a->size) {
		weft__segments_free(g, deep->segment, weft__part_record(weft__deep_part(deep)));
		weft__stacks_free(g, deep->stack);
		weft__piece_give(g, deep, sizeof *deep + deep->part.bytes);
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

		at = deep->stack ? deep->sp : deep->part.copy;
	}
	/* The return address is above rbp (x86_64.S). */
	((void **)(void *)at)[1] = weft__activity_cancelled;
}
