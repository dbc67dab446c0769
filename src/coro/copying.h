/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the coroutine layer, for coroutines whose frames are moved in and out of a
 * region. */
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

/* k's flags must have one of WEFT__COPIED. */
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
	/* Relaxed: only this thread writes the count. */
	uint64_t sum = atomic_load_explicit(&me->copied, memory_order_relaxed) + bytes;

	atomic_store_explicit(&me->copied, sum, memory_order_relaxed);
}

typedef long long weft__half_line __attribute__((vector_size(32), may_alias));

/* Both addresses are 64-aligned. A line fits in two registers of the widest kind that needs no warming up. */
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

/* Exchange the contents of `a` and `b`. */
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

/* The lowest line that frames down to `sp` use. A coroutine that suspends has no red zone. */
static inline char *weft__lowest(const char *sp)
{
	return (char *)((uintptr_t)(sp + WEFT_CANARY_OR(the_lowest_frames_are_lost, 256, 0)) & ~(uintptr_t)63);
}

/* True if a coroutine whose stack pointer is `sp` has no frames: it never ran, or was restored to a checkpoint before
 * its first resume. */
static inline bool weft__has_no_frames(struct weft__region *region, const char *sp)
{
	return !region || sp == weft__region_top(region);
}

/* Defined in assembly, or called by it. */
WEFT__HIDDEN void weft__return_copying(void);
WEFT__HIDDEN void weft__return_parked(void);
WEFT__HIDDEN bool weft__enter_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__leave_copying(weft_coro_t *k);
WEFT__HIDDEN void weft__fail_copying(weft_coro_t *k);

/* Report that k cannot be resumed, because a coroutine that runs, on this thread or another thread, occupies its
 * region. */
WEFT__COLD _Noreturn void weft__die_occupied(const weft_coro_t *k, const struct weft__region *region);
WEFT__COLD _Noreturn void weft__die_deadlock(const weft_coro_t *k);

/* Make k start over at its entry, without frames. */
WEFT__OF_COPY void weft__arm_copying(weft_coro_t *k);
/* Called when k has finished. */
WEFT__OF_COPY void weft__abandon_copied(weft_coro_t *k);
/* Called when k is deleted or starts over. */
WEFT__OF_COPY void weft__forget_copied(weft_coro_t *k);
/* End k, which is suspended, without resuming it. Possible if the only cleanups of its chain are bodies of weft_run,
 * and these bodies can be ended in the same way. The regions of the chain may be occupied. Returns false, and changes
 * nothing, if it is not possible. */
WEFT__OF_COPY bool weft__end_in_place(weft_coro_t *k);
/* Implements weft_peek and weft_poke. */
WEFT__OF_COPY int weft__move_copied(weft_coro_t *k, char *at, void *here, size_t bytes, bool writes);
WEFT__OF_COPY void weft__park_switched(weft_coro_t *from);
WEFT__OF_COPY void weft__before_through(weft_coro_t *k, weft_coro_t *self);

/* The region must be held. Make an image of the current frames of c, which is parked; c holds the image too. Returns
 * NULL if there is no memory. */
struct weft__image *weft__image_of(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* The region must be held. Move the frames of c, which is parked, into the region. Returns false if there is no
 * memory. */
bool weft__bring_in(struct weft__thread *me, struct weft__region *region, struct weft__copied *c);
/* Make an image with these frames. Returns NULL if there is no memory. */
struct weft__image *weft__image_with(struct weft__thread *me, const char *frames, size_t bytes);
/* Release c's image. `before` is the result of weft__region_hold. */
void weft__image_let_go(struct weft__thread *me, struct weft__copied *c, int before);
/* Copy the frames down to `sp` out of the region. */
void weft__frames_out(struct weft__thread *me, struct weft__region *region, const char *sp, char *to);
/* Copy frames that end at `sp` into the region. `was` is the end of the frames that are in the region now, or NULL. */
void weft__frames_in(struct weft__thread *me, struct weft__region *region, const char *was, const char *sp,
		     const char *frames, size_t bytes);
/* Release an image while other threads may use its region. */
void weft__image_drop_later(struct weft__region *region, struct weft__image *image);

/* This thread must hold the region, in which no coroutine runs, and the frames of `from` must not be in it. Replace the
 * frames of `to` by those of `from` in the region. Returns false if there is no memory. */
bool weft__overwrite(struct weft__thread *me, struct weft__region *region, struct weft__copied *to,
		     struct weft__copied *from);
/* Make c a clone of k, except for its frames. `c` has an object, and owns nothing that must be freed. */
void weft__imitate(weft_coro_t *c, const weft_coro_t *k);
/* 0, or the negative errno that says why k has neither clones nor checkpoints. */
int weft__refusal(const weft_coro_t *k);
/* Make k share its region again, if it is secluded. k must be suspended or finished. */
void weft__end_seclusion(struct weft__thread *me, weft_coro_t *k);
/* Drop c's checkpoints. */
void weft__drop_points(struct weft__thread *me, struct weft__copied *c);
/* The address that the saved stack pointer of a suspended coroutine points to. The spare is the landing of the first
 * thread; a thread uses the spare when there is no memory for a landing of its own. */
char *weft__landing(void);
extern char *weft__landing_spare;
/* True if clone_fast.c may use its fast paths. */
extern bool weft__tries_fast;
/* weft_clone_into without the fast path. */
int weft__clone_into(weft_coro_t *c, weft_coro_t *k);
/* Make c a clone of k in the region. Requires that both use this region, that k's frames are not in it, and that no
 * coroutine runs in it. */
bool weft__clone_in_place(weft_coro_t *c, const weft_coro_t *k, int *error);

/* Initialize the object in a slot, suspended before its first resume (coro.c). */
void weft__set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread, weft_fn_t *fn, void *arg);

/* The slot that contains k's frames: its own slot or its region; NULL before its first resume. */
const struct weft__slot *weft__stack_of(const weft_coro_t *k);

#endif
