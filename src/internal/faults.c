/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "internal/faults.h"

#ifdef WEFT_INJECT_FAULTS
#include <stdatomic.h>
#include <stdlib.h>

bool weft__inject_fault(void)
{
	static atomic_long every = -1;
	static atomic_ulong calls;
	long n = atomic_load_explicit(&every, memory_order_relaxed); /* a constant once read */

	if (n < 0) {
		const char *text = getenv("WEFT_FAIL_EVERY");

		n = text ? atol(text) : 0;
		atomic_store_explicit(&every, n, memory_order_relaxed);
	}
	/* Only the count matters, not what it is ordered with. */
	return n > 0 &&
	       atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) % (unsigned long)n == (unsigned long)n - 1;
}
#else
typedef int weft__translation_unit_is_not_empty;
#endif
