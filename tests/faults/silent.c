/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An overflow of the thread's own stack, which Weft does not manage: a bare SIGSEGV is no report. */
#include <stddef.h>

__attribute__((noinline)) static size_t recurse(size_t depth)
{
	volatile char frame[256];

	frame[0] = (char)depth;
	return recurse(depth + 1) + (size_t)frame[0];
}

int main(void)
{
	return (int)recurse(0);
}
