/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that tail clauses register to be called with an answer (weft_on_answer).
 *
 * The call of weft_run that will have the answer owns them. They are stored with the coroutine that made this call, in
 * pieces of memory of growing size: the newest function at the top of the newest piece. Nested calls of weft_run use
 * the memory above the top that they found. The functions of calls that do not return are freed with the coroutine,
 * however it ends. Its flag WEFT__THENS is set while there is a piece, so that code which checks its flags anyway needs
 * no second check.
 */
#ifndef WEFT_SRC_CORO_ANSWER_HOOKS_H
#define WEFT_SRC_CORO_ANSWER_HOOKS_H

#include "coro/ends.h"

/* The address where the next function will be stored; NULL if that is in a new piece. */
static inline char *weft__top_of_thens(weft_coro_t *self)
{
	return weft__unlikely(self && self->flags & WEFT__THENS) ? self->thens->top : NULL;
}

/* Make a piece with room for `need` bytes. Returns NULL if there is no memory. */
struct weft__thens *weft__more_thens(weft_coro_t *k, size_t need);
/* The newest piece, and in `bottom` where the functions begin that were added since the top was at `since`. Returns
 * NULL if there are none. */
struct weft__thens *weft__newest_thens(weft_coro_t *self, const char *since, char **bottom);

#endif
