/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that tail clauses want called with an answer (weft_on_answer).
 *
 * They belong to the call of weft_run that will have the answer, and lie with the coroutine that made the call, in
 * pieces of memory that grow: the newest at the top of the newest piece. Calls within one another take what is above
 * the top that they found. What is left of calls that do not return goes with the coroutine, however it ends; its flag
 * WEFT__THENS is set while there is a piece, so that nobody looks twice who looks at its flags anyway.
 */
#ifndef WEFT_SRC_CORO_ANSWER_HOOKS_H
#define WEFT_SRC_CORO_ANSWER_HOOKS_H

#include "coro/ends.h"

/* Where what comes next will lie; NULL if that is a new piece. */
static inline char *weft__top_of_thens(weft_coro_t *self)
{
	return weft__unlikely(self && self->flags & WEFT__THENS) ? self->thens->top : NULL;
}

/* A piece with so much room; NULL: no memory. */
struct weft__thens *weft__more_thens(weft_coro_t *k, size_t need);
/* The newest piece, and where in it that begins which came since the top was there; NULL if nothing did. */
struct weft__thens *weft__newest_thens(weft_coro_t *self, const char *since, char **bottom);

#endif
