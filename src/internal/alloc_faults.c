/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "internal/alloc_faults.h"

#ifdef WEFT_INJECT_FAULTS
#include <stdatomic.h>
#include <stdlib.h>

static atomic_ulong failed;

bool weft__inject_fault(void)
{
	static atomic_long every = -1;
	static atomic_ulong calls;
	long n = atomic_load_explicit(&every, memory_order_relaxed); /* relaxed: constant after the first call */

	if (n < 0) {
		const char *text = getenv("WEFT_FAIL_EVERY");

		n = text ? atol(text) : 0;
		atomic_store_explicit(&every, n, memory_order_relaxed);
	}
	/* Relaxed: only the counts matter, not their order with other accesses. */
	if (n <= 0 || (atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed) + 1) % (unsigned long)n)
		return false;
	atomic_fetch_add_explicit(&failed, 1, memory_order_relaxed);
	return true;
}

unsigned long weft__injected_faults(void)
{
	return atomic_load_explicit(&failed, memory_order_relaxed);
}
#else
typedef int weft__translation_unit_is_not_empty;
#endif
