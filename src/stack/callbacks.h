/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions that the stack layer calls and the layer above defines. The stack layer keeps room for an object in each
 * slot and knows its owner, without knowing the types of either; the coroutine layer defines these functions. Functions
 * marked * run in the fault handler and must be async-signal-safe.
 */
#ifndef WEFT_SRC_STACK_CALLBACKS_H
#define WEFT_SRC_STACK_CALLBACKS_H

#include <stdbool.h>
#include <stdint.h>
#include <weft/stack.h>

#ifdef WEFT_FREESTANDING
enum { WEFT__SPARE_ENDS = 64 }; /* a multiple of 64 */
#else
enum { WEFT__SPARE_ENDS = 4096 };
#endif
enum { WEFT__OBJECT_BYTES = 256, WEFT__OWNER_BYTES = 2560, WEFT__OWNER_RESERVE = WEFT__SPARE_ENDS * 80 + 512 };

/* WEFT__OWNER_RESERVE bytes for the layer above, zero at first and the same for all threads, for use when the system
 * has no memory. NULL only while there is no slot. */
void *weft__owner_reserve(void);

/* Mark the object of a fresh slot, all zero, as unused. */
void weft__object_clear(void *object);

/* The calling thread is about to lose its record, including `owner` of struct weft__thread. */
void weft__owner_detach(void);

/* * The owner whose code the calling thread runs at `sp`, NULL outside of any; and the slot of its frames, NULL if they
 * are in no slot. */
struct weft__slot;
const void *weft__owner_running(const char *sp, const struct weft__slot **slot);

/* * The name and number of an owner, for a message. */
void weft__owner_describe(const void *owner, const char **name, uint64_t *id);

/* * The offset in an owner that a resume reads first; and the function that reports a resume of NULL. */
extern const size_t weft__owner_read_first;
void weft__owner_report_null(void);

/* * The offsets in an owner that a use of a resumption reads; it reads two words of the resumption, too. And the
 * function that reports a NULL resumption: does not return. */
extern const size_t weft__owner_id_at, weft__owner_serial_at;
void weft__owner_die_no_resumption(void *unused);

/* * The function that the last owner in the slot was made to run, if its frames begin in the slot; the slot has memory.
 * NULL if that is unknown. */
const void *weft__owner_function(const struct weft__slot *slot);

/* * The running owner's code called NULL, and would have returned to `from`. Was the owner made with NULL as its
 * function? */
bool weft__owner_lacks_function(const void *owner, const void *from);
/* Report that the owner's function is NULL. Does not return. */
void weft__owner_die_no_function(void *owner);

/* * Is the owner running the functions to be called at its end, so that it may use the reserve for them? */
bool weft__owner_ends(const void *owner);

/*
 * * The stack of `owner` cannot grow, for this reason, at `address`; the calling thread was interrupted running at
 * `sp`. Decide which owner fails. Returns the argument for weft__owner_fail, which is to be called on the stack below
 * *sp in the frame of *fp, once the handler returned; NULL if no owner can fail, because the thread is not on a
 * coroutine's stack.
 */
enum weft__spent { WEFT__SPENT_BUDGET = 1, WEFT__SPENT_RESERVATION, WEFT__SPENT_MEMORY, WEFT__SPENT_REASONS };
void *weft__owner_choose(void *owner, const char *address, enum weft__spent why, char **sp, void **fp);
void weft__owner_fail(void *victim);

/* The running stack, `self`, cannot grow, for this reason; not from a signal handler. It fails, as above; if it is a
 * thread's root, the process ends with the overflow message. */
struct weft_link;
WEFT__NORETURN void weft__owner_spent(struct weft_link *self, const char *address, enum weft__spent why);

#endif
