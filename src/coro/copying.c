/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines whose frames are moved in and out of a shared region (stack/copy.h says when, and how threads share one).
 *
 * Such a coroutine's pc is weft__land_copying while it is suspended; its parent_pc is weft__return_copying while it
 * runs. Both call the functions here on the thread's landing: a stack of their own. The saved stack pointer of a
 * suspended one points there too, because a signal may arrive between the load of the stack pointer and the landing,
 * when the region still holds another's frames. (The landing is the one of the thread that suspended it. Another thread
 * that resumes it uses that for two instructions, well below what the first one's functions use: only if both threads
 * are interrupted exactly there do they meet.)
 *
 * A chain that is suspended from below may have such coroutines inside: then its outermost one takes part, whatever its
 * own policy is, until it is resumed (WEFT__THROUGH).
 */
#define WEFT__PART_COPY
#define WEFT__PART_SAVING
#include "coro/copying.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/vectors.h"
#include "internal/valgrind.h"

const char weft__with_copy;

enum { BY_LINES = 2048 }; /* more than that memcpy moves faster */

/* ---- moving frames --------------------------------------------------------------------------------------------- */

WEFT__AVX static void copy_lines_avx(char *to, const char *from, size_t bytes)
{
	weft__move_lines(to, from, bytes);
}

bool weft__tries_fast;

static inline void copy_lines(char *to, const char *from, size_t bytes)
{
	if (weft__unlikely(bytes > BY_LINES || !weft__has_avx))
		memcpy(to, from, bytes);
	else
		copy_lines_avx(to, from, bytes);
}

static inline void drop_image(struct weft__thread *me, struct weft__image *image)
{
	if (!--image->holders)
		weft__buffer_give(me, image, image->class, sizeof *image + image->bytes);
}

static inline struct weft__image *new_image(struct weft__thread *me, size_t bytes)
{
	unsigned class = weft__buffer_class(sizeof(struct weft__image) + bytes);
	struct weft__image *image = weft__buffer_take(me, class, sizeof *image + bytes);

	if (weft__unlikely(!image))
		return NULL;
	image->holders = 1;
	atomic_init(&image->late, 0);
	image->class = class;
	image->bytes = bytes;
	return image;
}

/* What is copied although no frame has it. */
static WEFT__COLD void reveal(char *low, size_t bytes)
{
	(void)low;
	(void)bytes;
	VALGRIND_MAKE_MEM_UNDEFINED(low, bytes);
}

void weft__frames_out(struct weft__thread *me, struct weft__region *region, const char *sp, char *to)
{
	char *low = weft__lowest(sp);
	size_t bytes = (size_t)(weft__region_top(region) - low);

	if (weft__unlikely(weft__on_memcheck))
		reveal(low, (size_t)(sp - low));
	copy_lines(to, low, bytes);
	weft__count_copied(me, bytes);
}

/* An image of what lies in the region. */
static inline struct weft__image *take_image(struct weft__thread *me, struct weft__region *region, const char *sp)
{
	struct weft__image *image = new_image(me, (size_t)(weft__region_top(region) - weft__lowest(sp)));

	if (weft__likely(image))
		weft__frames_out(me, region, sp, image->frames);
	return image;
}

static WEFT__COLD bool changed(struct weft__region *region, const struct weft__image *image)
{
	/* Memcheck would complain about bytes that nobody wrote. */
	return weft__on_memcheck || memcmp(weft__region_top(region) - image->bytes, image->frames, image->bytes) != 0;
}

/* The occupant leaves the region: what it may still need gets an image. */
static inline bool save_occupant(struct weft__thread *me, struct weft__region *region)
{
	struct weft__copied *c = region->occupant;
	struct weft__image *image;

	if (!c->sp) /* it has ended */
		return true;
	/* With an image (it was cloned) only what was written since, a reply say, makes a new one necessary. */
	if (c->image && (WEFT_CANARY(a_late_reply_is_lost) || weft__likely(!changed(region, c->image))))
		return true;
	image = take_image(me, region, c->sp);
	if (weft__unlikely(!image))
		return false;
	if (c->image)
		drop_image(me, c->image);
	c->image = image;
	return true;
}

static WEFT__COLD void drop_dropped(struct weft__thread *me, struct weft__region *region)
{
	struct weft__image *image = atomic_exchange(&region->dropped, NULL), *next;

	for (; image; image = next) {
		next = image->next;
		/* From here on it may be in the list again. */
		image->holders -= atomic_exchange(&image->late, 0) - 1;
		drop_image(me, image);
	}
}

void weft__image_drop_later(struct weft__region *region, struct weft__image *image)
{
	if (atomic_fetch_add(&image->late, 1)) /* it is in the list */
		return;
	image->next = atomic_load(&region->dropped);
	while (!atomic_compare_exchange_weak(&region->dropped, &image->next, image))
		;
}

