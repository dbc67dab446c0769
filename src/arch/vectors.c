/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The room that x86_64_linked.S needs to save each vector register in which a call may pass an argument. */
#include "arch/vectors.h"

size_t weft__xsave_bytes = 512 + 64; /* the area of fxsave, and the header that xsave adds */
bool weft__has_xsave;
bool weft__has_avx;

#if defined(__x86_64__)
#include <cpuid.h>

/* The registers that the kernel saves when it switches threads. Valid only if OSXSAVE is set. */
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
		/* The offset of the part in the area, and its length; zero if there is no such part. */
		if (__get_cpuid_count(0xd, parts[i], &a, &b, &c, &d) && a && b + a > weft__xsave_bytes)
			weft__xsave_bytes = b + a;
	weft__has_xsave = true;
}
#else
void weft__vectors_measure(void)
{
	weft__has_avx = true; /* always available */
}
#endif
