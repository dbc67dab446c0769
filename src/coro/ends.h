/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends of coroutines other than by returning.
 *
 * ends.c is a part (stack/policies.c). It is linked with every function that can suspend a coroutine for longer than a
 * request takes, or can leave a coroutine: weft_resume (by weft__rethrow), weft_exit, clauses that are not tail
 * clauses. Without ends.c no coroutine is suspended when it is deleted, and no flag or request announces an end; so the
 * functions that are declared with WEFT__OF_ENDS are never called. fail.c is a part too, for policies whose stacks
 * grow.
 */
#ifndef WEFT_SRC_CORO_ENDS_H
#define WEFT_SRC_CORO_ENDS_H

#include <unwind.h>

#include "coro/coro.h"

/*
 * An end in progress, from the innermost coroutine of a chain up to `target`. Each coroutine that ends tells its
 * resumer, which ends next: by a request WEFT__THROWN whose payload is this structure's address plus 1.
 */
struct weft__ending {
	struct _Unwind_Exception exception; /* first: the exception object that unwinds frames, with WEFT_UNWIND */
	weft_coro_t *target;
	const struct weft_effect *effect; /* the request that the target's resumer gets */
	void *payload;
	weft_coro_t *last; /* the coroutine that ended last, until its resumer begins to end; NULL if it is deleted */
	weft_coro_t *orphans; /* a list as in orphans.c; target if it is empty */
	enum { WEFT__ENDING_IN_FRAME, WEFT__ENDING_ALLOCATED, WEFT__ENDING_SPARE } storage : 8;
	bool deletes;	/* target was suspended, and is being deleted, released or reset */
	bool keeps;	/* the payload is copied to `kept` */
	bool in_flight; /* frames are being unwound, and this counts as an uncaught exception */
	unsigned uncaught_before;
	WEFT__ALIGNAS(16) char kept[];
};

/* True if the object that left a coroutine is a struct weft__ending, not an exception. */
static inline bool weft__is_ending(const void *thrown)
{
	return (uintptr_t)thrown & 1;
}

/* True if a coroutine from the running one up to k, which must be an ancestor, has cleanups or frames to unwind. */
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

/* True if k, which is suspended, or a coroutine suspended with it has cleanups to call before its frames are
 * forgotten. */
bool weft__must_end(const weft_coro_t *k);
/* End k and the coroutines inside it, each on its own stack where it is suspended. Returns NULL, or the object to pass
 * to weft__rethrow. */
WEFT__COLD WEFT__OF_ENDS void *weft__end_suspended(weft_coro_t *k);
/* End all coroutines from the running one up to k. */
WEFT__COLD _Noreturn void weft__end_up_to(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload);
/* Cancel a pending throw, because the coroutine fails before it lands. */
WEFT__COLD WEFT__OF_ENDS void weft__throw_no_more(void);
/* Called in the resumer: continue an exception or an end that left a coroutine. Defined in exceptions.c; weft__rethrow
 * does the same and also links ends.c. */
WEFT__COLD _Noreturn void weft__raise(void *exception);
/* Continue an end in the running coroutine, which is the resumer of the coroutine that ended. */
WEFT__COLD WEFT__OF_ENDS _Noreturn void weft__end_next(void *thrown);
/* The end that k takes part in, or is about to take part in; else NULL. Async-signal-safe. */
WEFT__OF_ENDS struct weft__ending *weft__ending_of(const weft_coro_t *k);
/* Called when there is no memory for the cleanups that k calls during end `e`: skip k's other cleanups, and continue
 * the end. The coroutines inside k must be abandoned; `orphans` and `bodies` are lists for e's target. */
WEFT__COLD WEFT__OF_ENDS _Noreturn void weft__give_up_ending(weft_coro_t *k, struct weft__ending *e,
							     weft_coro_t *orphans, weft_coro_t *bodies);
