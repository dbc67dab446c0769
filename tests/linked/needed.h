/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions that needs.c calls. Functions without arguments return the address of their frame. */
enum { DEPTH = 500 };

struct seen {
	int small, roomy, listed, unsaid;
};

void *small(void), *roomy(void), *listed(void), *unsaid(void);
long small_sum(long a, long b, long c, long d, long e, long f, long g, long h);
