/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The code that experiment E runs. Each function has a plain version, whose name ends in _plain. If activities are
 * compiled, the other version may yield.
 */
#ifndef LAB_ACTIVITIES_H
#define LAB_ACTIVITIES_H

#include "lab.h"

#ifndef LAB_ATOMIC
#define LAB_ATOMIC
#endif

/* Defines the same body twice. `own` is the version's own suffix, for recursion. */
#define LAB_BOTH(result, name, parameters, ...)                                                                        \
	LAB_NOINLINE static result name parameters __VA_ARGS__;                                                        \
	LAB_NOINLINE LAB_ATOMIC static result name##_plain parameters __VA_ARGS__

static const int lab_table[9] = {4, 8, 3, 5, 6, 7, 2, 1, 0};

LAB_NOINLINE static int call(int n, int x)
{
	int half = n / 2;

	return n < 2 ? lab_table[x] : call(half, call(n - half, x));
}

LAB_NOINLINE LAB_ATOMIC static int call_plain(int n, int x)
{
	int half = n / 2;

	return n < 2 ? lab_table[x] : call_plain(half, call_plain(n - half, x));
}

/* A chain of calls. The compiler cannot turn it into a loop. */
LAB_NOINLINE static int linear(int n)
{
	int below = 0;

	if (n) {
		below = linear(n - 1);
		LAB_HIDE(below);
	}
	return below + 1;
}

LAB_NOINLINE LAB_ATOMIC static int linear_plain(int n)
{
	int below = 0;

	if (n) {
		below = linear_plain(n - 1);
		LAB_HIDE(below);
	}
	return below + 1;
}

LAB_BOTH(int64_t, sum, (const int *a, long n), {
	int64_t s = 0;
	for (long i = 0; i < n; i++)
		s += a[i];
	return s;
})

LAB_BOTH(void, matmul, (double *restrict c, const double *restrict a, const double *restrict b, long n), {
	for (long i = 0; i < n; i++)
		for (long k = 0; k < n; k++)
			for (long j = 0; j < n; j++)
				c[i * n + j] += a[i * n + k] * b[k * n + j];
})

LAB_BOTH(void, sort, (int *a, long n), {
	for (long gap = n / 2; gap; gap /= 2)
		for (long i = gap; i < n; i++) {
			int t = a[i];
			long j = i;
			for (; j >= gap && a[j - gap] > t; j -= gap)
				a[j] = a[j - gap];
			a[j] = t;
		}
})

LAB_BOTH(int64_t, hash, (uint32_t * table, uint32_t mask, long n), {
	int64_t found = 0;
	uint32_t x = 1;
	for (long i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		uint32_t key = x >> 17 | 1;
		uint32_t at = key * 2654435761u & mask;
		while (table[at] && table[at] != key)
			at = (at + 1) & mask;
		found += !table[at];
		table[at] = key;
	}
	return found;
})

LAB_NOINLINE LAB_ATOMIC static int compare_plain(const char *a, const char *b)
{
	for (; *a && *a == *b; a++, b++)
		continue;
	return *a - *b;
}

#endif