/* fail.c: add the bodies of weft_run whose frames were on failing coroutines to a list of k. */
void weft__keep_bodies(weft_coro_t *bodies, weft_coro_t **list, weft_coro_t *k);
/* Called when the frames of the running coroutine have been unwound. */
WEFT__OF_ENDS _Noreturn void weft__ended(weft_coro_t *self, struct weft__ending *e);
/* Called when a suspended coroutine landed where weft__end_here was called. */
WEFT__OF_ENDS _Noreturn void weft__end_where_it_waits(void);
/* defer.c: call the first, which is the innermost, deferred function. */
void weft__call_first(weft_coro_t *self);
/* Print one line about k, and about an effect unless it is NULL; abort(). */
WEFT__COLD _Noreturn void weft__die_ending(const weft_coro_t *k, const char *what, const char *why,
					   const struct weft_effect *effect, const char *advice);

/* Free the payload of a finished coroutine. */
WEFT__COLD WEFT__OF_ENDS void weft__give_payload(weft_coro_t *k);
/* Drop the functions that tail clauses registered with k since then (NULL: ever), without calling them: see
 * answer_hooks.h. A program without such clauses may lack the first function: only the second function calls it. */
WEFT__COLD WEFT__OF_THENS void weft__drop_newest_thens(weft_coro_t *k, const char *since);
static inline void weft__drop_thens(weft_coro_t *k, const char *since)
{
	if (weft__unlikely(k->flags & WEFT__THENS))
		weft__drop_newest_thens(k, since);
}
/* Forget the end that c takes part in: it will not continue. */
WEFT__COLD WEFT__OF_ENDS void weft__forget_ending(weft_coro_t *c);

/* Defined by the layer above: an effect's name, and the bytes of its arguments and result, 0 if unknown. */
const char *weft__effect_name(const struct weft_effect *effect);
size_t weft__effect_size(const struct weft_effect *effect);

/* Defined by the layer above, for cleanups that its frames own: true if `d` is the cleanup of a weft_run frame. Its
 * `arg` then leads to the body's coroutine, which is NULL if the coroutine has no owner, or another owner, by now. */
bool weft__is_run_frame(const struct weft__deferred *d);
weft_coro_t *weft__run_frame_coro(const void *arg);
enum { WEFT__RUN_FRAME_BYTES = 24 }; /* what `arg` points to */

/* orphans.c: mark the coroutines from `innermost` up to k, without k, that were made by a coroutine of this chain or by
 * k. weft__take_owned says whether c has the mark, and clears it. The ends of marked coroutines add them to a list,
 * which k then adopts. */
void weft__note_owned(weft_coro_t *k, weft_coro_t *innermost);
static inline bool weft__take_owned(weft_coro_t *c)
{
	bool owned = c->flags & WEFT__OWNED;

	c->flags &= ~(uint32_t)WEFT__OWNED;
	return owned;
}
void weft__orphan(weft_coro_t *c, weft_coro_t **list, weft_coro_t *k);
void weft__adopt_orphans(weft_coro_t *k, weft_coro_t *list);
/* Note in the orphan that `*place`, a word of k's list, names where it is named. */
void weft__name_orphan(weft_coro_t **place, const weft_coro_t *k);
/* Move the list of an end that does not reach its target to another list, of k. */
WEFT__OF_ENDS void weft__hand_on_orphans(const struct weft__ending *e, weft_coro_t **list, const weft_coro_t *k);

/* chain.c: the coroutine that runs at `sp`, or NULL outside of any coroutine. */
weft_coro_t *weft__runner_at(const char *sp);

/* exceptions.c: unwind the running coroutine's frames. Returns only if unwinding is impossible. */
void weft__unwind(weft_coro_t *self, struct weft__ending *e);
/* Called when the frames have been unwound, and when another end or an exception has replaced `e`. */
void weft__unwound(struct weft__ending *e);
void weft__superseded(struct weft__ending *e);
/* exceptions.c, for assembly: the personality of first frames, and the function that the first frame of k calls with
 * the exception that it caught. */
WEFT__HIDDEN _Unwind_Reason_Code weft__exception_left(int version, _Unwind_Action actions,
						      _Unwind_Exception_Class language,
						      struct _Unwind_Exception *exception,
						      struct _Unwind_Context *context);
WEFT__HIDDEN _Noreturn void weft__thrown(weft_coro_t *k, struct _Unwind_Exception *exception);

#endif
