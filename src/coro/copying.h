/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the coroutine layer share about coroutines whose frames are moved in and out of a region. */
#ifndef WEFT_SRC_CORO_COPYING_H
#define WEFT_SRC_CORO_COPYING_H

#include <weft/copy.h>

#include "coro/coro.h"
#include "arch/vectors.h"
#include "stack/buffers.h"
#include "stack/copy.h"

WEFT__STATIC_ASSERT((int)WEFT__COPYING == WEFT_FLAG_COPYING, "edit arch/region.h");
WEFT__STATIC_ASSERT((int)WEFT__SECLUDED == 1 << WEFT_SECLUDED_BIT, "edit arch/region.h");

enum { WEFT__COPIED = WEFT__COPYING | WEFT__SECLUDED };

/* Only if k's flags have one of WEFT__COPIED. */
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

typedef long long weft__half_line __attribute__((vector_size(32), may_alias));

/* Both 64-aligned, whole lines. Two registers of the widest kind that needs no warming up hold one. */
WEFT__AVX __attribute__((always_inline)) static inline void weft__move_line(char *to, const char *from)
{
	weft__half_line low = *(const weft__half_line *)from, high = *(const weft__half_line *)(from + 32);

	*(weft__half_line *)to = low;
	*(weft__half_line *)(to + 32) = high;
}

WEFT__AVX __attribute__((always_inline)) static inline void weft__move_lines(char *to, const char *from, size_t bytes)
{
	size_t i = bytes & 64;

	if (i)
		weft__move_line(to, from);
	for (; i < bytes; i += 128) {
		weft__move_line(to + i, from + i);
		weft__move_line(to + i + 64, from + i + 64);
	}
}

/* What lies in the one goes to the other. */
WEFT__AVX __attribute__((always_inline)) static inline void weft__trade_lines(char *a, char *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i += 64) {
		weft__half_line low = *(weft__half_line *)(a + i), high = *(weft__half_line *)(a + i + 32);

		weft__move_line(a + i, b + i);
		if (WEFT_NO_CANARY(frames_change_places_by_half))
			*(weft__half_line *)(b + i) = low;
		*(weft__half_line *)(b + i + 32) = high;
	}
}

/* The lowest line that frames down to `sp` use: whoever suspends has no red zone. */
static inline char *weft__lowest(const char *sp)
{
	return (char *)((uintptr_t)(sp + WEFT_CANARY_OR(the_lowest_frames_are_lost, 256, 0)) & ~(uintptr_t)63);
}

/* One whose stack pointer is `sp` has no frames: it never ran, or went back to before its first resume. */
static inline bool weft__has_no_frames(struct weft__region *region, const char *sp)
{
	return !region || sp == weft__region_top(region);
}

/* Assembly, and what it calls. */
WEFT__HIDDEN void weft__return_copying(void);
WEFT__HIDDEN void weft__return_parked(void);
WEFT__HIDDEN bool weft__enter_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__leave_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__fail_copying(weft_coro_t *k);

/* k cannot be resumed: a coroutine that runs, on this thread or another, has its region. */
WEFT__COLD _Noreturn void weft__die_occupied(const weft_coro_t *k, const struct weft__region *region);
WEFT__COLD _Noreturn void weft__die_deadlock(const weft_coro_t *k);

/* Start over at the entry, with no frames. */
WEFT__OF_COPY void weft__arm_copying(weft_coro_t *k);
/* It has come to its end. */
WEFT__OF_COPY void weft__abandon_copied(weft_coro_t *k);
/* It is deleted or starts over. */
WEFT__OF_COPY void weft__forget_copied(weft_coro_t *k);
/* End k, suspended, without resuming it, if nothing is deferred in its chain except the bodies of weft_run, and these
 * bodies can be ended in the same way. The regions of the chain may be occupied. False: nothing happened. */
WEFT__OF_COPY bool weft__end_in_place(weft_coro_t *k);
/* weft_peek, weft_poke. */
WEFT__OF_COPY int weft__move_copied(weft_coro_t *k, char *at, void *here, size_t bytes, bool writes);
WEFT__OF_COPY void weft__park_switched(weft_coro_t *from);
WEFT__OF_COPY void weft__before_through(weft_coro_t *k, weft_coro_t *self);

/* With the region held. An image of the frames of c, parked, as they are now: kept by c as well. NULL: no memory. */
struct weft__image *weft__image_of(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* With the region held: the frames of c, parked, get to lie there. False: no memory. */
bool weft__bring_in(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* A new image with these frames. NULL: no memory. */
struct weft__image *weft__image_with(struct weft__thread *me, const char *frames, size_t bytes);
/* c needs its image no more. `before`: what weft__region_hold returned. */
void weft__image_let_go(struct weft__thread *me, struct weft__copied *c, int before);
/* Copy the frames down to `sp`, which are in the region. */
void weft__frames_out(struct weft__thread *me, struct weft__region *region, const char *sp, char *to);
/* Put frames, which end at `sp`, into the region; those that lie there now end at `was`, if they do. */
void weft__frames_in(struct weft__thread *me, struct weft__region *region, const char *was, const char *sp,
		     const char *frames, size_t bytes);
/* Let an image go while others run in its region. */
void weft__image_drop_later(struct weft__region *region, struct weft__image *image);

/* With the region held by this thread, nobody running there, and `from` elsewhere: the frames of `to` become, in place,
 * those of `from`. False: no memory. */
bool weft__overwrite(struct weft__thread *me, struct weft__region *region, struct weft__copied *to,
		     struct weft__copied *from);
/* What a clone is but for its frames: `c` has an object, and nothing that would have to be given back. */
void weft__imitate(weft_coro_t *c, const weft_coro_t *k);
/* 0, or why it has neither clones nor checkpoints. */
int weft__refusal(const weft_coro_t *k);
/* k shares its region again, if it does not. Suspended or finished. */
void weft__end_seclusion(struct weft__thread *me, weft_coro_t *k);
/* Forget its checkpoints. */
void weft__drop_points(struct weft__thread *me, struct weft__copied *c);
/* Where a suspended one's saved stack pointer points; and the first that there was, for threads that have no memory for
 * one of their own. */
char *weft__landing(void);
extern char *weft__landing_spare;
/* May clone_fast.c take its short cuts? */
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
