/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * copy: coroutines share regions, and their frames are moved in and out.
 *
 * Design
 *  1. A region is a slot of the arena, as large as a stack. A coroutine belongs to one region from its first resume
 *     on, because its frames hold addresses of each other; many belong to the same. The first resume picks the lowest
 *     region of the thread's in which nobody runs, so that a program that nests n deep has n regions in each thread.
 *     (Where more than sixteen nest it may be another one: the lowest would be far to look for.)
 *  2. Lazily: who suspends stays where it is. Only when another one is resumed in the region are the frames that lie
 *     there copied out, from the stack pointer up, and those of the other copied in; if both are as long, and nobody
 *     else has the image, they change places in it, line by line.
 *  3. What the pool keeps of such a coroutine is a record: a slot that is an object and nothing else.
 *  4. A region is used by one thread at a time: `thread`. That one takes and leaves it by plain stores, with no fence:
 *     it says in `entering` that it is about to, sees that the region is its own still, and makes it `busy`. Whoever
 *     wants a region of another thread's announces that in `thread`, pays for both by a process-wide barrier
 *     (membarrier), and waits until the other, which may have been interrupted in between, is `entering` no more: then
 *     `busy` can be believed, and written. So two threads never run in one region at a time: the second waits.
 *  5. Saved frames are an image: immutable, counted, shared by clones.
 *  6. A region where one coroutine only belongs can be taken out of its thread's list, so that it stays alone: it is
 *     secluded. It then needs none of 2 and 4. The region stays idle, whatever its occupant does.
 *
 * Rejected: addresses of their own for each coroutine, so that two need not exclude each other (then nothing need be
 * copied: that is overcommit); copying at each suspension (twice the work where a coroutine is resumed several times in
 * a row); a lock per region (two atomic instructions per switch cost as much as the copying).
 */
#ifndef WEFT_SRC_STACK_COPY_H
#define WEFT_SRC_STACK_COPY_H

#include "arch/region.h"
#include "stack/policy.h"

/* Saved frames: the bytes up to the region's top. Guarded like its region: see weft__region_hold. */
struct weft__image {
	uint32_t holders; /* coroutines, parked, whose frames these are */
	uint32_t class;	  /* of the buffer */
	size_t bytes;
	/* Holders that let it go while others ran in the region, and the list of such images. */
	_Atomic uint32_t late;
	struct weft__image *next;
	WEFT__ALIGNAS(64) char frames[];
};

/*
 * Invariant of a parked coroutine that has run: `sp` is set, and its frames are in the region (it is the occupant) or
 * in `image`, or in both; then the region's are the newer ones. If it went back to before its first resume, it has no
 * frames: `sp` is the region's top, and there may be no image. Of one that runs: `sp` is NULL, it is the occupant, and
 * there is no image. The same of one that is secluded: see below.
 */
struct weft__copied {
	struct weft__slot slot;	     /* the object; `owner` is the coroutine; policy, class and lists as in others */
	struct weft__region *region; /* where its frames belong; NULL: it has not run */
	struct weft__image *image;
	char *sp; /* parked: the stack pointer */
	/* Checkpoints (coro/checkpoint.c): the newest, the end of the oldest in the same buffer, and that buffer. */
	struct weft__point *point, *points_end;
	struct weft__points *points;
};

enum weft__busy {
	WEFT__REGION_IDLE,
	WEFT__REGION_RUNNING, /* the occupant runs, or is an ancestor of who does */
	WEFT__REGION_CHANGING /* frames are being moved, or the record of one that belongs there changes */
};

