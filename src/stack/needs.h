/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The stack that coroutines of a function needed before. `commit` asks when a stack faults, so creating, resuming and
 * deleting coroutines costs nothing more. Async-signal-safe and lock-free.
 */
#ifndef WEFT_SRC_STACK_NEEDS_H
#define WEFT_SRC_STACK_NEEDS_H

#include "stack/policy.h"

/*
 * A coroutine of `function` needs `pages` of its slot now, counted from the slot's end. Returns how many should be
 * open, at least `pages`; 0 if nothing is known about stacks so deep. The slot is noted, and its depth is measured
 * later.
 */
size_t weft__needs_guess(const void *function, struct weft__slot *slot, size_t pages);

/* The slot, which is free, is about to lose its memory. */
void weft__needs_before_drop(struct weft__slot *slot);

#endif
