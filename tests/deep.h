/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A recursion that fills its stack. A program gives DEEP_BYTES, an enumerator, before the header: of each frame. */
#ifndef WEFT_TESTS_DEEP_H
#define WEFT_TESTS_DEEP_H

#include <string.h>

/* The caller knows how deep it may go. Compilers add some bytes to each frame. */
static __attribute__((noinline)) int deep(int n)
{
	char frame[DEEP_BYTES];
	int below;

	memset(frame, n, sizeof frame);
	__asm__ volatile("" : : "r"(frame) : "memory");
	below = n ? deep(n - 1) : 0;
	__asm__ volatile("" : : "r"(frame) : "memory");
	return below + frame[0];
}

#endif
