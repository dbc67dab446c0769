/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * prefetch.h: code shared by all contenders of B4, C or C++: a sorted array of `mb` million bytes, and `n` keys to look
 * up, half of which exist. The answer is the sum of the found positions.
 */
#ifndef LAB_PREFETCH_H
#define LAB_PREFETCH_H

#include "lab.h"

struct prefetch {
	const int32_t *array, *keys;
	size_t count, n, streams;
};

/* Element i is 2i + 1. The number of elements is no power of two, because then the probes of all searches would map to
 * a few cache sets. */
static inline struct prefetch prefetch_make(int argc, char **argv)
{
	struct prefetch p = {};
	uint64_t random = UINT64_C(88172645463325252);
	int32_t *array, *keys;
	size_t i;

	p.count = (size_t)lab_number(argc, argv, "mb", 1) * 1000000 / sizeof(*array);
	p.n = (size_t)lab_number(argc, argv, "n", 1000);
	p.streams = (size_t)lab_number(argc, argv, "streams", 16);
	array = (int32_t *)malloc(p.count * sizeof(*array));
	keys = (int32_t *)malloc(p.n * sizeof(*keys));
	if (!array || !keys)
		lab_die("malloc");
	for (i = 0; i < p.count; i++)
		array[i] = (int32_t)(2 * i + 1);
	for (i = 0; i < p.n; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		keys[i] = (int32_t)(random % (2 * p.count));
	}
	p.array = array;
	p.keys = keys;
	return p;
}

/* This number of elements is in a line or two, which the last probe has fetched. */
enum { PREFETCH_NEAR = 16 };

/*
 * One step of a search for the first element that is not below the key, among `count` elements from `base` on: it
 * leaves half of them. There is no branch, because its prediction would be wrong every second time.
 */
#define PREFETCH_STEP(base, count, key)                                                                                \
	do {                                                                                                           \
		size_t half_;                                                                                          \
                                                                                                                       \
		LAB_HIDE(count);                                                                                       \
		half_ = (count) / 2;                                                                                   \
		(base) += half_ & -(size_t)((base)[half_ - 1] < (key));                                                \
		(count) -= half_;                                                                                      \
		LAB_HIDE(base);                                                                                        \
	} while (0)

#endif /* LAB_PREFETCH_H */
