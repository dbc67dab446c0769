/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How much room x86_64_linked.S needs to save every vector register that a call may pass an argument in. */
#include "arch/vectors.h"

size_t weft__xsave_bytes = 512 + 64; /* what fxsave writes, and the header that xsave adds */
bool weft__has_xsave;
bool weft__has_avx;

#if defined(__x86_64__)
#include <cpuid.h>

/* Which registers the kernel saves when it switches threads. Only where OSXSAVE is set. */
static unsigned saved_by_kernel(void)
{
	unsigned low, high;

	__asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return low;
}

void weft__vectors_measure(void)
{
	enum { OSXSAVE = 1 << 27, AVX = 1 << 28, SSE_AND_AVX = 6 };
	static const unsigned parts[] = {2, 5, 6, 7}; /* upper halves: AVX; AVX-512: masks, upper, registers 16 to 31 */
	unsigned a, b, c, d;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return;
	weft__has_avx = c & AVX && (saved_by_kernel() & SSE_AND_AVX) == SSE_AND_AVX;
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		/* Where the part lies in the area, and how long it is; zero where there is none. */
		if (__get_cpuid_count(0xd, parts[i], &a, &b, &c, &d) && a && b + a > weft__xsave_bytes)
			weft__xsave_bytes = b + a;
	weft__has_xsave = true;
}
#else
void weft__vectors_measure(void)
{
	weft__has_avx = true; /* nothing needs to be asked for */
}
#endif
