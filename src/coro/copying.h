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

static inline void weft__count_copied(struct weft__thread *me, size_t bytes)
{
	/* Only this thread writes it. */
	uint64_t sum = atomic_load_explicit(&me->copied, memory_order_relaxed) + bytes;

	atomic_store_explicit(&me->copied, sum, memory_order_relaxed);
}

/* The lowest line that frames down to `sp` may use. */
static inline char *weft__lowest(struct weft__region *region, const char *sp)
{
	char *low = (char *)((uintptr_t)(sp - WEFT__RED_ZONE) & ~(uintptr_t)63);

	return weft__likely(low >= weft__region_slot(region)->chunk.low) ? low : weft__region_slot(region)->chunk.low;
}

/* Assembly, and what it calls. */
WEFT__HIDDEN void weft__land_copying(void);
WEFT__HIDDEN void weft__return_copying(void);
WEFT__HIDDEN bool weft__enter_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__leave_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__fail_copying(weft_coro_t *k);

/* k cannot be resumed: a coroutine that runs, on this thread or another, has its region. */
WEFT__COLD _Noreturn void weft__die_occupied(const weft_coro_t *k, const struct weft__region *region);
WEFT__COLD _Noreturn void weft__die_deadlock(const weft_coro_t *k);

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

/* With the region held by this thread, nobody running there, and `from` elsewhere: the frames of `to` become, in place,
 * those of `from`. False: no memory. */
bool weft__overwrite(struct weft__thread *me, struct weft__region *region, struct weft__copied *to,
		     struct weft__copied *from);
/* What a clone is but for its frames: `c` has an object, and nothing that would have to be given back. */
void weft__imitate(weft_coro_t *c, const weft_coro_t *k);
/* Where a suspended one's saved stack pointer points. */
char *weft__landing(void);
/* May search.c take its short cuts? */
extern bool weft__tries_fast;
/* weft_clone_into without its short cut. */
int weft__clone_into(weft_coro_t *c, weft_coro_t *k);
/* Make c a clone of k in the region, if both belong there, k's frames do not lie there and nobody runs there. */
bool weft__clone_in_place(weft_coro_t *c, const weft_coro_t *k, int *error);

/* The new object in a slot, suspended before its first resume (coro.c). */
void weft__set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread, weft_fn_t *fn, void *arg);

/* The slot that its frames lie in: its own or its region; NULL before its first resume. */
const struct weft__slot *weft__stack_of(const weft_coro_t *k);

#endif
