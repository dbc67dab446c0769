/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations that fault.c and exhausted.c share. All of these functions are async-signal-safe. */
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
/* Write the line that says which stack overflowed, and the remedy. */
void weft__report_overflow(const struct weft__slot *slot, const void *owner, const char *address);

/* Functions of a layer above that knows more about stacks. */
struct weft__fault_above {
	/* The text of a remedy for an overflow of the owner's stack, up to a number; NULL: the usual text. */
	const char *(*remedy)(const void *owner);
	/* Is the address in the guard of one of its own stacks? Then it has written the line. */
	bool (*reports)(const char *address);
};
WEFT_API extern _Atomic(const struct weft__fault_above *) weft__fault_above;

/* exhausted.c: the stack cannot grow. True: a coroutine fails, once the handler has returned. False: the failure was
 * reported, and the process must end. */
WEFT__OF_FAILING bool weft__fault_spent(const struct weft__slot *slot, void *owner, char *address, enum weft__spent why,
					void *context);
/* The number of coroutines that have failed. */
WEFT__OF_FAILING size_t weft__fault_failures(void);

#endif