struct weft__image *weft__image_of(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	if (!c->image)
		return c->image = take_image(me, region, c->sp);
	if (region->occupant == c && !save_occupant(me, region))
		return NULL;
	return c->image;
}

void weft__image_let_go(struct weft__thread *me, struct weft__copied *c, int before)
{
	if (!c->image)
		return;
	if (before == WEFT__REGION_OTHERS)
		weft__image_drop_later(c->region, c->image);
	else
		drop_image(me, c->image);
	c->image = NULL;
}

struct weft__image *weft__image_with(struct weft__thread *me, const char *frames, size_t bytes)
{
	struct weft__image *image = new_image(me, bytes);

	if (image)
		memcpy(image->frames, frames, bytes);
	return image;
}

#if WEFT_DEBUG
/* Pointers into the stacks of others find this. */
static void poison(char *low, char *high)
{
	if (low < high)
		memset(low, 0xdb, (size_t)(high - low));
}
#else
#define poison(low, high) ((void)(low), (void)(high))
#endif

void weft__frames_in(struct weft__thread *me, struct weft__region *region, const char *was, const char *sp,
		     const char *frames, size_t bytes)
{
	char *top = weft__region_top(region);
	char *low = weft__lowest(sp);

	if (was)
		poison(weft__lowest(was), low);
	if (weft__unlikely(weft__on_memcheck)) {
		VALGRIND_MAKE_MEM_NOACCESS(weft__region_slot(region)->chunk.low,
					   (size_t)(top - weft__region_slot(region)->chunk.low));
		/* It follows the stack pointer with a red zone ahead. */
		VALGRIND_MAKE_MEM_UNDEFINED(sp - 128, (size_t)(top - sp) + 128);
	}
	copy_lines(top - bytes, frames, bytes);
	weft__count_copied(me, bytes);
}

/* The frames of c lie there. */
static inline void occupy(struct weft__region *region, struct weft__copied *c)
{
	region->occupant = c;
	/* Release: the fault handler of any thread reads its name. */
	atomic_store_explicit(&weft__region_slot(region)->owner, c->slot.owner, memory_order_release);
}

/* What weft__entry put there; the frames of an image may have been another's. */
static inline void mark(struct weft__region *region, const struct weft__copied *c)
{
	if (WEFT_NO_CANARY(a_clone_takes_itself_for_the_original))
		*(void **)(weft__region_top(region) - 16) = c->slot.owner;
}

/* Who lay there is gone or saved. */
static inline void load(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	struct weft__image *image = c->image;

	weft__frames_in(me, region, region->occupant ? region->occupant->sp : NULL, c->sp, image ? image->frames : NULL,
			image ? image->bytes : 0);
	if (image)
		mark(region, c);
	occupy(region, c);
}

/* Are the frames of the occupant as long as those of c, and both only where they are? */
static inline bool can_trade(struct weft__region *region, const struct weft__copied *c)
{
	const struct weft__copied *other = region->occupant;

	return weft__tries_fast && c->image && (WEFT_CANARY(shared_frames_change_places) || c->image->holders == 1) &&
	       c->image->bytes <= BY_LINES && other && other->sp && !other->image &&
	       (size_t)(weft__region_top(region) - weft__lowest(other->sp)) == c->image->bytes;
}

/* Then they change places line by line, and the image is the other's. */
WEFT__AVX static void trade(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	struct weft__image *image = c->image;
	size_t bytes = image->bytes;

	weft__trade_lines(weft__region_top(region) - bytes, image->frames, bytes);
	weft__count_copied(me, 2 * bytes);
	region->occupant->image = image;
	c->image = NULL;
	mark(region, c);
	occupy(region, c);
}

/* With the region held: the frames of c, parked, get to lie there. */
static inline bool bring_in(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	if (region->occupant == c)
		return true;
	if (weft__likely(can_trade(region, c))) {
		trade(me, region, c);
		return true;
	}
	if (region->occupant && weft__unlikely(!save_occupant(me, region)))
		return false;
	load(me, region, c);
	return true;
}

bool weft__bring_in(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	return bring_in(me, region, c);
}

/* ---- landing --------------------------------------------------------------------------------------------------- */

/* Its first resume: where will it belong? */
static WEFT__COLD bool settle(struct weft__thread *me, struct weft__copied *c)
{
	const weft_coro_t *resumer;

	c->region = weft__region_lowest(me, c->slot.class);
	if (weft__unlikely(!c->region)) {
		resumer = ((const weft_coro_t *)c->slot.owner)->parent;
		c->region =
		    weft__region_search(me, c->slot.class,
					resumer->flags & WEFT__COPIED ? weft__copied_of(resumer)->region : NULL);
	}
	if (!c->region)
		return false;
	c->sp = weft__region_top(c->region);
	return true;
}

