/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The runtime's own effects, and reports of misuse. */
#include "effect/effect.h"

#include "coro/ends.h"
#include "internal/message.h"

#include <string.h>

/* Links the functions that the macros of weft/effect.h call into each program that uses some of them, for the shared
 * objects that it loads. */
__attribute__((used)) static void (*const together[])(void) = {(void (*)(void))weft__find, (void (*)(void))weft_run};

weft_effect_t weft_failed = {.name = "weft_failed", .signature = "", .family = &weft_failed};
weft_effect_t weft_suspended = {.name = "weft_suspended", .signature = "", .family = &weft_suspended};

/* ---- questions of the coroutine layer ------------------------------------------------------------------------- */

/* In programs for other interfaces, effects may be small numbers. */
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

WEFT__LAST_WORDS(, weft__die_wrong_request, (weft_request_t r, const weft_effect_t *expected), r, expected)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "request \"");
	weft__line_text(&line, weft_request_name(r));
	if (weft__same(r.effect, expected)) {
		weft__line_text(&line, "\" of another shared object: handle it by its name, not all effects");
	} else {
		weft__line_text(&line, "\" taken for \"");
		weft__line_text(&line, expected->name);
		weft__line_text(&line, "\": ask weft_is first");
	}
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_forward, (const weft_effect_t *effect), effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "effect \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" forwarded: its arguments were moved into the clause; perform it there instead");
	weft__line_die(&line);
}

WEFT__LAST_WORDS(, weft__die_default_returned, (const weft_effect_t *effect), effect)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "the default handler of exception \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\" returned: it must end the program, or the exception be handled");
	weft__line_die(&line);
}
