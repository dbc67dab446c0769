/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the effect layer. */
#ifndef WEFT_SRC_EFFECT_EFFECT_H
#define WEFT_SRC_EFFECT_EFFECT_H

#include <weft/effect.h>

#include "coro/coro.h"
#include "internal/link_part.h"

/* The group of an effect. Small numbers are effects of other interfaces, and have none. Acquire: pairs with the stores
 * in identity.c. */
static inline const struct weft__group *weft__group_of(const weft_effect_t *effect)
{
	return (uintptr_t)effect < 4096 ? NULL : __atomic_load_n(&effect->group, __ATOMIC_ACQUIRE);
}

/* True if both addresses stand for the same effect. */
static inline bool weft__same(const weft_effect_t *a, const weft_effect_t *b)
{
	const struct weft__group *group;

	if (weft__likely(a == b))
		return true;
	group = weft__group_of(b);
	return weft__unlikely(group != NULL) && group == weft__group_of(a);
}

/* The handler by whose table a coroutine's resumer handles effects; NULL if `handled` is no table. */
static inline const weft_handler_t *weft__handler_of(uintptr_t handled)
{
	return weft__handles_table(handled) ? (const weft_handler_t *)(handled & ~(uintptr_t)7) : NULL;
}

/* A different effect of the same name that k's handler or an enclosing handler handles; NULL if there is none. */
const weft_effect_t *weft__namesake(const weft_coro_t *k, const weft_effect_t *effect);
/* True if the resumer of k handles the effect when it is performed without a label. */
bool weft__resumer_handles(const weft_coro_t *k, const weft_effect_t *effect);
/* Print one line about a handler and, unless it is NULL, an effect; abort(). */
WEFT__COLD WEFT__NORETURN void weft__die_clause(const weft_handler_t *handler, const weft_effect_t *effect,
						const char *why);

/* then.c: pass the answer of a run to the functions that tail clauses registered since then, the newest first. The
 * running coroutine must have WEFT__THENS. */
WEFT__OF_THENS void *weft__pass_through(const char *since, void *state, void *answer);

struct weft__line;
void weft__line_declaration(struct weft__line *line, const weft_effect_t *effect);

#endif