static WEFT__COLD _Noreturn void die_held(const weft_coro_t *k, struct weft__region *region, int before)
{
	if (before == WEFT__REGION_DEADLOCK)
		weft__die_deadlock(k);
	weft__die_occupied(k, region);
}

/* k, parked, is to run. Its stack pointer goes to `head`, who is to be resumed. False: no memory, nothing happened. */
static inline bool place(struct weft__thread *me, weft_coro_t *k, weft_coro_t *head)
{
	struct weft__copied *c = weft__copied_of(k);
	struct weft__region *region;
	bool fresh = !c->region;
	int before;

	do {
		if (weft__unlikely(fresh) && !settle(me, c))
			return false;
		region = c->region;
		before = weft__region_hold(region, me, !fresh);
	} while (weft__unlikely(fresh) && before == WEFT__REGION_OTHERS);
	if (weft__unlikely(before != WEFT__REGION_IDLE)) {
		if (before == WEFT__REGION_RUNNING)
			weft__region_leave(region, me, before);
		die_held(k, region, before);
	}
	region->members += fresh;
	if (weft__unlikely(atomic_load_explicit(&region->dropped, memory_order_relaxed) != NULL))
		drop_dropped(me, region);
	if (weft__unlikely(!bring_in(me, region, c))) {
		weft__region_leave(region, me, WEFT__REGION_IDLE);
		return false;
	}
	if (c->image) { /* what it does now is not in it */
		drop_image(me, c->image);
		c->image = NULL;
	}
	if (head)
		head->link.sp = c->sp;
	c->sp = NULL;
	/* Still ours: nobody takes a region that is not idle. */
	weft__region_leave(region, me, WEFT__REGION_RUNNING);
	return true;
}

/* Everybody from the one that executes next up to k. */
static WEFT__COLD bool place_chain(struct weft__thread *me, weft_coro_t *k)
{
	for (weft_coro_t *c = k->innermost;; c = c->parent) {
		if (c->flags & WEFT__COPYING && !place(me, c, c == k->innermost ? k : NULL))
			return false;
		if (c == k)
			return true;
	}
}

bool weft__enter_copying(weft_coro_t *k)
{
	struct weft__thread *me = weft__thread();

	if (weft__unlikely(!me))
		return false;
	if (weft__unlikely(k->innermost != k)) {
		if (!place_chain(me, k))
			return false;
	} else if (!place(me, k, k)) {
		return false;
	}
	if (weft__unlikely(k->flags & WEFT__SAVING))
		weft__exchange_saved(k);
	if (weft__likely(k->flags & WEFT__COPYING)) {
		k->link.parent_pc =
		    k->flags == WEFT__COPYING ? (void *)weft__return_parked : (void *)weft__return_copying;
	} else if (k->flags & WEFT__SAVING) {
		k->link.parent_pc = (void *)weft__return_saving;
	}
	k->flags &= ~(uint32_t)WEFT__THROUGH;
	return true;
}

/* There was no memory for the frames that lay where k, or one inside it, was to run. On a stack with room. */
void weft__fail_copying(weft_coro_t *k)
{
	weft__set_self(k->innermost);
	k->failure = WEFT_MEMORY_SPENT;
	weft__owner_fail(k);
	abort(); /* it does not return */
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static WEFT__COLD void first_use(void)
{
	weft__tries_fast = weft__has_avx && !weft__on_memcheck && !WEFT_DEBUG;
	weft__landing_spare = weft__landing();
	__atomic_or_fetch(&weft__unusual, WEFT__COPYING_USED, __ATOMIC_SEQ_CST);
}

void weft__arm_copying(weft_coro_t *k)
{
	struct weft__copied *c = weft__copied_of(k);

	if (weft__unlikely(!(__atomic_load_n(&weft__unusual, __ATOMIC_ACQUIRE) & WEFT__COPYING_USED)))
		first_use();
	c->region = NULL;
	c->image = NULL;
	c->sp = NULL;
	c->point = c->points_end = NULL;
	c->points = NULL;
	k->flags |= WEFT__COPYING;
	k->inner_pc = (void *)weft__entry_saving;
	k->outer_pc = NULL;
	k->link.pc = (void *)weft__land_copying;
	k->link.sp = weft__landing();
}

/* With the region held by this thread, nobody running there, and `from` elsewhere: the frames of `to` become, in place,
 * those of `from`. */
bool weft__overwrite(struct weft__thread *me, struct weft__region *region, struct weft__copied *to,
		     struct weft__copied *from)
{
	if (region->occupant && region->occupant != to && !save_occupant(me, region))
		return false;
	if (to->image)
		drop_image(me, to->image);
	to->sp = from->sp;
	to->image = from->image;
	region->occupant = NULL; /* what lies there is not needed any more */
	load(me, region, to);
	to->image = NULL;
	return true;
}
