/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends of coroutines that do not come by returning.
 *
 * ends.c is a part (stack/policies.c). It comes with whatever can suspend a coroutine for longer than a request takes,
 * or leave one: weft_resume (by weft__rethrow), weft_exit, clauses that are no tail clauses. Without it no coroutine is
 * suspended when it is deleted, and no flag and no request says that there is an end on its way; so nobody calls what
 * is declared with WEFT__OF_ENDS. fail.c is another one, for policies whose stacks grow.
 */
#ifndef WEFT_SRC_CORO_ENDS_H
#define WEFT_SRC_CORO_ENDS_H

#include <unwind.h>

#include "coro/coro.h"

/*
 * An end on its way: from the innermost coroutine of a chain up to `target`. Whoever ends tells its resumer so, which
 * ends too: a request WEFT__THROWN whose payload is this, plus 1.
 */
struct weft__ending {
	struct _Unwind_Exception exception; /* first: what frames are unwound with, if it is WEFT_UNWIND */
	weft_coro_t *target;
	const struct weft_effect *effect; /* what the target's resumer gets */
	void *payload;
	weft_coro_t *last;    /* the one that has ended, until the next one begins to; NULL if it is deleted */
	weft_coro_t *orphans; /* as in chain.c; target if there is none */
	enum { WEFT__ENDING_IN_FRAME, WEFT__ENDING_ALLOCATED, WEFT__ENDING_SPARE } storage : 8;
	bool deletes;	/* its target was suspended, and is being deleted, released or reset */
	bool keeps;	/* the payload is kept here */
	bool in_flight; /* it is unwinding frames, and counts as an uncaught exception */
	unsigned uncaught_before;
	WEFT__ALIGNAS(16) char kept[];
};

/* Is what left a coroutine no exception but one of these? */
static inline bool weft__is_ending(const void *thrown)
{
	return (uintptr_t)thrown & 1;
}

/* Is there anything to call in those from the running one up to k, which must be among its ancestors? */
static inline bool weft__leaves_something(const weft_coro_t *k, const weft_coro_t *self)
{
	uintptr_t wanted = 0;

	for (const weft_coro_t *c = self;; c = c->parent) {
		if (weft__unlikely(!c || !c->parent))
			weft__die_not_ancestor(k);
		wanted |= (uintptr_t)c->deferred | (c->flags & (WEFT_UNWIND | WEFT__ENDING | WEFT__THENS));
		if (c == k)
			return wanted;
	}
}

/* Is there anything to call in a suspended coroutine, or those suspended with it, before it is forgotten? */
bool weft__must_end(const weft_coro_t *k);
/* End it, at the places where they wait. NULL, or what is to be passed to weft__rethrow. */
WEFT__COLD WEFT__OF_ENDS void *weft__end_suspended(weft_coro_t *k);
/* End everybody from the running coroutine up to k. */
WEFT__COLD _Noreturn void weft__end_up_to(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload);
/* What was to be thrown is not: a coroutine fails before it lands. */
WEFT__COLD WEFT__OF_ENDS void weft__throw_no_more(void);
/* In the resumer: what left a coroutine goes on. exceptions.c; weft__rethrow is the same, and brings ends.c in. */
WEFT__COLD _Noreturn void weft__raise(void *exception);
/* The coroutine that ended has told the running one, its resumer. */
WEFT__COLD WEFT__OF_ENDS _Noreturn void weft__end_next(void *thrown);
/* The end that k is in the middle of, or is about to take part in; else NULL. Async-signal-safe. */
WEFT__OF_ENDS struct weft__ending *weft__ending_of(const weft_coro_t *k);
/* There is no memory for what k calls on its way to this end. The rest of that is given up, and the end goes on. Those
 * inside k are to be abandoned; `orphans` and `bodies` are lists for e's target. */
WEFT__COLD WEFT__OF_ENDS _Noreturn void weft__give_up_ending(weft_coro_t *k, struct weft__ending *e,
							     weft_coro_t *orphans, weft_coro_t *bodies);
