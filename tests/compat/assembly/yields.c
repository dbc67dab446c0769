/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A coroutine that reads its identity once, and then yields the requested number of times. BY_FRAME: switches through a
 * pointer that is certainly in the frame. */
#include "seff.h"

void *yields(void *count);

#ifdef BY_FRAME
static inline void yield_by(seff_coroutine_t *k)
{
	seff_coroutine_t *volatile in_frame = k;

	weft_arch_yield(&seff__core(in_frame)->link, &weft_suspended, NULL);
}
#else
static inline void yield_by(seff_coroutine_t *k)
{
	seff_yield(k, 0, NULL);
}
#endif

static unsigned long yields_of_all;

void *yields(void *count)
{
	seff_coroutine_t *self = seff_current_coroutine();
	unsigned long sum = 0;

	for (unsigned long i = 0; i < (unsigned long)(uintptr_t)count; i++) {
		sum += i * i;
		yields_of_all++;
		yield_by(self);
	}
	return (void *)(uintptr_t)(sum + yields_of_all);
}
