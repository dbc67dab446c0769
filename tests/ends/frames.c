/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "frames.h"

#include <string.h>
#include <weft/weft.h>

#define RUN(run, arg) ((run)(arg), (void)({ __asm__ volatile(""); })) /* no tail call */

void frame_plain(void (*run)(void *), void *arg)
{
	char some[100];

	memset(some, 1, sizeof some);
	__asm__ volatile("" : : "r"(some) : "memory");
	RUN(run, arg);
}

void frame_holding(void (*deferred)(void *), void *what, void (*run)(void *), void *arg)
{
	weft_defer(deferred, what);
	RUN(run, arg);
}

static __attribute__((noinline)) void in_a_loop(void *(*take)(void), void (*give)(void *), void (*run)(void *),
						void *arg)
{
	for (int i = 0; i < 3; i++) {
		weft_defer(give, take());
		if (i < 2)
			continue;
		weft_defer(give, take());
		RUN(run, arg);
	}
}

void frame_deferring(int shape, void *(*take)(void), void (*give)(void *), void (*run)(void *), void *arg)
{
	weft_defer(give, take());
	if (shape == FRAME_LOOP) {
		in_a_loop(take, give, run, arg);
		return;
	}
	if (shape == FRAME_TWO) {
		weft_defer(give, take());
		RUN(run, arg);
		return;
	}
	RUN(run, arg);
}