/* fail.c: bodies that frames of failing coroutines ran go to a list of k's. */
void weft__keep_bodies(weft_coro_t *bodies, weft_coro_t **list, weft_coro_t *k);
/* The running one has been unwound. */
WEFT__OF_ENDS _Noreturn void weft__ended(weft_coro_t *self, struct weft__ending *e);
/* A suspended coroutine landed where weft__end_here was called. */
WEFT__OF_ENDS _Noreturn void weft__end_where_it_waits(void);
/* defer.c: call what is deferred first, that is innermost. */
void weft__call_first(weft_coro_t *self);
/* One line about k, and an effect unless it is NULL; abort(). */
WEFT__COLD _Noreturn void weft__die_ending(const weft_coro_t *k, const char *what, const char *why,
					   const struct weft_effect *effect, const char *advice);

/* A finished coroutine's payload is not needed any more. */
WEFT__COLD WEFT__OF_ENDS void weft__give_payload(weft_coro_t *k);
/* Tail clauses' functions that k was to call with answers since then (NULL: ever) are not called: see answer_hooks.h.
 * Programs that have none may lack the first function: only the second one calls it. */
WEFT__COLD WEFT__OF_THENS void weft__drop_newest_thens(weft_coro_t *k, const char *since);
static inline void weft__drop_thens(weft_coro_t *k, const char *since)
{
	if (weft__unlikely(k->flags & WEFT__THENS))
		weft__drop_newest_thens(k, since);
}
/* What c was in the middle of will not go on. */
WEFT__COLD WEFT__OF_ENDS void weft__forget_ending(weft_coro_t *c);

/* What this layer asks of the one above: an effect's name, and bytes of arguments and result, 0 if nobody knows. */
const char *weft__effect_name(const struct weft_effect *effect);
size_t weft__effect_size(const struct weft_effect *effect);

/* The same of what frames of that layer own: is it this that was deferred? Then `arg` leads to the coroutine; NULL if
 * the coroutine is somebody else's by now, or nobody's. */
bool weft__is_run_frame(const struct weft__deferred *d);
weft_coro_t *weft__run_frame_coro(const void *arg);
enum { WEFT__RUN_FRAME_BYTES = 24 }; /* what `arg` points to */

/* orphans.c: note which of those from `innermost` up to k, without k, were made by others of these or by k; c was, and
 * the note is not needed any more. Such go to a list; k takes the list over. */
void weft__note_owned(weft_coro_t *k, weft_coro_t *innermost);
static inline bool weft__take_owned(weft_coro_t *c)
{
	bool owned = c->flags & WEFT__OWNED;

	c->flags &= ~(uint32_t)WEFT__OWNED;
	return owned;
}
void weft__orphan(weft_coro_t *c, weft_coro_t **list, weft_coro_t *k);
void weft__adopt_orphans(weft_coro_t *k, weft_coro_t *list);
/* A list of k's goes on at that word. */
void weft__name_orphan(weft_coro_t **place, const weft_coro_t *k);
/* The list of an end that does not get to its target goes to another list, of k. */
WEFT__OF_ENDS void weft__hand_on_orphans(const struct weft__ending *e, weft_coro_t **list, const weft_coro_t *k);

/* chain.c: the coroutine that runs at `sp`, NULL outside of any. */
weft_coro_t *weft__runner_at(const char *sp);

/* exceptions.c: unwind the running coroutine's frames. It returns only if that is impossible. */
void weft__unwind(weft_coro_t *self, struct weft__ending *e);
/* The frames have been unwound; or another end, or an exception, has taken the place of `e` meanwhile. */
void weft__unwound(struct weft__ending *e);
void weft__superseded(struct weft__ending *e);
/* exceptions.c, for assembly: the personality of first frames; what the first frame of k calls with what it caught. */
WEFT__HIDDEN _Unwind_Reason_Code weft__exception_left(int version, _Unwind_Action actions,
						      _Unwind_Exception_Class language,
						      struct _Unwind_Exception *exception,
						      struct _Unwind_Context *context);
WEFT__HIDDEN _Noreturn void weft__thrown(weft_coro_t *k, struct _Unwind_Exception *exception);

#endif
