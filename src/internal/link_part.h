/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Parts of the library that a program may be linked without: stack/policies.c says how.
 *
 * Functions of a part that files outside of it call are declared with WEFT__OF_ and the part's name. For those files
 * the reference is weak: it does not link the part, and is NULL without it. Files of the part define WEFT__PART_ and
 * its name before they include anything, and see plain declarations.
 */
#ifndef WEFT_SRC_INTERNAL_LINK_PART_H
#define WEFT_SRC_INTERNAL_LINK_PART_H

#include <weft/base.h>

#ifdef WEFT_CANARY_every_reference_brings_its_part_in
#define WEFT__MAY_BE_ABSENT
#else
/* The visibility is the default: gold exports an undefined weak symbol that is hidden, and the dynamic linker resolves
 * such a symbol to the address of the program's ELF header, not to NULL. */
#define WEFT__MAY_BE_ABSENT __attribute__((weak, visibility("default")))
#endif

/* For a file that needs a part, but does not call its functions itself: makes the linker look for the function. */
#define WEFT__BRINGS(function)                                                                                         \
	__attribute__((used)) static __typeof__(function) *const weft__brings_##function = function

#ifdef WEFT__PART_COPY
#define WEFT__OF_COPY WEFT__HIDDEN
#else
#define WEFT__OF_COPY WEFT__MAY_BE_ABSENT
#endif

#ifdef WEFT__PART_LINKED
#define WEFT__OF_LINKED
#else
#define WEFT__OF_LINKED WEFT__MAY_BE_ABSENT
#endif

#ifdef WEFT__PART_HEAP
#define WEFT__OF_HEAP
#else
#define WEFT__OF_HEAP WEFT__MAY_BE_ABSENT
#endif

/* weft_on_answer: coro/answer_hooks.c, effect/then.c. */
#ifdef WEFT__PART_THENS
#define WEFT__OF_THENS
#else
#define WEFT__OF_THENS WEFT__MAY_BE_ABSENT
#endif

/* The loop that decides about requests: effect/handler.c. */
#ifdef WEFT__PART_DECIDING
#define WEFT__OF_DECIDING
#else
#define WEFT__OF_DECIDING WEFT__MAY_BE_ABSENT
#endif

/* Ends of suspended coroutines, and of coroutines that are left: coro/ends.c. */
#ifdef WEFT__PART_ENDS
#define WEFT__OF_ENDS
#else
#define WEFT__OF_ENDS WEFT__MAY_BE_ABSENT
#endif

/* Coroutines that keep more than registers: coro/saving.c. For coroutines with attributes, and copy. */
#ifdef WEFT__PART_SAVING
#define WEFT__OF_SAVING WEFT__HIDDEN
#else
#define WEFT__OF_SAVING WEFT__MAY_BE_ABSENT
#endif

/* Coroutines whose stacks cannot grow: coro/fail.c, stack/exhausted.c. For commit, linked and copy. */
#ifdef WEFT__PART_FAILING
#define WEFT__OF_FAILING
#else
#define WEFT__OF_FAILING WEFT__MAY_BE_ABSENT
#endif

/* Stacks in memory of the caller's: stack/caller_memory.c, for coroutines with attributes. */
#ifdef WEFT__PART_CALLERS
#define WEFT__OF_CALLERS
#else
#define WEFT__OF_CALLERS WEFT__MAY_BE_ABSENT
#endif

/* stack/buffers.c, for the parts that need buffers. */
#ifdef WEFT__PART_BUFFERS
#define WEFT__OF_BUFFERS
#else
#define WEFT__OF_BUFFERS WEFT__MAY_BE_ABSENT
#endif

#endif
