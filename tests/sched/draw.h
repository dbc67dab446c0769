/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers of the tests that draw their programs. */
#ifndef WEFT_TESTS_SCHED_DRAW_H
#define WEFT_TESTS_SCHED_DRAW_H

#include <stdint.h>

/* A number below `below`. The generator is Knuth's, of MMIX. */
static inline uint32_t draw(uint64_t *random, uint32_t below)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % below;
}

#endif
