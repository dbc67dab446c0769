/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The seeds that the arguments of a test program name. */
#ifndef WEFT_TESTS_HTTP_SEEDS_H
#define WEFT_TESTS_HTTP_SEEDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

struct seeds {
	uint64_t first, count;
};

/* "N+M": M seeds from N on; "N": in a simulation N seeds from 0 on, else that seed alone; NULL: the seed 0. */
static inline struct seeds read_seeds(const char *text, bool simulated)
{
	char *rest = NULL;
	uint64_t number = text ? strtoull(text, &rest, 10) : 0;

	if (!text)
		return (struct seeds){0, 1};
	if (*rest == '+')
		return (struct seeds){number, strtoull(rest + 1, NULL, 10)};
	return simulated ? (struct seeds){0, number} : (struct seeds){number, 1};
}

#endif
