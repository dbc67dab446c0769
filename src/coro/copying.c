/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines whose frames are moved in and out of a shared region (stack/copy.h says when, and how threads share one).
 *
 * Such a coroutine's pc is weft__land_copying while it is suspended; its parent_pc is weft__return_copying while it
 * runs. Both call the functions here on the thread's landing, a separate stack. The saved stack pointer of a suspended
 * coroutine points to a landing too, because a signal may arrive between the load of the stack pointer and the landing
 * pad, when the region still contains the frames of another coroutine. (The landing is that of the thread that
 * suspended the coroutine. Another thread that resumes the coroutine uses this landing for two instructions, well below
 * the frames of the first thread's functions: the two threads collide only if both are interrupted exactly there.)
 *
 * A chain that is suspended from below may have such coroutines inside: then its outermost coroutine uses the same
 * landing pads, whatever its own policy is, until it is resumed (WEFT__THROUGH).
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

enum { BY_LINES = 2048 }; /* memcpy is faster for more bytes */

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

/* Tell Memcheck that the bytes below the frames, which are copied too, may be read. */
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

/* Make an image of the frames in the region. */
static inline struct weft__image *take_image(struct weft__thread *me, struct weft__region *region, const char *sp)
{
	struct weft__image *image = new_image(me, (size_t)(weft__region_top(region) - weft__lowest(sp)));

	if (weft__likely(image))
		weft__frames_out(me, region, sp, image->frames);
	return image;
}

static WEFT__COLD bool changed(struct weft__region *region, const struct weft__image *image)
{
	/* Memcheck would report the bytes that were never written. */
	return weft__on_memcheck || memcmp(weft__region_top(region) - image->bytes, image->frames, image->bytes) != 0;
}

/* The occupant leaves the region: save its frames as an image, if they are still needed. */
static inline bool save_occupant(struct weft__thread *me, struct weft__region *region)
{
	struct weft__copied *c = region->occupant;
	struct weft__image *image;

	if (!c->sp) /* it has finished */
		return true;
	/* If it has an image, because it was cloned, a new image is necessary only if frames were written since (a
	 * reply, for example). */
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
		/* From now on the image may be queued again. */
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
/* Dangling pointers into the stack of another coroutine read this pattern. */
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
		/* Memcheck follows the stack pointer, starting with the red zone. */
		VALGRIND_MAKE_MEM_UNDEFINED(sp - 128, (size_t)(top - sp) + 128);
	}
	copy_lines(top - bytes, frames, bytes);
	weft__count_copied(me, bytes);
}

/* The frames of c are in the region now. */
static inline void occupy(struct weft__region *region, struct weft__copied *c)
{
	region->occupant = c;
	/* Release: pairs with the fault handler's load, in any thread, which reads the owner's name. */
	atomic_store_explicit(&weft__region_slot(region)->owner, c->slot.owner, memory_order_release);
}

/* Store the coroutine's address, as weft__entry does: the image may come from another coroutine. */
static inline void mark(struct weft__region *region, const struct weft__copied *c)
{
	if (WEFT_NO_CANARY(a_clone_takes_itself_for_the_original))
		*(void **)(weft__region_top(region) - 16) = c->slot.owner;
}

/* Copy the frames of c in. The frames of the previous occupant are saved, or not needed. */
static inline void load(struct weft__thread *me, struct weft__region *region, struct weft__copied *c)
{
	struct weft__image *image = c->image;

	weft__frames_in(me, region, region->occupant ? region->occupant->sp : NULL, c->sp, image ? image->frames : NULL,
			image ? image->bytes : 0);
	if (image)
		mark(region, c);
	occupy(region, c);
}

/* True if the frames of the occupant are as long as those of c, and neither has a second copy or holder. */
static inline bool can_trade(struct weft__region *region, const struct weft__copied *c)
{
	const struct weft__copied *other = region->occupant;

	return weft__tries_fast && c->image && (WEFT_CANARY(shared_frames_change_places) || c->image->holders == 1) &&
	       c->image->bytes <= BY_LINES && other && other->sp && !other->image &&
	       (size_t)(weft__region_top(region) - weft__lowest(other->sp)) == c->image->bytes;
}

/* Exchange the frames line by line. The image is then the previous occupant's. */
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

/* The region must be held. Move the frames of c, which is parked, into it. */
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

/* Choose a region at the first resume. */
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

/* Prepare k, which is parked, to run. Its stack pointer is stored in `head`, the coroutine to be resumed. Returns
 * false, and changes nothing, if there is no memory. */
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
	if (c->image) { /* the image does not follow the coroutine's writes */
		drop_image(me, c->image);
		c->image = NULL;
	}
	if (head)
		head->link.sp = c->sp;
	c->sp = NULL;
	/* Still owned by this thread: other threads take only idle regions. */
	weft__region_leave(region, me, WEFT__REGION_RUNNING);
	return true;
}

/* Place all coroutines from the one that executes next up to k. */
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

/* There was no memory to save the frames in the region where k, or a coroutine inside it, should run. Called on a stack
 * with room. */
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

/* See copying.h. */
bool weft__overwrite(struct weft__thread *me, struct weft__region *region, struct weft__copied *to,
		     struct weft__copied *from)
{
	if (region->occupant && region->occupant != to && !save_occupant(me, region))
		return false;
	if (to->image)
		drop_image(me, to->image);
	to->sp = from->sp;
	to->image = from->image;
	region->occupant = NULL; /* the frames there are not needed */
	load(me, region, to);
	to->image = NULL;
	return true;
}
