/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A group of activities, and the contract between its parts.
 *
 * A group is a coroutine, whose stack is the hot stack:
 *
 *   weft_activity_run's caller
 *   ------------------------------  high addresses
 *   the driver's frame              picks activities, sleeps when none is ready
 *   room for what it calls          WEFT__DRIVER_ROOM
 *   base ------------------------
 *   frames of twins                 WEFT__WINDOW: what is copied; a call that would go deeper goes on in another stack
 *   full ------------------------
 *   frames of plain code            the rest: plain code never switches, so it is gone at each switch
 *   ------------------------------  guard
 *
 * An activity in a stack of its own (stacks.c) has part of its frames in the window all the same: those it had when it
 * went there.
 */
#ifndef WEFT_SRC_ACTIVITY_ACTIVITY_H
#define WEFT_SRC_ACTIVITY_ACTIVITY_H

#include <stdatomic.h>
#include <stddef.h>
#include <weft/activity.h>
#include <weft/sync.h>

#include "activity/offsets.h"

enum { WEFT__DRIVER_ROOM = 32 << 10, WEFT__WINDOW = 64 << 10, WEFT__HOT_STACK = 1 << 20 };

/* States of an activity: who may leave them is said in weft/activity.h. */
enum { WEFT__NEW, WEFT__READY, WEFT__RUNNING, WEFT__WAITING, WEFT__ENDED };
/* What one waits for: `what`. */
enum { WEFT__FOR_NOTHING, WEFT__FOR_SEM, WEFT__FOR_END, WEFT__FOR_TIME, WEFT__FOR_OUTSIDE, WEFT__FOR_MAIL };
/* Flags. */
enum {
	WEFT__DETACHED = 1, /* the group allocated it, and frees it when it has ended */
	WEFT__DEEP = 2,	    /* has stacks of its own: `frames` is a struct weft__deep while it is parked */
	WEFT__CANCELLED = 4,
};

/* A variable, or several of one function, that others may know. The function's frame has its address. */
struct weft__activity_var {
	struct weft__activity_var *next; /* older */
	size_t bytes;			 /* with this */
	char memory[];
};

/* A stack that an activity went on in, at its high end. */
struct weft__activity_stack {
	struct weft__activity_stack *outer; /* where it came from; NULL: the window */
	char *came_from;		    /* the stack pointer there: at a return address */
	char *low, *full;		    /* the mapping's start; below `full` the next stack is needed */
	size_t bytes;
	size_t unused;
};

/* What is kept of an activity that has stacks of its own, while it is parked. */
struct weft__deep {
	struct weft__activity_stack *stack; /* the newest */
	char *sp;
	size_t bytes; /* in the window */
	_Alignas(16) char window[];
};

struct weft__activity_group {
	/* Assembly knows these: see offsets.h. */
	char *base, *driver;
	void *garbage; /* large blocks to be given back */
	void *blocks[LARGEST_BLOCK / 16 + 1];

	char *low;			    /* of the hot stack */
	struct weft__activity_stack *stack; /* the newest of the running activity; NULL: it is in the window */
	struct weft__activity_stack *spare;
	weft_activity_t *first, *last; /* ready */
	size_t live;		       /* activities that have not ended */
	char *fresh, *fresh_end;       /* memory that blocks are cut from */
	struct weft__span *spans;
	struct weft__sleepers {
		struct weft__sleeper {
			uint64_t when;
			weft_activity_t *activity;
		} *heap;
		size_t count, room;
	} sleepers;
	/* Activities that other threads have woken; a stack. */
	_Atomic(weft_activity_t *) woken;
	_Atomic(weft_waiter_t *) idle; /* the driver's, while it waits */
	size_t outside;		       /* activities that wait for what is not of this group */

	struct weft__activity_hot *hot;	    /* of the group's thread */
	struct weft__activity_group *older; /* of those whose timer runs: timer.c */
	uint64_t period, next_ring;
	bool every_yield, stackful;
	weft_coro_t *coro; /* the driver */
	weft_attr_t attr;  /* stackful: of the activities' coroutines */
	weft_fn_t *fn;
	void *arg;
	void *result;
	weft_activity_t root;
	int error;
};

/* ---- memory.c --------------------------------------------------------------------------------------------------- */
/* A block of a multiple of 16 bytes, or NULL. */
void *weft__piece_take(struct weft__activity_group *g, size_t bytes);
void weft__piece_give(struct weft__activity_group *g, void *block, size_t bytes);
/* The same for a size that is known, inline. */
static inline void *weft__piece(struct weft__activity_group *g, size_t bytes)
{
	void **list = &g->blocks[bytes / 16], *block = *list;

	if (weft__unlikely(!block))
		return weft__piece_take(g, bytes);
	*list = *(void **)block;
	return block;
}
void weft__garbage_give(struct weft__activity_group *g);
void weft__vars_free(struct weft__activity_group *g, struct weft__activity_var *until);
void weft__pieces_unmap(struct weft__activity_group *g);

/* ---- queue.c ---------------------------------------------------------------------------------------------------- */
static inline void weft__ready(struct weft__activity_group *g, weft_activity_t *a)
{
	a->state = WEFT__READY;
	a->next = NULL;
	if (g->first)
		g->last->next = a;
	else
		g->first = a;
	g->last = a;
}

static inline weft_activity_t *weft__pick(struct weft__activity_group *g)
{
	weft_activity_t *a = g->first;

	if (a)
		g->first = a->next;
	return a;
}

/* ---- switch.c: called by assembly ------------------------------------------------------------------------------- */
/* 0: go on; 1: leave to the driver; else the activity to switch to. */
uintptr_t weft__activity_parked(char *sp);
uintptr_t weft__activity_yielded(char *sp);
uintptr_t weft__activity_rang(char *sp);
uintptr_t weft__activity_ended(void *result);
char *weft__activity_deep(weft_activity_t *a);
char *weft__activity_grow(char *sp);
char *weft__activity_shrink(void);

/* ---- x86_64.S --------------------------------------------------------------------------------------------------- */
void weft__activity_enter(struct weft__activity_group *g, weft_activity_t *first);
_Noreturn void weft__activity_leave(struct weft__activity_group *g);
extern char weft__activity_start[];
/* Stackful: call an activity's function with its six words. */
void weft__activity_call(void *entry, const uint64_t words[6]);

/* ---- stacks.c --------------------------------------------------------------------------------------------------- */
/* Stacks newer than the one that `sp` lies in were left by longjmp. */
void weft__stacks_settle(struct weft__activity_group *g, char *sp);
void weft__stacks_free(struct weft__activity_group *g, struct weft__activity_stack *stack);

/* ---- timer.c ---------------------------------------------------------------------------------------------------- */
void weft__timer_add(struct weft__activity_group *g);
void weft__timer_remove(struct weft__activity_group *g);

/* ---- group.c ---------------------------------------------------------------------------------------------------- */
/* Make ready what other threads have woken, and whose time has come. */
void weft__take_in(struct weft__activity_group *g);
void weft__activity_finish(struct weft__activity_group *g, weft_activity_t *a, void *result, int error);
_Noreturn void weft__activity_fail(int error);

static inline void weft__limits(struct weft__activity_group *g, char *full)
{
	g->hot->full = (uintptr_t)full;
	g->hot->limit = g->every_yield ? UINTPTR_MAX : (uintptr_t)full;
}

#endif
