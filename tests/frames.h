/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The model of a stack for tests that run random programs of coroutines: an array of numbers, one for each frame. It
 * knows nothing of Weft. A program gives, before the header, two enumerators: MODEL_MOST, the frames above the first at
 * most, and MODEL_CALLS, how many of a value's MODEL_CALLS + 3 meanings are a call.
 */
#ifndef WEFT_TESTS_FRAMES_H
#define WEFT_TESTS_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

struct model {
	uint64_t local[MODEL_MOST + 1];
	int depth, deepest; /* frames above the first: now, and at most */
	bool over;
};

static inline uint64_t mix(uint64_t digest, uint64_t x)
{
	return (digest ^ x) * 0x9e3779b97f4a7c15u + (digest >> 29);
}

static inline uint64_t digest_of(const struct model *m)
{
	uint64_t digest = 1;

	for (int i = m->depth; i >= 0; i--)
		digest = mix(digest, m->local[i]);
	return digest;
}

enum action { CALL, RETURN, ADD, TURN };

/* A coroutine that is resumed with x takes this action. */
static inline enum action action_of(uint64_t x)
{
	unsigned meaning = (unsigned)(x % (MODEL_CALLS + 3));

	return meaning < MODEL_CALLS ? CALL : (enum action)(RETURN + meaning - MODEL_CALLS);
}

static inline void model_step(struct model *m, uint64_t x)
{
	uint64_t *local = &m->local[m->depth];

	switch (action_of(x)) {
	case CALL:
		if (m->depth < m->deepest)
			m->local[++m->depth] = x;
		break;
	case RETURN:
		if (m->depth)
			m->local[--m->depth] += *local;
		else
			m->over = true;
		break;
	case ADD:
		*local += x;
		break;
	case TURN:
		*local = *local << 7 | *local >> 57;
	}
}

#endif
