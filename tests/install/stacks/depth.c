/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdarg.h>
#include "depth.h"

static long (*volatile again)(long n) = depth;

/* The last of `count` numbers; more than registers hold. */
__attribute__((noinline)) static long last(int count, ...)
{
	va_list list;
	long n = 0;

	va_start(list, count);
	while (count--)
		n = va_arg(list, long);
	va_end(list);
	return n;
}

/* 1 + 2 + … + n, a frame of at least 128 bytes for each. */
long depth(long n)
{
	volatile char ballast[128];

	ballast[n & 127] = (char)n;
	if (n == 0)
		return 0;
	return again(last(8, n, n, n, n, n, n, n, n - 1)) + n + (ballast[n & 127] != (char)n);
}
