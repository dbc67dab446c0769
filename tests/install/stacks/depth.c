/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdarg.h>
#include "depth.h"

static long (*volatile again)(long n, ...) = depth;

/* 1 + 2 + … + n, a frame for each; every argument after the first is n - 1. */
long depth(long n, ...)
{
	volatile char ballast[64];
	va_list list;
	long next;

	va_start(list, n);
	next = va_arg(list, long);
	va_end(list);
	ballast[n & 63] = (char)n;
	if (n == 0)
		return 0;
	return again(next, next - 1) + n + (ballast[n & 63] != (char)n);
}
