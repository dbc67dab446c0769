/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Effects of the runtime's own, and what is said when rules are broken. */
#include <weft/effect.h>

#include "coro/ends.h"
#include "internal/line.h"

#include <string.h>

/* What the macros of weft/effect.h call must be in a program that has any of this, for the libraries that it loads. */
__attribute__((used)) static void (*const together[])(void) = {(void (*)(void))weft__find, (void (*)(void))weft_run};

weft_effect_t weft_failed = {"weft_failed", "", &weft_failed, NULL, 0, 0};
weft_effect_t weft_suspended = {"weft_suspended", "", &weft_suspended, NULL, 0, 0};

/* ---- the coroutine layer's questions -------------------------------------------------------------------------- */

/* In programs for other interfaces effects may be small numbers. */
static bool is_number(const weft_effect_t *effect)
{
	return (uintptr_t)effect < 4096;
}

const char *weft__effect_name(const weft_effect_t *effect)
{
	return is_number(effect) ? "a number" : effect->name;
}

size_t weft__effect_size(const weft_effect_t *effect)
{
	return is_number(effect) ? 0 : effect->size;
}

/* ---- requests and rules ------------------------------------------------------------------------------------------ */

const char *weft_request_name(weft_request_t r)
{
	return r.effect ? r.effect->name : "return";
}

void weft__die_wrong_request(weft_request_t r, const weft_effect_t *expected)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "request \"");
	weft__line_text(&line, weft_request_name(r));
	weft__line_text(&line, "\" taken for \"");
	weft__line_text(&line, expected->name);
	weft__line_text(&line, "\": ask weft_is first");
	weft__line_die(&line);
}

/* `bool` is a macro in C: there its text is `_Bool`. */
static bool same_signature(const char *a, const char *b)
{
	for (; *a || *b; a++, b++) {
		if (!strncmp(a, "_Bool", 5) && !strncmp(b, "bool", 4))
			a += 4, b += 3;
		else if (!strncmp(a, "bool", 4) && !strncmp(b, "_Bool", 5))
			a += 3, b += 4;
		else if (*a != *b)
			return false;
	}
	return true;
}

static WEFT__NORETURN WEFT__COLD void die_declared_twice(const struct weft__declared *d)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "two different effects are called \"");
	weft__line_text(&line, d->effect->name);
	weft__line_text(&line, "\": ");
	weft__line_text(&line, d->effect->signature);
	weft__line_text(&line, " and ");
	weft__line_text(&line, d->signature);
	if (d->index != d->effect->index)
		weft__line_text(&line, ", at another place in their family");
	weft__line_text(&line, "; rename one, or give it a namespace by WEFT_NAMESPACE");
	weft__line_die(&line);
}

void weft__check_declared(const struct weft__declared *first, const struct weft__declared *end)
{
	for (const struct weft__declared *d = first; d < end; d++)
		if (d->index != d->effect->index || d->size != d->effect->size ||
		    (d->signature != d->effect->signature && !same_signature(d->signature, d->effect->signature)))
			die_declared_twice(d);
}

void weft__die_forward(const weft_effect_t *effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "effect \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" forwarded: its arguments were moved into the clause; perform it there instead");
	weft__line_die(&line);
}

void weft__die_default_returned(const weft_effect_t *effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "the default handler of exception \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" returned: it must end the program, or the exception be handled");
	weft__line_die(&line);
}