/* In the object's place of the slot that the region is. */
struct weft__region {
	struct weft__copied *occupant; /* whose frames lie there, or lay when it ended; NULL: nobody's */
	struct weft__thread *_Atomic thread;
	_Atomic(struct weft__thread *) claimed; /* who waits until it is idle: see copy.c; at most one */
	atomic_uchar busy;
	struct weft__thread *runner;	     /* if busy, as far as waiting threads need to know */
	struct weft__image *_Atomic dropped; /* images of coroutines deleted while it was busy */
	uint32_t members;		     /* coroutines that belong there, and those that left while it was busy */
	_Atomic uint32_t left;		     /* the latter */
	struct weft__region *next;	     /* in the list of `lister`, or of those that nobody lists */
	struct weft__thread *lister;	     /* the thread in whose list it is */
	struct weft__region *all;	     /* all of them */
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

/* Where frames start: 64-aligned. */
static inline char *weft__region_top(struct weft__region *region)
{
	return (char *)weft__region_slot(region);
}

/* Both relaxed, and guesses: who then finds somebody there chooses again. */
static inline bool weft__region_is_idle(struct weft__region *region)
{
	return !atomic_load_explicit(&region->busy, memory_order_relaxed);
}

static inline bool weft__region_is_ours(struct weft__region *region, struct weft__thread *me)
{
	return atomic_load_explicit(&region->thread, memory_order_relaxed) == me;
}

/* The thread's lowest region of the class, if nobody runs there; else NULL. */
static inline struct weft__region *weft__region_lowest(struct weft__thread *me, unsigned class)
{
	struct weft__region *region = me->regions[class];

	return region && weft__region_is_idle(region) && weft__region_is_ours(region, me) ? region : NULL;
}

/* A region of the class in which nobody runs, for a first resume: the thread's lowest if that is among its first, else
 * one behind `resumers`, in which the resumer runs, if it does. NULL if there is no memory. Another thread may take it
 * before this thread holds it. */
struct weft__region *weft__region_search(struct weft__thread *me, unsigned class, struct weft__region *resumers);

/*
 * Take the region for changes, from whatever thread has it, and return in what state this thread had it, for
 * weft__region_leave. With `wait`, and if a coroutine of another thread's runs there: wait until it suspends. Without:
 * return WEFT__REGION_OTHERS, and nothing is taken, but whoever is no occupant then stays none for as long as it runs.
 */
enum { WEFT__REGION_OTHERS = -1, WEFT__REGION_DEADLOCK = -2 };
int weft__region_hold_slow(struct weft__region *region, struct weft__thread *me, bool wait);
/* Out of the lists: a region where nobody belongs but one coroutine of the caller's, which `members` counts already.
 * NULL if there is no memory. */
struct weft__region *weft__region_alone(struct weft__thread *me, unsigned class);
/* The same for one that this thread holds. False: another thread lists it. */
bool weft__region_unlist(struct weft__region *region, struct weft__thread *me);
/* Into the thread's list again. */
void weft__region_share(struct weft__region *region, struct weft__thread *me);
/* Somebody waits for a region that this thread has just left. */
void weft__region_wake(void);

/* A count, not a flag: a signal's handler may enter another region. */
static inline void weft__count_entering(struct weft__thread *me, uint32_t change)
{
	uint32_t count = atomic_load_explicit(&me->entering, memory_order_relaxed) + change;

	/* Release: who sees that it is over sees `busy`. */
	atomic_store_explicit(&me->entering, count, memory_order_release);
}

/* The thread's own, and as busy as `only` (or in any state: -1)? Then it is being changed from now on. Returns in what
 * state it was, or WEFT__REGION_OTHERS. */
static inline int weft__region_hold_own(struct weft__region *region, struct weft__thread *me, int only)
{
	int before = WEFT__REGION_OTHERS;

	weft__count_entering(me, 1);
	/* Pairs with the barrier in claim (copy.c): it sees us entering, or we see that it was here. */
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
	/* Release: pairs with the acquire load of who takes it over. */
	atomic_store_explicit(&region->busy, (unsigned char)before, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst); /* as above */
	if (weft__unlikely(atomic_load_explicit(&region->thread, memory_order_relaxed) != me))
		weft__region_wake();
}

/* Records. */
int weft__copied_cut(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);
/* The record at an address in a span of records; NULL if there is none. */
WEFT__OF_COPY struct weft__slot *weft__copied_find(char *span, const void *address);

/* Visit the memory that records come from, in use or not. */
WEFT__OF_COPY void weft__copied_each(void (*visit)(char *start, size_t bytes));

/* Drop what regions hold where nobody belongs. Bytes. */
WEFT__OF_COPY size_t weft__regions_trim(struct weft__thread *me);

/* The thread ends: its regions are anybody's. */
WEFT__OF_COPY void weft__regions_leave(struct weft__thread *thread);

/* The end of the calling thread's landing; see coro/copying.c. NULL until there is one. */
extern __thread char *weft__tls_landing __attribute__((visibility("hidden"), tls_model("initial-exec")));
bool weft__landing_make(void);

#endif
