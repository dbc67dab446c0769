/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copy: coroutines share regions, and their frames are moved in and out.
 *
 * Design
 *  1. A region is a slot of the arena, as large as a stack. A coroutine belongs to one region from its first resume
 *     on, because its frames hold addresses of each other; many coroutines belong to the same region. The first resume
 *     picks the thread's lowest region in which no coroutine runs, so that a program that nests n deep has n regions in
 *     each thread. (If more than sixteen nest, it may pick a higher region: searching for the lowest would take long.)
 *  2. Lazy: a suspended coroutine's frames stay in the region. Only when another coroutine is resumed there are these
 *     frames copied out, from the stack pointer up, and the other coroutine's frames copied in. If both are equally
 *     long, and the image has no other holder, they are exchanged with the image, line by line.
 *  3. The pool caches such a coroutine as a record: a slot that is an object and nothing else.
 *  4. A region is used by one thread at a time: `thread`. That thread enters and leaves it by plain stores, with no
 *     fence: it announces in `entering` that it is about to, checks that the region is still its own, and makes it
 *     `busy`. A thread that wants another thread's region announces that in `thread`, pays for both by a process-wide
 *     barrier (membarrier), and waits until the other thread, which may have been interrupted in between, is not
 *     `entering` any more: then it may trust `busy`, and write it. So two threads never run in a region at a time: the
 *     second waits.
 *  5. Saved frames are an image: immutable, counted, shared by clones.
 *  6. A region to which a single coroutine belongs can be removed from its thread's list, so that no other coroutine
 *     joins: the coroutine is secluded. It then needs neither 2 nor 4. The region stays idle, even while its occupant
 *     runs.
 *
 * Rejected: separate addresses for each coroutine, so that coroutines need not exclude each other (then nothing need be
 * copied: that is overcommit); copying at each suspension (twice the work if a coroutine is resumed several times in a
 * row); a lock per region (two atomic instructions per switch cost as much as the copying).
 */
#ifndef WEFT_SRC_STACK_COPY_H
#define WEFT_SRC_STACK_COPY_H

#include "arch/region.h"
#include "stack/policy.h"

/* Saved frames: the bytes up to the region's top. Protected like its region: see weft__region_hold. */
struct weft__image {
	uint32_t holders; /* number of parked coroutines whose frames these are */
	uint32_t class;	  /* class of its buffer */
	size_t bytes;
	/* Number of holders that released it while a coroutine ran in the region, and the next image of the list of
	 * released images. */
	_Atomic uint32_t late;
	struct weft__image *next;
	WEFT__ALIGNAS(64) char frames[];
};

/*
 * Invariant of a parked coroutine that has run: `sp` is set, and its frames are in the region (the coroutine is the
 * occupant) or in `image`, or in both; then the region's frames are the newer ones. If it was returned to the state
 * before its first resume, it has no frames: `sp` is the region's top, and there may be no image. Invariant of a
 * running coroutine: `sp` is NULL, it is the occupant, and there is no image. A secluded coroutine, running or parked,
 * has the same invariant.
 */
struct weft__copied {
	/* the object; `owner` is the coroutine; policy, class and lists as in other slots */
	struct weft__slot slot;
	struct weft__region *region; /* the region of its frames; NULL: it has not run */
	struct weft__image *image;
	char *sp; /* the stack pointer of a parked coroutine */
	/* Checkpoints (coro/checkpoint.c): the newest, the end of the oldest in the same buffer, and that buffer. */
	struct weft__point *point, *points_end;
	struct weft__points *points;
};

enum weft__busy {
	WEFT__REGION_IDLE,
	WEFT__REGION_RUNNING, /* the occupant runs, or is an ancestor of the running coroutine */
	WEFT__REGION_CHANGING /* a thread moves frames, or changes the record of a coroutine that belongs there */
};

/* A region's record is at the place of the object in the region's slot. */
struct weft__region {
	struct weft__copied *occupant; /* the coroutine whose frames are there, or were when it ended; NULL: none */
	struct weft__thread *_Atomic thread;
	_Atomic(struct weft__thread *) claimed; /* the thread that waits until it is idle: see copy.c; at most one */
	atomic_uchar busy;
	struct weft__thread *runner;	     /* valid if busy, exact enough for waiting threads */
	struct weft__image *_Atomic dropped; /* images of coroutines deleted while it was busy */
	/* coroutines that belong there, and coroutines that left while it was busy */
	uint32_t members;
	_Atomic uint32_t left;	     /* coroutines that left while it was busy */
	struct weft__region *next;   /* in the list of `lister`, or in the list of regions without a lister */
	struct weft__thread *lister; /* the thread whose list has the region */
	struct weft__region *all;    /* the next in the list of all regions */
	uint8_t class;
};

WEFT__OFFSET_IS(struct weft__copied, region, WEFT_COPIED_REGION);
WEFT__OFFSET_IS(struct weft__copied, image, WEFT_COPIED_IMAGE);
WEFT__OFFSET_IS(struct weft__copied, sp, WEFT_COPIED_SP);
WEFT__OFFSET_IS(struct weft__region, occupant, WEFT_REGION_OCCUPANT);
WEFT__OFFSET_IS(struct weft__region, thread, WEFT_REGION_THREAD);
WEFT__OFFSET_IS(struct weft__region, busy, WEFT_REGION_BUSY);
WEFT__OFFSET_IS(struct weft__thread, entering, WEFT_THREAD_ENTERING);
WEFT__STATIC_ASSERT((int)WEFT__REGION_IDLE == WEFT_REGION_IDLE && (int)WEFT__REGION_RUNNING == WEFT_REGION_RUNNING,
		    "edit arch/region.h");

