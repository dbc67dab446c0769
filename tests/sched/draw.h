/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers for the tests that draw random programs. */
#ifndef WEFT_TESTS_SCHED_DRAW_H
#define WEFT_TESTS_SCHED_DRAW_H

#include <stdint.h>

/* A number below `below`, from Knuth's generator for MMIX. */
static inline uint32_t draw(uint64_t *random, uint32_t below)
{
	*random = *random * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*random >> 33) % below;
}

#endif
