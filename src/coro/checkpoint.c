/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Checkpoints: the saved state of a suspended coroutine, which can be restored any number of times.
 *
 * Design
 *  1. A point contains the words that a switch exchanges, and the frames, in whole lines. The points of a coroutine are
 *     in buffers of its own, each filled downwards, so that the newest point is the lowest, and the next older one
 *     begins where the newest ends.
 *  2. A coroutine that is alone in its region is secluded when it gets its first point: no other coroutine will settle
 *     there, so its frames stay in place whichever coroutine runs. It then has no special landing pads, and is switched
 *     like any coroutine with a stack of its own. Cloning ends the seclusion, because the clone uses the same region.
 *  3. Points and seclusion together make a step of a search some dozens of instructions: the functions at the end of
 *     this file. All other cases take the slow path, which holds the region as cloning does.
 *
 * Rejected: a second coroutine object for each choice, as weft_clone_into needs (two headers, two states and the
 * region's state to check, in place of one header); saving only the changes (no code knows them).
 */
#define WEFT__PART_COPY
#include "coro/copying.h"

#include <errno.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

/* The words that a switch exchanges and the runtime keeps of a suspended coroutine, then its frames. */
struct weft__point {
	char *sp; /* NULL: the coroutine had no region yet */
	void *pc, *fp, *bx;
	struct weft__deferred *deferred;
	const struct weft__view *view;
	size_t bytes; /* bytes of the frames */
	uint64_t fpu;
	char frames[];
};
_Static_assert(sizeof(struct weft__point) == 64, "points and their frames are whole lines");

/* The start of a buffer of points. The oldest point ends at the buffer's end. */
struct weft__points {
	WEFT__ALIGNAS(64) struct weft__points *older;
	struct weft__point *newest; /* valid while this buffer is not the one in use */
	size_t bytes;
};

enum { FIRST_BYTES = 16 * 1024, MOST_BYTES = 1 << 20 };

/* ---- buffers of points ----------------------------------------------------------------------------------------- */

static char *end_of(struct weft__points *points)
{
	return (char *)points + points->bytes;
}

static bool grow(struct weft__thread *me, struct weft__copied *c, size_t need)
{
	size_t bytes = c->points ? 2 * c->points->bytes : FIRST_BYTES;
	struct weft__points *points;

	if (bytes > MOST_BYTES)
		bytes = MOST_BYTES;
	if (bytes < need + sizeof *points)
		bytes = need + sizeof *points;
	points = weft__buffer_take(me, weft__buffer_class(bytes), bytes);
	if (!points)
		return false;
	*points = (struct weft__points){.older = c->points, .bytes = bytes};
	if (c->points)
		c->points->newest = c->point;
	c->points = points;
	c->point = c->points_end = (struct weft__point *)(void *)end_of(points);
	return true;
}

static void shrink(struct weft__thread *me, struct weft__copied *c)
{
	struct weft__points *points = c->points, *older = points->older;

	weft__buffer_give(me, points, weft__buffer_class(points->bytes), points->bytes);
	c->points = older;
	c->point = older ? older->newest : NULL;
	c->points_end = older ? (struct weft__point *)(void *)end_of(older) : NULL;
}

/* The newest point; NULL if there is none. */
static struct weft__point *newest(struct weft__thread *me, struct weft__copied *c)
{
	while (c->point == c->points_end) {
		if (!c->points || !c->points->older)
			return NULL;
		shrink(me, c);
	}
	return c->point;
}

static inline struct weft__point *older(struct weft__point *point)
{
	return (struct weft__point *)(void *)(point->frames + point->bytes);
}

/* Make room for a point, which becomes the newest. Returns NULL if there is no memory. */
static struct weft__point *push(struct weft__thread *me, struct weft__copied *c, size_t bytes)
{
	size_t need = sizeof(struct weft__point) + bytes;

	if ((!c->points || (size_t)((char *)c->point - (char *)(c->points + 1)) < need) && !grow(me, c, need))
		return NULL;
	c->point = (struct weft__point *)(void *)((char *)c->point - need);
	c->point->bytes = bytes;
	return c->point;
}

void weft__drop_points(struct weft__thread *me, struct weft__copied *c)
{
	while (c->points)
		shrink(me, c);
}

/* ---- seclusion ------------------------------------------------------------------------------------------------- */

/* If no other coroutine uses c's region, take the region out of the list, so that none will, and move c's frames in. */
static bool gets_alone(struct weft__thread *me, struct weft__copied *c, int before)
{
	struct weft__region *region = c->region;

	if (before != WEFT__REGION_IDLE)
		return false;
	if (region->members - atomic_load_explicit(&region->left, memory_order_relaxed) != 1 &&
	    WEFT_NO_CANARY(a_region_of_others_is_given_away))
		return false;
	if (!weft__bring_in(me, region, c) || !weft__region_unlist(region, me))
		return false;
	weft__image_let_go(me, c, before);
	return true;
}

static bool settle_alone(struct weft__thread *me, struct weft__copied *c)
{
	bool done;
	int before;

	if (!c->region) {
		c->region = weft__region_alone(me, c->slot.class);
		if (!c->region)
			return false;
		c->sp = weft__region_top(c->region);
		return weft__bring_in(me, c->region, c);
	}
	before = weft__region_hold(c->region, me, false);
	done = gets_alone(me, c, before);
	if (before != WEFT__REGION_OTHERS)
		weft__region_leave(c->region, me, before);
	return done;
}

/* From now on, k is switched like a coroutine with a stack of its own. */
static void unhook(weft_coro_t *k)
{
	struct weft__copied *c = weft__copied_of(k);

	k->link.pc = k->inner_pc;
	k->link.sp = c->sp;
	k->flags = WEFT__SECLUDED | (weft__tries_fast ? 0 : WEFT__SLOWLY);
	c->sp = NULL;
}

/* Seclude k if possible. k must have a buffer of points: the fast paths below rely on it. */
static void seclude(struct weft__thread *me, weft_coro_t *k)
{
	if (settle_alone(me, weft__copied_of(k)))
		unhook(k);
}

void weft__end_seclusion(struct weft__thread *me, weft_coro_t *k)
{
	struct weft__copied *c = weft__copied_of(k);

	if (!(k->flags & WEFT__SECLUDED))
		return;
	weft__region_share(c->region, me);
	k->flags = WEFT__COPYING;
	if (k->link.pc == (void *)weft__in_finished)
		return;
	c->sp = k->link.sp;
	k->inner_pc = k->link.pc;
	k->link.pc = (void *)weft__land_copying;
	k->link.sp = weft__landing();
}

/* ---- the slow path --------------------------------------------------------------------------------------------- */

/* The stack pointer of k, which is suspended; NULL if it has not run and has no region. */
static char *sp_of(const weft_coro_t *k)
{
	return k->flags & WEFT__SECLUDED ? k->link.sp : weft__copied_of(k)->sp;
}

static size_t bytes_above(struct weft__region *region, const char *sp)
{
	if (weft__has_no_frames(region, sp))
		return 0;
	return (size_t)(weft__region_top(region) - weft__lowest(sp));
}

static bool lies_there(const struct weft__copied *c, int before)
{
	return before != WEFT__REGION_OTHERS && c->region->occupant == c;
}

/* Copy the frames of k into the point, from the region or from the image. */
static void read_frames(struct weft__thread *me, const weft_coro_t *k, struct weft__point *point)
{
	struct weft__copied *c = weft__copied_of(k);
	int before;

	if (k->flags & WEFT__SECLUDED) {
		weft__frames_out(me, c->region, point->sp, point->frames);
		return;
	}
	before = weft__region_hold(c->region, me, false);
	if (lies_there(c, before)) {
		weft__frames_out(me, c->region, point->sp, point->frames);
	} else {
		memcpy(point->frames, c->image->frames, c->image->bytes);
		/* Store the coroutine's address, as weft__entry does: the image may come from another coroutine. */
		*(void **)(void *)(point->frames + c->image->bytes - 16) = c->slot.owner;
	}
	if (before != WEFT__REGION_OTHERS)
		weft__region_leave(c->region, me, before);
}

static void fill(struct weft__thread *me, weft_coro_t *k, struct weft__point *point)
{
	point->sp = sp_of(k);
	point->pc = k->flags & WEFT__SECLUDED ? k->link.pc : k->inner_pc;
	point->fp = k->link.fp;
	point->bx = k->link.bx;
	point->deferred = k->deferred;
	point->view = k->view;
	point->fpu = k->fpu;
	if (point->bytes)
		read_frames(me, k, point);
}

static NOINLINE int checkpoint(weft_coro_t *k)
{
	struct weft__thread *me = weft__thread();
	int error = weft__refusal(k);
	struct weft__copied *c = weft__copied_of(k);
	struct weft__point *point;

	if (error)
		return error;
	point = me ? push(me, c, bytes_above(c->region, sp_of(k))) : NULL;
	if (!point)
		return -ENOMEM;
	if (k->flags == WEFT__COPYING)
		seclude(me, k);
	/* Fail, so that the fast path need not check whether the oldest point has a stack pointer. */
	if (weft__unlikely(!c->region && k->flags == WEFT__COPYING)) {
		c->point = older(point);
		return -ENOMEM;
	}
	fill(me, k, point);
	return 0;
}

/* The stack pointer that the point stands for. */
static char *sp_at(const struct weft__point *point, struct weft__region *region)
{
	return point->sp ? point->sp : weft__region_top(region);
}

static void write_secluded(struct weft__thread *me, weft_coro_t *k, const struct weft__point *point)
{
	const char *was = weft_state(k) == WEFT_SUSPENDED && k->innermost == k ? k->link.sp : NULL;

	weft__frames_in(me, weft__copied_of(k)->region, was, point->sp, point->frames, point->bytes);
}

/* Write the frames into the region if c's frames are there, else make an image. Returns false, and changes nothing, if
 * there is no memory. */
static bool write_shared(struct weft__thread *me, struct weft__copied *c, const struct weft__point *point)
{
	struct weft__region *region = c->region;
	int before = weft__region_hold(region, me, false);
	bool there = lies_there(c, before), done;
	struct weft__image *image = NULL;

	if (!there && point->bytes)
		image = weft__image_with(me, point->frames, point->bytes);
	done = there || image || !point->bytes;
	if (done) {
		weft__image_let_go(me, c, before);
		if (there)
			weft__frames_in(me, region, c->sp, sp_at(point, region), point->frames, point->bytes);
		c->image = image;
		c->sp = sp_at(point, region);
	}
	if (before != WEFT__REGION_OTHERS)
		weft__region_leave(region, me, before);
	return done;
}

static bool write_frames(struct weft__thread *me, weft_coro_t *k, const struct weft__point *point)
{
	if (k->flags & WEFT__SECLUDED) {
		write_secluded(me, k, point);
		return true;
	}
	/* Without a region, k has not run since the point was made. */
	return !weft__copied_of(k)->region || write_shared(me, weft__copied_of(k), point);
}

static void write_words(weft_coro_t *k, const struct weft__point *point)
{
	if (k->flags & WEFT__SECLUDED) {
		if (WEFT_NO_CANARY(an_end_is_not_undone))
			k->link.pc = point->pc;
		k->link.sp = point->sp;
	} else {
		k->inner_pc = point->pc;
		k->link.pc = (void *)weft__land_copying;
		k->link.sp = weft__landing();
	}
	k->link.fp = point->fp;
	k->link.bx = point->bx;
	k->deferred = point->deferred;
	k->view = point->view;
	k->fpu = point->fpu;
	k->caught = NULL;
	k->uncaught = 0;
	k->failure = WEFT_NO_FAILURE;
}

/* The newest point of k, or NULL and a negative errno. */
static struct weft__point *newest_of(struct weft__thread *me, const weft_coro_t *k, int *error)
{
	struct weft__point *point;

	*error = -EINVAL;
	if (weft_state(k) == WEFT_DELETED)
		return NULL;
	*error = -ENOTSUP;
	if (!(k->flags & WEFT__COPIED))
		return NULL;
	*error = me ? -EINVAL : -ENOMEM;
	point = me ? newest(me, weft__copied_of(k)) : NULL;
	if (point)
		*error = 0;
	return point;
}

static NOINLINE int backtrack(weft_coro_t *k, bool drop)
{
	struct weft__thread *me = weft__thread();
	int error;
	struct weft__point *point = newest_of(me, k, &error);

	if (!point)
		return error;
	if (weft_state(k) == WEFT_RUNNING)
		return -EBUSY;
	if (!write_frames(me, k, point))
		return -ENOMEM;
	if (WEFT_CANARY(what_is_inside_outlives_its_frames))
		k->innermost = k;
	else
		weft__drop_inside(k);
	write_words(k, point);
	if (drop)
		weft__copied_of(k)->point = older(point);
	return 0;
}

int weft_checkpoint_drop(weft_coro_t *k)
{
	struct weft__point *point;
	int error;

	weft__require(k, "weft_checkpoint_drop");
	point = newest_of(weft__thread(), k, &error);
	if (point)
		weft__copied_of(k)->point = older(point);
	return error;
}

/* ---- the fast paths -------------------------------------------------------------------------------------------- */

/*
 * Copied word by word, which volatile enforces: one vector load of words that a switch has just stored one by one would
 * wait until they are in the cache.
 */
static inline void move_word(void *to, const void *from)
{
	*(void *volatile *)to = *(void *const volatile *)from;
}

WEFT__AVX int weft_checkpoint(weft_coro_t *k)
{
	struct weft__copied *c;
	struct weft__point *point;
	char *sp, *low;
	size_t bytes;

	weft__require(k, "weft_checkpoint");
	c = weft__copied_of(k);
	if (weft__unlikely(k->flags != WEFT__SECLUDED || k->innermost != k || k->link.pc == (void *)weft__in_running ||
			   k->link.pc == (void *)weft__in_finished))
		return checkpoint(k);
	sp = k->link.sp;
	low = weft__lowest(sp);
	bytes = (size_t)(weft__region_top(c->region) - low);
	point = (struct weft__point *)(void *)((char *)c->point - bytes - sizeof *point);
	if (weft__unlikely((char *)point < (char *)(c->points + 1)))
		return checkpoint(k);
	c->point = point;
	point->bytes = bytes;
	point->sp = sp;
	move_word(&point->pc, &k->link.pc);
	move_word(&point->fp, &k->link.fp);
	move_word(&point->bx, &k->link.bx);
	move_word(&point->deferred, &k->deferred);
	move_word(&point->view, &k->view);
	weft__move_lines(point->frames, low, bytes - WEFT_CANARY_OR(a_checkpoint_lacks_a_line, 64, 0));
	return 0;
}

WEFT__AVX __attribute__((always_inline)) static inline int go_back(weft_coro_t *k, bool drop, const char *name)
{
	struct weft__copied *c;
	struct weft__point *point;
	size_t bytes;

	weft__require(k, name);
	c = weft__copied_of(k);
	if (weft__unlikely(k->flags != WEFT__SECLUDED || k->innermost != k || k->link.pc == (void *)weft__in_running ||
			   c->point == c->points_end))
		return backtrack(k, drop);
	point = c->point;
	bytes = point->bytes;
	move_word(&k->link.sp, &point->sp);
	if (WEFT_NO_CANARY(an_end_is_not_undone))
		move_word(&k->link.pc, &point->pc);
	move_word(&k->link.fp, &point->fp);
	move_word(&k->link.bx, &point->bx);
	move_word(&k->deferred, &point->deferred);
	move_word(&k->view, &point->view);
	k->failure = WEFT_NO_FAILURE;
	if (drop)
		c->point = older(point);
	weft__move_lines(weft__region_top(c->region) - bytes, point->frames, bytes);
	return 0;
}

WEFT__AVX int weft_checkpoint_restore(weft_coro_t *k)
{
	return go_back(k, false, "weft_checkpoint_restore");
}

WEFT__AVX int weft_checkpoint_restore_last(weft_coro_t *k)
{
	return go_back(k, true, "weft_checkpoint_restore_last");
}
