/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the coroutine layer share about coroutines whose frames are moved in and out of a region. */
#ifndef WEFT_SRC_CORO_COPYING_H
#define WEFT_SRC_CORO_COPYING_H

#include "coro/coro.h"
#include "stack/buffers.h"
#include "stack/copy.h"

WEFT__STATIC_ASSERT((int)WEFT__COPYING == WEFT_FLAG_COPYING, "edit arch/region.h");

/* Has there ever been one? */
extern atomic_bool weft__copying_used;

/* Only if k's flags have WEFT__COPYING. */
static inline struct weft__copied *weft__copied_of(const weft_coro_t *k)
{
	return (struct weft__copied *)k->slot;
}

static inline bool weft__slot_is_record(const struct weft__slot *slot)
{
	return slot->chunk.low == (const char *)slot;
}

/* Assembly, and what it calls. */
WEFT__HIDDEN void weft__land_copying(void);
WEFT__HIDDEN void weft__return_copying(void);
WEFT__HIDDEN bool weft__enter_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__leave_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__fail_copying(weft_coro_t *k);

/* Start over at the entry, with no frames. */
void weft__arm_copying(weft_coro_t *k);
/* It has come to its end. */
void weft__abandon_copied(weft_coro_t *k);
/* It is deleted or starts over. */
void weft__forget_copied(weft_coro_t *k);
void weft__before_through(weft_coro_t *k, weft_coro_t *self);

/* With the region held. An image of the frames of c, parked, as they are now: kept by c as well. NULL: no memory. */
struct weft__image *weft__image_of(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* With the region held: the frames of c, parked, get to lie there. False: no memory. */
bool weft__bring_in(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* Another image with the same frames. NULL: no memory. */
struct weft__image *weft__image_again(struct weft__thread *me, const struct weft__image *image);
/* Let an image go while others run in its region. */
void weft__image_drop_later(struct weft__region *region, struct weft__image *image);

void weft__imitate(weft_coro_t *c, const weft_coro_t *k);
/* weft_clone_into without its short cut. */
int weft__clone_into(weft_coro_t *c, weft_coro_t *k);
/* Make c a clone of k in the region, if both belong there, k's frames do not lie there and nobody runs there. */
bool weft__clone_in_place(weft_coro_t *c, const weft_coro_t *k, int *error);

/* The new object in a slot, suspended before its first resume (coro.c). */
void weft__set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread, weft_fn_t *fn, void *arg);

/* The slot that its frames lie in: its own or its region; NULL before its first resume. */
const struct weft__slot *weft__stack_of(const weft_coro_t *k);

#endif
