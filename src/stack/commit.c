/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * commit: the slot is closed but for its top; the fault handler opens it downwards.
 *
 * Each fault opens everything from what is open down to the faulting page (a system call may touch the buffer in
 * between, and would not fault but fail), and then as much as coroutines of the same function needed before
 * (needs.c). If nothing is known about them, it opens as much again as is open already: n pages cost log2(n) faults.
 * What is open is charged to a budget of the whole process. A slot that is kept for reuse stays open, so warm stacks
 * never fault; when the budget is spent, kept slots lose their memory, whoever keeps them (reclaim.c).
 *
 * Two threads may fault in one slot (one runs on it, another writes through a pointer into it). `open` is moved by
 * compare-and-swap before the pages are opened; `opening` says that somebody is between the two, and whoever faults
 * above `open` meanwhile just tries again. The child of a fork may have a slot that a thread of the parent was opening:
 * there whoever faults opens what should be open.
 */
#define WEFT__PART_FAILING
#include "internal/valgrind.h"
#include "stack/config.h"
#include "stack/fault.h"
#include "stack/needs.h"

#include <errno.h>

enum {
	FIRST = 2 * WEFT__PAGE,	   /* open from the start */
	LARGEST_STEP = 256 * 1024, /* opened beyond what the fault needs */
	RECLAIM = 64 * 1024,	   /* taken from kept slots at least, if they have so much */
	AHEAD = 64 * FIRST,	   /* with less left, slots are prepared one by one */
	/* Beyond the budget, for coroutines that end: see weft/defer.h. */
	RESERVE = 512 * 1024,
	RESERVE_OF_EACH = 64 * 1024,
};

/* ---- the budget -------------------------------------------------------------------------------------------- */

static atomic_size_t charged;
static atomic_size_t budget; /* 0: not decided yet */

/* Relaxed throughout: the counter orders nothing, and is exact because all its changes are atomic. */
static bool try_charge(size_t bytes, size_t beyond)
{
	size_t now = atomic_load_explicit(&charged, memory_order_relaxed), most;

	do {
		most = atomic_load_explicit(&budget, memory_order_relaxed);
		most = most + beyond < most ? SIZE_MAX : most + beyond;
		if (now > most || bytes > most - now)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&charged, &now, now + bytes, memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

/* Slots that are kept for reuse have their memory as long as nobody needs it. */
static bool charge(size_t bytes)
{
	while (!try_charge(bytes, 0))
		if (!weft__reclaim(WEFT_COMMIT, bytes > RECLAIM ? bytes : RECLAIM))
			return try_charge(bytes, 0); /* another thread may have reclaimed enough for both */
	return true;
}

static bool is_tight(void)
{
	size_t now = atomic_load_explicit(&charged, memory_order_relaxed);

	return now + AHEAD > atomic_load_explicit(&budget, memory_order_relaxed);
}

static void give_back(size_t bytes)
{
	atomic_fetch_sub_explicit(&charged, bytes, memory_order_relaxed);
}

/* Before the first charge, so that the fault handler finds it decided. */
static void decide_budget(void)
{
	size_t undecided = 0;

	if (atomic_load_explicit(&budget, memory_order_relaxed))
		return;
	atomic_compare_exchange_strong_explicit(&budget, &undecided, weft__config_budget(), memory_order_relaxed,
						memory_order_relaxed);
}

size_t weft_set_budget(size_t bytes)
{
	decide_budget();
	return atomic_exchange_explicit(&budget, bytes ? bytes : 1, memory_order_relaxed);
}

/* ---- slots ----------------------------------------------------------------------------------------------------- */

static size_t opened(const struct weft__slot *slot)
{
	/* Relaxed: only asked of slots that nobody else uses. */
	return (size_t)(weft__slot_end(slot) - atomic_load_explicit(&slot->open, memory_order_relaxed));
}

static int commit_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low)
{
	char *end = weft__slot_end(slot);
	/* Valgrind moves the stack pointer before the store of a push or a call, so that these cannot run again. */
	bool whole = RUNNING_ON_VALGRIND || (size_t)(end - low) < FIRST;
	size_t first = whole ? (size_t)(end - low) : FIRST;
	char *open = end - first;
	int error;

	(void)self;
	decide_budget();
	if (!charge(first))
		return -EDQUOT;

	error = weft__guard(start, (size_t)(open - start));
	if (!error)
		error = weft__unguard(open, first);
	if (error) {
		give_back(first);
		return error;
	}
	slot->chunk.low = low;
	slot->chunk.limit = NULL;
	atomic_store_explicit(&slot->open, open, memory_order_relaxed); /* nobody else knows the slot yet */
	return 0;
}

static size_t commit_discard(const struct weft__policy *self, struct weft__slot *slot)
{
	size_t bytes = opened(slot);
	char *open = weft__slot_end(slot) - bytes;

	(void)self;
	/* The pages stay accessible until the slot is prepared again: a stale pointer may still ask the object. */
	weft__os_drop(open, bytes);
	give_back(bytes);
	return bytes;
}

/* Nobody runs on it, so that no fault moves `open` meanwhile but one of somebody who writes below the stack's end. */
static size_t commit_trim(struct weft__slot *slot, char *to)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed);

	if (to <= open || weft__guard(open, (size_t)(to - open)))
		return 0;
	atomic_store_explicit(&slot->open, to, memory_order_relaxed);
	give_back((size_t)(to - open));
	return (size_t)(to - open);
}

