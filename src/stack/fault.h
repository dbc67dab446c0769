/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What fault.c and exhausted.c share. Async-signal-safe, all of it. */
#ifndef WEFT_SRC_STACK_FAULT_H
#define WEFT_SRC_STACK_FAULT_H

#include <stdatomic.h>
#include <weft/base.h>

#include "internal/link_part.h"
#include "stack/policy.h"

struct weft__line;

/* "WHAT coroutine …"; ": POLICY, SIZE reserved; fault at ADDRESS" */
void weft__line_owner(struct weft__line *line, const char *what, const void *owner);
void weft__line_stack(struct weft__line *line, const struct weft__slot *slot, const char *address);
/* The line that says what overflowed, and what to do. */
void weft__report_overflow(const struct weft__slot *slot, const void *owner, const char *address);

/* A layer above may know more of stacks. */
struct weft__fault_above {
	/* The words that say what to do against an overflow of the owner's stack, up to a number; NULL: as usual. */
	const char *(*remedy)(const void *owner);
	/* Is the address in the guard of a stack of its own? Then the line has been written. */
	bool (*reports)(const char *address);
};
WEFT_API extern _Atomic(const struct weft__fault_above *) weft__fault_above;

/* exhausted.c: the stack cannot grow. True: a coroutine fails, once the handler has returned. False: that was
 * reported, the process is to end. */
WEFT__OF_FAILING bool weft__fault_spent(const struct weft__slot *slot, void *owner, char *address, enum weft__spent why,
					void *context);
/* How many coroutines have failed. */
WEFT__OF_FAILING size_t weft__fault_failures(void);

#endif