static inline struct weft__slot *weft__region_slot(struct weft__region *region)
{
	return (struct weft__slot *)((char *)region - offsetof(struct weft__slot, object));
}

/* The start of the frames: 64-aligned. */
static inline char *weft__region_top(struct weft__region *region)
{
	return (char *)weft__region_slot(region);
}

/* Both loads are relaxed, and only hints: a thread that then finds the region busy chooses again. */
static inline bool weft__region_is_idle(struct weft__region *region)
{
	return !atomic_load_explicit(&region->busy, memory_order_relaxed);
}

static inline bool weft__region_is_ours(struct weft__region *region, struct weft__thread *me)
{
	return atomic_load_explicit(&region->thread, memory_order_relaxed) == me;
}

/* The thread's lowest region of the class, if no coroutine runs there; else NULL. */
static inline struct weft__region *weft__region_lowest(struct weft__thread *me, unsigned class)
{
	struct weft__region *region = me->regions[class];

	return region && weft__region_is_idle(region) && weft__region_is_ours(region, me) ? region : NULL;
}

/* A region of the class in which no coroutine runs, for a first resume: the thread's lowest if that is among its first,
 * else a region behind `resumers`, the region in which the resumer runs, if it runs in any. NULL if there is no memory.
 * Another thread may take it before this thread holds it. */
struct weft__region *weft__region_search(struct weft__thread *me, unsigned class, struct weft__region *resumers);

/*
 * Hold the region for changes, whichever thread has it, and return the state in which this thread had it, for
 * weft__region_leave. With `wait`, and if a coroutine of another thread runs there: wait until it suspends. Without
 * `wait`: return WEFT__REGION_OTHERS, and hold nothing; but as long as the other thread's coroutine runs, no further
 * coroutine becomes the occupant.
 */
enum { WEFT__REGION_OTHERS = -1, WEFT__REGION_DEADLOCK = -2 };
int weft__region_hold_slow(struct weft__region *region, struct weft__thread *me, bool wait);
/* A region in no list, to which only one coroutine of the caller's belongs, which `members` counts already. NULL if
 * there is no memory. */
struct weft__region *weft__region_alone(struct weft__thread *me, unsigned class);
/* Remove a region that this thread holds from its list. False: another thread lists it. */
bool weft__region_unlist(struct weft__region *region, struct weft__thread *me);
/* Put the region into the thread's list again. */
void weft__region_share(struct weft__region *region, struct weft__thread *me);
/* Wake the thread that waits for a region which this thread has just left. */
void weft__region_wake(void);

/* A count, not a flag: a signal's handler may enter another region. */
static inline void weft__count_entering(struct weft__thread *me, uint32_t change)
{
	uint32_t count = atomic_load_explicit(&me->entering, memory_order_relaxed) + change;

	/* Release: a thread that sees the decrement sees `busy`. */
	atomic_store_explicit(&me->entering, count, memory_order_release);
}

/* Does the thread own the region, and is it as busy as `only` (-1: in any state)? If so, it is CHANGING from now on.
 * Returns its previous state, or WEFT__REGION_OTHERS. */
static inline int weft__region_hold_own(struct weft__region *region, struct weft__thread *me, int only)
{
	int before = WEFT__REGION_OTHERS;

	weft__count_entering(me, 1);
	/* Pairs with the barrier in claim (copy.c): claim sees that this thread is entering, or this thread sees its
	 * claim. */
	atomic_signal_fence(memory_order_seq_cst);
	if (weft__likely(atomic_load_explicit(&region->thread, memory_order_acquire) == me)) {
		before = atomic_load_explicit(&region->busy, memory_order_relaxed);
#ifdef WEFT_CANARY_slow_to_take_a_region
		for (int i = 0; i < 100000; i++)
			__asm__ volatile("");
#endif
		if (only < 0 || weft__likely(before == only))
			atomic_store_explicit(&region->busy, WEFT__REGION_CHANGING, memory_order_relaxed);
		else
			before = WEFT__REGION_OTHERS;
	}
	weft__count_entering(me, -1u);
	return before;
}

static inline int weft__region_hold(struct weft__region *region, struct weft__thread *me, bool wait)
{
	int before = weft__region_hold_own(region, me, -1);

	return weft__likely(before >= 0) ? before : weft__region_hold_slow(region, me, wait);
}

static inline void weft__region_leave(struct weft__region *region, struct weft__thread *me, int before)
{
	/* Release: pairs with the acquire load of the thread that takes it over. */
	atomic_store_explicit(&region->busy, (unsigned char)before, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst); /* as in weft__region_hold_own */
	if (weft__unlikely(atomic_load_explicit(&region->thread, memory_order_relaxed) != me))
		weft__region_wake();
}

/* Records. */
int weft__copied_cut(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);
/* The record at an address in a span of records; NULL if there is none. */
WEFT__OF_COPY struct weft__slot *weft__copied_find(char *span, const void *address);

/* Visit the memory of records, in use or not. */
WEFT__OF_COPY void weft__copied_each(void (*visit)(char *start, size_t bytes));

/* Discard the contents of regions to which no coroutine belongs. Returns the bytes. */
WEFT__OF_COPY size_t weft__regions_trim(struct weft__thread *me);

/* The thread ends: any thread may take its regions. */
WEFT__OF_COPY void weft__regions_leave(struct weft__thread *thread);

/* The end of the calling thread's landing; see coro/copying.c. NULL: there is no landing yet. */
extern __thread char *weft__tls_landing __attribute__((visibility("hidden"), tls_model("initial-exec")));
bool weft__landing_make(void);

#endif
