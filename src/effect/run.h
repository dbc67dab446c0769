/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the two kinds of weft_run: see run.c. */
#ifndef WEFT_SRC_EFFECT_RUN_H
#define WEFT_SRC_EFFECT_RUN_H

#include "effect/effect.h"

/* ---- clauses ----------------------------------------------------------------------------------------------- */

static inline const weft_clause_t *weft__clause_of_kind(const weft_handler_t *handler, int kind)
{
	for (unsigned i = 0; i < handler->count; i++)
		if (handler->clauses[i].kind == kind)
			return &handler->clauses[i];
	return NULL;
}

/* The first clause of an effect that is a tail clause, or, without `tail`, that is not; NULL if there is none. */
static inline const weft_clause_t *weft__clause_for(const weft_handler_t *handler, const weft_effect_t *effect,
						    bool tail)
{
	const weft_clause_t *clause = handler->clauses;

	for (unsigned left = handler->count; left; left--, clause++)
		if (clause->effect == effect && (clause->kind == WEFT__TAIL) == tail)
			return clause;
	return NULL;
}

static inline void *weft__returned(const weft_handler_t *handler, void *state, void *result)
{
	const weft_clause_t *clause = weft__clause_of_kind(handler, WEFT__ON_RETURN);

	return clause ? ((weft__on_return_t *)clause->clause)(state, result) : result;
}

/* The result of the failure clause; without that clause, NULL and errno. */
WEFT__COLD void *weft__failed(const weft_handler_t *handler, void *state, int error);
/* Called when k has made a request for which the handler has no clause: an exception continues in the caller, a failure
 * of k gives an answer. */
WEFT__COLD void *weft__no_clause(const weft_handler_t *handler, const weft_coro_t *k, weft_request_t r);

/* ---- ownership of the body's coroutine ------------------------------------------------------------------------- */

/* The coroutine that a frame of weft_run must delete however the frame is left, unless a clause keeps the coroutine. It
 * must do so too if the coroutine that executes weft_run is deleted while a clause waits. */
struct weft__run_frame {
	weft_coro_t *k;
	uint64_t id;
	uint16_t owner_changes; /* if k's count differs, k has another owner */
};

/* For a run frame that has no coroutine yet. */
static weft_coro_t weft__nobody;
static const struct weft__run_frame weft__no_run_frame = {&weft__nobody, 1, 0};

static inline bool weft__run_frame_owns(const struct weft__run_frame *run_frame)
{
	return run_frame->k->id == run_frame->id && run_frame->k->owner_changes == run_frame->owner_changes;
}

static inline void weft__end_run_frame(struct weft__run_frame *run_frame)
{
	if (run_frame && weft__run_frame_owns(run_frame))
		weft_delete(run_frame->k);
}

/* Like weft__end_run_frame, as a cleanup for weft_defer: weft__is_run_frame recognizes this function. */
void weft__give_up(struct weft__run_frame *run_frame);

/* Report that FUNCTION was called with NULL in place of a handler. */
WEFT__COLD _Noreturn void weft__die_no_handler(const char *function);

static inline uintptr_t weft__word_of(const weft_handler_t *handler)
{
	return (uintptr_t)handler + WEFT__HANDLES_RUN;
}

/* handler.c: weft_run for tables with any clauses. */
WEFT__OF_DECIDING void *weft__run_deciding(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg,
					   const weft_attr_t *attr);

#endif
