/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft_run, and its short form for programs with only tail clauses.
 *
 * A body under tail clauses does not return control to weft_run before its end: there is no request to decide about,
 * and nothing to resume again. handler.c, which contains the loop that decides, is a part (stack/policies.c). A clause
 * of another kind links handler.c, by the function that calls the clause (weft/handler.h), and so do weft_run_with and
 * weft_on_answer. weft_run then uses that loop for every table.
 */
#include "effect/run.h"

#include <errno.h>
#include <weft/defer.h>

#include "coro/ends.h"

/* ---- messages ---------------------------------------------------------------------------------------------- */

WEFT__LAST_WORDS(, weft__die_clause, (const weft_handler_t *handler, const weft_effect_t *effect, const char *why),
		 handler, effect, why)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "handler \"");
	weft__line_text(&line, handler ? handler->name : "?");
	if (effect) {
		weft__line_text(&line, "\", effect \"");
		weft__line_text(&line, effect->name);
	}
	weft__line_text(&line, why);
	weft__line_die(&line);
}

static WEFT__COLD WEFT__NORETURN void die_request(const weft_handler_t *handler, const weft_effect_t *effect)
{
	const char *why = "\": the body was suspended by weft_suspend or weft_yield, and nobody would resume it: "
			  "resume a coroutine of your own by weft_resume_under instead";

	if (weft__clause_for(handler, effect, false))
		why = "\": its clause is weft_requested, which needs a loop around weft_resume_under";
	else if (weft__clause_for(handler, effect, true))
		why = "\": weft_escalate needs a general, multi or abort clause beside the tail clause";
	weft__die_clause(handler, effect, why);
}

/* ---- no answer of the body --------------------------------------------------------------------------------- */

void *weft__failed(const weft_handler_t *handler, void *state, int error)
{
	const weft_clause_t *clause = weft__clause_of_kind(handler, WEFT__ON_FAILURE);

	if (clause)
		return ((weft__on_failure_t *)clause->clause)(state, error);
	errno = error;
	return NULL;
}

static WEFT__COLD void *ended_by_runtime(const weft_handler_t *handler, const weft_coro_t *k)
{
	static const int errors[] = {[WEFT_NO_FAILURE] = ENOMEM,
				     [WEFT_BUDGET_SPENT] = EDQUOT,
				     [WEFT_RESERVATION_SPENT] = EOVERFLOW,
				     [WEFT_MEMORY_SPENT] = ENOMEM};

	return weft__failed(handler, k->state, errors[weft_failure(k)]);
}

void *weft__no_clause(const weft_handler_t *handler, const weft_coro_t *k, weft_request_t r)
{
	if (r.effect == WEFT__THROWN)
		weft__raise(r.payload);
	if (r.effect != &weft_failed)
		die_request(handler, r.effect);
	return ended_by_runtime(handler, k);
}

/* ---- ownership of the body's coroutine ------------------------------------------------------------------------- */

void weft__give_up(struct weft__run_frame *run_frame)
{
	weft__end_run_frame(run_frame);
}

bool weft__is_run_frame(const struct weft__deferred *d)
{
	return d->fn == (void (*)(void *))(void (*)(void))weft__give_up;
}

_Static_assert(sizeof(struct weft__run_frame) == WEFT__RUN_FRAME_BYTES, "edit coro/ends.h");

weft_coro_t *weft__run_frame_coro(const void *arg)
{
	const struct weft__run_frame *run_frame = arg;

	return weft__run_frame_owns(run_frame) ? run_frame->k : NULL;
}

/* ---- running ----------------------------------------------------------------------------------------------- */

void weft__die_no_handler(const char *function)
{
	weft__die_saying(function, "(NULL): there is no handler; ",
			 "pass the address of one that WEFT_HANDLER defines");
}

/* The run frame is registered first, because the stack may overflow in each call that follows. */
static __attribute__((noinline)) void *run_once(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg)
{
	struct weft__run_frame run_frame = weft__no_run_frame;
	weft_request_t r;
	weft_coro_t *k;

	weft__defer_quick(weft__give_up, &run_frame);
	k = weft_create(body, arg);
	if (weft__unlikely(!k))
		return weft__failed(handler, state, errno);
	run_frame = (struct weft__run_frame){k, k->id, k->owner_changes};
	k->state = state;
	r = weft__resume_caught(&k, NULL, weft__word_of(handler));
	if (weft__unlikely(r.effect != NULL))
		return weft__no_clause(handler, k, r);
	state = k->state;	   /* k may be a coroutine that the body switched to */
	weft__give_up(&run_frame); /* before the clause, so that the clause can reuse the coroutine */
	return weft__returned(handler, state, r.payload);
}

void *weft_run(const weft_handler_t *handler, void *state, weft_fn_t *body, void *arg)
{
	if (weft__unlikely(!handler))
		weft__die_no_handler("weft_run");
	if (weft__likely(weft__run_deciding))
		return weft__run_deciding(handler, state, body, arg, NULL);
	return run_once(handler, state, body, arg);
}

void (*const weft__maker_run)(void) = (void (*)(void))weft_run;