/* The slot is for a thread, which nobody resumes who could be told that it cannot grow. */
static int commit_fill(struct weft__slot *slot)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed), *low = slot->chunk.low;

	if (!charge((size_t)(open - low)))
		return -ENOMEM;
	if (open > low && weft__unguard(low, (size_t)(open - low))) {
		give_back((size_t)(open - low));
		return -ENOMEM;
	}
	atomic_store_explicit(&slot->open, low, memory_order_relaxed); /* nobody else uses it */
	return 0;
}

static void wait_for_reclaimers(void)
{
	(void)weft__reclaim(WEFT_COMMIT, 0);
}

/* Bytes from the slot's end that other coroutines of the same function needed, if they were as deep as `page`; else
 * 0. */
static size_t needed_before(struct weft__slot *slot, const char *page)
{
	const void *function = weft__owner_function(slot);

	return function
		   ? WEFT__PAGE * weft__needs_guess(function, slot, (size_t)(weft__slot_end(slot) - page) / WEFT__PAGE)
		   : 0;
}

/* Where `open` should be for `page` to be usable: at least there, at most at `low`. `needed`: see above. */
static char *next_open(const struct weft__slot *slot, char *open, char *page, size_t needed)
{
	size_t step = (size_t)(weft__slot_end(slot) - open);
	size_t beyond = (size_t)(weft__slot_end(slot) - page);

	if (step > LARGEST_STEP)
		step = LARGEST_STEP;
	if (needed)
		step = needed > beyond ? needed - beyond : 0;
	return (size_t)(page - slot->chunk.low) > step ? page - step : slot->chunk.low;
}

/* A coroutine that ends, and whose cleanup needs more stack, may go beyond the budget: a bit, and together not far. */
static bool borrow(struct weft__slot *slot, size_t bytes)
{
	uint32_t borrowed = atomic_load_explicit(&slot->borrowed, memory_order_relaxed);

	if (!weft__owner_ends(atomic_load_explicit(&slot->owner, memory_order_relaxed)) ||
	    bytes > RESERVE_OF_EACH - borrowed || !try_charge(bytes, RESERVE))
		return false;
	/* Relaxed: who writes into a stack that another runs on may have it borrow once more. */
	atomic_store_explicit(&slot->borrowed, borrowed + (uint32_t)bytes, memory_order_relaxed);
	return true;
}

/* Charge, or with less than the whole step if that is all the budget has. */
static bool charge_from(struct weft__slot *slot, char *open, char **to, char *page)
{
	bool good = charge((size_t)(open - *to));

	if (!good) {
		*to = page;
		good = charge((size_t)(open - page));
	}
	if (good)
		atomic_store_explicit(&slot->borrowed, 0, memory_order_relaxed);
	return good || borrow(slot, (size_t)(open - page));
}

/* The fault is above `open`, where a thread that the fork took away was about to open pages. */
static enum weft__fault open_in_its_place(struct weft__slot *slot)
{
	char *open = atomic_load(&slot->open);

	return weft__unguard(open, (size_t)(weft__slot_end(slot) - open)) ? WEFT__FAULT_MEMORY : WEFT__FAULT_RACED;
}

WEFT__BRINGS(weft__fault_spent);

static enum weft__fault commit_fault(struct weft__slot *slot, char *address)
{
	char *page = (char *)((uintptr_t)address & ~(uintptr_t)(WEFT__PAGE - 1));
	enum weft__fault result = WEFT__FAULT_RACED;
	char *open, *to;
	size_t needed;

	if (address < slot->chunk.low)
		return WEFT__FAULT_RESERVATION;
	needed = needed_before(slot, page);
	/* Sequentially consistent: whoever sees `open` moved also sees `opening` raised until the pages are there. */
	atomic_fetch_add(&slot->opening, 1);
	open = atomic_load(&slot->open);
	while (address < open) {
		to = next_open(slot, open, page, needed);
		if (!charge_from(slot, open, &to, page)) {
			result = WEFT__FAULT_BUDGET;
			break;
		}
		if (atomic_compare_exchange_strong(&slot->open, &open, to)) {
			if (weft__unguard(to, (size_t)(open - to))) {
				/* The kernel has no memory for it, or no mapping. Nobody can have used the pages
				 * meanwhile, so that taking `open` back is safe unless it moved on. */
				if (atomic_compare_exchange_strong(&slot->open, &to, open))
					give_back((size_t)(open - to));
				result = WEFT__FAULT_MEMORY;
			} else {
				result = WEFT__FAULT_OPENED;
			}
			break;
		}
		give_back((size_t)(open - to));
	}
	atomic_fetch_sub(&slot->opening, 1);
	if (weft__unlikely(result == WEFT__FAULT_RACED && weft__os_lost_threads()))
		return open_in_its_place(slot);
	return result;
}

const char weft__with_commit;

const struct weft__policy weft__commit = {
    .name = "commit",
    .default_size = 256 * 1024,
    .callers = WEFT__CALLERS_ANY,
    .accounted = false,
    .closed = true,
    .learns = true,
    .committed = &charged,
    .prepare = commit_prepare,
    .discard = commit_discard,
    .trim = commit_trim,
    .tight = is_tight,
    .fill = commit_fill,
    .wait_for_lookers = wait_for_reclaimers,
    .fault = commit_fault,
};
