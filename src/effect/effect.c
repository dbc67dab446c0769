/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The search for a handler: up the chain of running coroutines, comparing what each resumer handles. The inline fast
 * path has looked at the innermost already.
 */
#include <weft/effect.h>

#include "internal/line.h"

weft_effect_t weft_failed = {"weft_failed", "", &weft_failed, NULL, 0, 0};
weft_effect_t weft_suspended = {"weft_suspended", "", &weft_suspended, NULL, 0, 0};

static bool set_has(uintptr_t word, const weft_effect_t *effect)
{
	const weft_effect_t *const *member = (const weft_effect_t *const *)(word - 1);

	for (; *member; member++)
		if (*member == effect || *member == effect->family)
			return true;
	return false;
}

static bool handles(uintptr_t word, const weft_effect_t *effect)
{
	if (word == (uintptr_t)effect->family || word == (uintptr_t)effect || word == ~(uintptr_t)0)
		return true;
	return word & 1 && set_has(word, effect);
}

weft_coro_t *weft__locate(const weft_effect_t *effect)
{
	weft_coro_t *k = weft__self();

	for (; k && k->parent; k = k->parent)
		if (handles(k->handled, effect))
			return k;
	return NULL;
}

static WEFT__NORETURN WEFT__COLD void die_unhandled(const weft_effect_t *effect)
{
	const weft_coro_t *self = weft_current();
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "unhandled effect \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\"");
	if (self) {
		weft__line_text(&line, " in coroutine \"");
		weft__line_text(&line, weft_name(self));
		weft__line_text(&line, "\" (#");
		weft__line_number(&line, weft_id(self));
		weft__line_text(&line, ")");
	} else {
		weft__line_text(&line, " outside of any coroutine");
	}
	weft__line_text(&line, ": resume with weft_handles(");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "), or set a default handler with weft_set_default");
	weft__line_die(&line);
}

weft_coro_t *weft__find(const weft_effect_t *effect)
{
	weft_coro_t *k = weft__locate(effect);

	if (!k && !__atomic_load_n(&effect->default_handler, __ATOMIC_ACQUIRE))
		die_unhandled(effect);
	return k;
}

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

void weft__die_declared_twice(const weft_effect_t *effect, size_t size)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "two different effects are called \"");
	weft__line_text(&line, effect->name);
	weft__line_text(&line, "\": one is declared \"");
	weft__line_text(&line, effect->signature);
	weft__line_text(&line, "\", one with ");
	weft__line_number(&line, size);
	weft__line_text(&line, " bytes of arguments and result; rename one, or put it into a family");
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
