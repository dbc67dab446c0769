/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The effects of random programs, and the sets in which they are handled. */
#ifndef WEFT_TESTS_MODEL_EFFECTS_H
#define WEFT_TESTS_MODEL_EFFECTS_H

#include <weft/weft.h>

struct wide {
	uint64_t word[6];
};

WEFT_EFFECT(uint64_t, ask, uint64_t, x);
WEFT_EFFECT(struct wide, exchange, struct wide, x, double, y);
WEFT_EFFECT(void, notify, uint64_t, x);
WEFT_FAMILY(cell, (uint64_t, get, uint64_t, x), (void, put, uint64_t, x));
WEFT_EFFECT(uint64_t, guess, uint64_t, x); /* has a default handler */
WEFT_EXCEPTION(fail, uint64_t, x);

enum { ASK, EXCHANGE, NOTIFY, GET, PUT, GUESS, FAIL, EFFECTS };

struct set {
	weft_handles_t real;
	uint32_t model;
};

#define BIT(effect) (1u << (effect))
enum { SETS = 14 };

static inline void make_sets(struct set sets[SETS])
{
	const struct set all[SETS] = {
	    {WEFT_HANDLE_NONE, 0},
	    {WEFT_HANDLE_ALL, ~0u},
	    {weft_handles(ask), BIT(ASK)},
	    {weft_handles(exchange), BIT(EXCHANGE)},
	    {weft_handles(notify), BIT(NOTIFY)},
	    {weft_handles(cell), BIT(GET) | BIT(PUT)},
	    {weft_handles(get), BIT(GET)},
	    {weft_handles(put), BIT(PUT)},
	    {weft_handles(guess), BIT(GUESS)},
	    {weft_handles(fail), BIT(FAIL)},
	    {weft_handles(ask, fail), BIT(ASK) | BIT(FAIL)},
	    {weft_handles(cell, notify, guess), BIT(GET) | BIT(PUT) | BIT(NOTIFY) | BIT(GUESS)},
	    {weft_handles(exchange, put, fail, ask), BIT(EXCHANGE) | BIT(PUT) | BIT(FAIL) | BIT(ASK)},
	    {weft_handles(), 0},
	};

	for (int i = 0; i < SETS; i++)
		sets[i] = all[i];
}

#endif
