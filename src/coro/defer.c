/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deferred functions that are called when their scopes end. A program that neither suspends nor leaves a coroutine
 * links only this part of ends.c.
 */
#include <weft/defer.h>

#include "coro/ends.h"

WEFT__LAST_WORDS(, weft__die_ending,
		 (const weft_coro_t *k, const char *what, const char *why, const struct weft_effect *effect,
		  const char *advice),
		 k, what, why, effect, advice)
{
	struct weft__line line;

	weft__line_coro(&line, what, k);
	weft__line_text(&line, why);
	if (effect) {
		weft__line_text(&line, " \"");
		weft__line_text(&line, weft__effect_name(effect));
		weft__line_text(&line, "\"");
	}
	weft__line_text(&line, advice);
	weft__line_die(&line);
}

void weft__call_first(weft_coro_t *self)
{
	struct weft__deferred *d = weft__deferred_of(self->deferred);
	uintptr_t moved = (uintptr_t)self->view & WEFT__MOVED;

	self->deferred = d->next;
	self->view = weft__masked(d->view) ? (const struct weft__view *)((uintptr_t)d->view | moved) : d->view;
	d->fn(d->arg);
}

bool weft__must_end(const weft_coro_t *k)
{
	if (!weft__has_started(k))
		return false;
	for (const weft_coro_t *c = k->innermost;; c = c->parent) {
		if (weft__deferred_of(c->deferred) || c->flags & (WEFT_UNWIND | WEFT__ENDING | WEFT__THENS))
			return true;
		if (c == k)
			return false;
	}
}

/* The first call in a suspended frame, when its coroutine is resumed to end or to throw. */
WEFT__LEAVES_STACK void weft__end_here(void)
{
	weft__end_where_it_waits();
}

void weft__scope_skipped(weft_coro_t *self, struct weft__deferred *d)
{
	struct weft__deferred *inner;

	while ((inner = weft__deferred_of(self->deferred)) && inner != weft__deferred_of(d)) {
		if (inner->check != weft__deferred_check(inner))
			weft__die_ending(
			    self, "in",
			    ": a scope with weft_defer was left by longjmp, or by an exception that its code", NULL,
			    " was not compiled for; use -fexceptions");
		self->deferred = inner->next;
		inner->fn(inner->arg);
	}
	if (inner != weft__deferred_of(d))
		weft__die_ending(self, "in", ": a scope with weft_defer ends in another coroutine than it began in",
				 NULL, "; keep the scope within one");
}
