/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Never instrumented. */
#include "needed.h"

#define HERE(name)                                                                                                     \
	void *name(void)                                                                                               \
	{                                                                                                              \
		return __builtin_frame_address(0);                                                                     \
	}
HERE(small)
HERE(listed)
HERE(unsaid)

/* It does need much. */
void *roomy(void)
{
	volatile char all[1900];

	for (unsigned i = 0; i < sizeof all; i++)
		all[i] = 1;
	return __builtin_frame_address(0);
}

long small_sum(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return a + b + c + d + e + f + g + h;
}
