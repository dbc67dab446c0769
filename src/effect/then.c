/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft_on_answer: functions that tail clauses register for the answer of weft_run. Only programs that use it link this
 * file. */
#define WEFT__PART_THENS
#define WEFT__PART_DECIDING
#include "coro/answer_hooks.h"
#include "effect/run.h"

#include <errno.h>

/* Links weft__run_deciding, which calls the registered functions. */
WEFT__BRINGS(weft__run_deciding);

/* Calls the newest function first. */
void *weft__pass_through(const char *since, void *state, void *answer)
{
	weft_coro_t *self = weft__self();
	struct weft__thens *t;
	char *bottom;

	while ((t = weft__newest_thens(self, since, &bottom))) {
		char *top = t->top;

		do {
			const struct weft__then *then = (struct weft__then *)(void *)top - 1;

			top = (char *)then - then->bytes;
			answer = then->fn(state, answer, top);
			t->top = top; /* not before the call, which may run a body itself */
		} while (top != bottom);
	}
	return answer;
}

/* The run that would have the answer is under a different handler, whose state has another type. */
WEFT__LAST_WORDS(static, die_moved, (void), 0)
{
	struct weft__line line;

	weft__line_coro(&line, "weft_on_answer in", weft__self());
	weft__line_text(&line, ": the coroutine was resumed under another handler while it executed the tail clause; "
			       "call weft_on_answer before the clause suspends");
	weft__line_die(&line);
}

int weft__then_slowly(weft__then_t *fn, const void *record, size_t bytes)
{
	weft_coro_t *k = weft__clause_owner("weft_on_answer");
	struct weft__thens *t;

	if (weft__was_moved(weft__self()->view))
		die_moved();
	if ((k->handled & 7) != WEFT__HANDLES_RUN)
		weft__die_clause(
		    weft__handler_of(k->handled), NULL,
		    "\": weft_on_answer under weft_resume_under, which returns requests and no answer: run the body "
		    "by weft_run");
	t = weft__more_thens(k->parent, weft__room_for_record(bytes) + sizeof(struct weft__then));
	if (!t)
		return -ENOMEM;
	weft__push_then(t, fn, record, bytes);
	return 0;
}
