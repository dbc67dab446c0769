/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * commit: the slot is closed except for its top; the fault handler opens it downwards.
 *
 * Each fault opens everything from `open` down to the faulting page (a system call may touch the buffer in between, and
 * would not fault but fail), and then as much as coroutines of the same function needed before (needs.c). If nothing is
 * known about them, it opens as much again as is open already: n pages cost log2(n) faults. The open bytes are charged
 * to the budget of the whole process. A slot that is cached for reuse stays open, so warm stacks never fault; when the
 * budget is spent, cached slots lose their memory, in whichever thread's cache they are (reclaim.c).
 *
 * A page is closed in one of two ways. By a guard: a touch raises a signal, and the handler opens the page. Or, if
 * WEFT_COMMIT asks for it, by being missing in a watched range (userfaultfd): a touch puts the thread to sleep, and a
 * thread of the library opens the page; system calls may touch such pages, too. Some faults that thread cannot resolve,
 * since only the faulting thread can reclaim or fail: it closes the page by a guard and leaves the fault to the signal.
 * The record's page is always present, because that thread reads it. In the child of a fork, which has no such thread,
 * guards close everything.
 *
 * Two threads may fault in one slot (one runs on it, another thread writes through a pointer into it). `open` is moved
 * by compare-and-swap before the pages are opened; `opening` says that a thread is between the two steps, and a thread
 * that faults above `open` meanwhile retries. The child of a fork may have a slot that a thread of the parent was
 * opening: a thread of the child that faults there opens the pages that should be open.
 */
#define WEFT__PART_FAILING
#include "internal/signal_safe_lock.h"
#include "internal/valgrind.h"
#include "stack/config.h"
#include "stack/fault.h"
#include "stack/needs.h"

#include <errno.h>

enum {
	FIRST = 2 * WEFT__PAGE,	   /* open from the start */
	LARGEST_STEP = 256 * 1024, /* opened beyond the need of the fault */
	RECLAIM = 64 * 1024,	   /* taken from cached slots at least, if they have so much */
	AHEAD = 64 * FIRST,	   /* if less of the budget is left, slots are prepared one by one */
	/* Beyond the budget, for coroutines that are ending: see weft/defer.h. */
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

/* Cached slots keep their memory until it is needed elsewhere. */
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

/* Called before the first charge, so that the fault handler finds the budget decided. */
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

/* ---- closing and opening -------------------------------------------------------------------------------------- */

static bool by_missing; /* pages are closed by being missing; decided before the first span is mapped */

/* The slot in which a page is being closed: see leave_to_signal. */
static struct weft__slot *_Atomic closing;

/* For a slot in use: only after `open` was moved. */
static int open_pages(const struct weft__slot *slot, char *start, size_t bytes)
{
	int error;

	while (weft__unlikely(by_missing && atomic_load(&closing) == slot))
		weft__os_yield();
	error = weft__unguard(start, bytes);
	return !error && by_missing ? weft__missing_supply(start, bytes) : error;
}

/* Supply the record's page again: without it the thread that answers faults would wait for itself. The kernel will have
 * memory for a page of zeros soon. */
static void commit_dropped(struct weft__slot *slot)
{
	while (by_missing && weft__missing_supply(weft__page_of(slot), WEFT__PAGE))
		weft__os_yield();
}

static char *commit_lowest_written(const struct weft__slot *slot)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed);
	size_t bytes = (size_t)(weft__slot_end(slot) - open);

	return by_missing ? weft__missing_lowest_written(open, bytes) : weft__os_lowest_resident(open, bytes);
}

/* ---- slots ----------------------------------------------------------------------------------------------------- */

static size_t opened(const struct weft__slot *slot)
{
	/* Relaxed: only called for slots that no other thread uses. */
	return (size_t)(weft__slot_end(slot) - atomic_load_explicit(&slot->open, memory_order_relaxed));
}

static int commit_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low)
{
	char *end = weft__slot_end(slot);
	/* Under Valgrind the whole slot is open: Valgrind moves the stack pointer before the store of a push or a call,
	 * so these instructions cannot be repeated after a fault. */
	bool whole = RUNNING_ON_VALGRIND || (size_t)(end - low) < FIRST;
	size_t first = whole ? (size_t)(end - low) : FIRST;
	char *open = end - first;
	int error;

	(void)self;
	decide_budget();
	if (!charge(first))
		return -EDQUOT;

	error = weft__guard(start, (size_t)((by_missing ? low : open) - start));
	if (!error)
		error = open_pages(slot, open, first);
	if (error) {
		give_back(first);
		return error;
	}
	slot->chunk.low = low;
	slot->chunk.limit = NULL;
	atomic_store_explicit(&slot->open, open, memory_order_relaxed); /* no other thread knows the slot yet */
	return 0;
}

static size_t commit_discard(const struct weft__policy *self, struct weft__slot *slot)
{
	size_t bytes = opened(slot);
	char *open = weft__slot_end(slot) - bytes;

	(void)self;
	weft__needs_before_drop(slot);
	/* The pages stay accessible until the slot is prepared again: code may still read the object through a stale
	 * pointer. */
	weft__os_drop(open, bytes);
	commit_dropped(slot);
	give_back(bytes);
	return bytes;
}

/* A fault moves `open` meanwhile only if a signal handler runs on this stack, or a thread writes below the stack's
 * end. */
static size_t commit_trim(struct weft__slot *slot, char *to)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed);

	if (to <= open || weft__guard(open, (size_t)(to - open)) ||
	    !atomic_compare_exchange_strong(&slot->open, &(char *){open}, to))
		return 0;
	give_back((size_t)(to - open));
	return (size_t)(to - open);
}

/* The slot is for a thread: there is no resumer that could learn that the stack cannot grow. */
static int commit_fill(struct weft__slot *slot)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed), *low = slot->chunk.low;

	if (!charge((size_t)(open - low)))
		return -ENOMEM;
	if (open > low && open_pages(slot, low, (size_t)(open - low))) {
		give_back((size_t)(open - low));
		return -ENOMEM;
	}
	atomic_store_explicit(&slot->open, low, memory_order_relaxed); /* no other thread uses it */
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

/* The new value of `open` for `page` to be usable: at most at `page`, at least `low`. `needed`: see needed_before. */
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

/* A coroutine that is ending, and whose cleanup needs more stack, may exceed the budget by a little, and all such
 * coroutines together by RESERVE. */
static bool borrow(struct weft__slot *slot, size_t bytes)
{
	uint32_t borrowed = atomic_load_explicit(&slot->borrowed, memory_order_relaxed);

	if (!weft__owner_ends(atomic_load_explicit(&slot->owner, memory_order_relaxed)) ||
	    bytes > RESERVE_OF_EACH - borrowed || !try_charge(bytes, RESERVE))
		return false;
	/* Relaxed: a thread that writes into a stack on which another thread runs may cause a second borrowing. */
	atomic_store_explicit(&slot->borrowed, borrowed + (uint32_t)bytes, memory_order_relaxed);
	return true;
}

/* Charge the whole step, or only the part down to `page` if the budget has no more. Not `here`: without reclaiming
 * memory of cached slots. */
static bool charge_from(struct weft__slot *slot, char *open, char **to, char *page, bool here)
{
	bool good = here ? charge((size_t)(open - *to)) : try_charge((size_t)(open - *to), 0);

	if (!good && !here)
		return false;
	if (!good) {
		*to = page;
		good = charge((size_t)(open - page));
	}
	if (good)
		atomic_store_explicit(&slot->borrowed, 0, memory_order_relaxed);
	return good || borrow(slot, (size_t)(open - page));
}

/* The fault is above `open`, where a thread of the parent process was about to open pages. */
static enum weft__fault open_in_its_place(struct weft__slot *slot)
{
	char *open = atomic_load(&slot->open);

	return open_pages(slot, open, (size_t)(weft__slot_end(slot) - open)) ? WEFT__FAULT_MEMORY : WEFT__FAULT_RACED;
}

WEFT__BRINGS(weft__fault_spent);

/* `here`: called by the thread that faulted. */
static enum weft__fault open_for(struct weft__slot *slot, char *address, bool here)
{
	char *page = weft__page_of(address);
	enum weft__fault result = WEFT__FAULT_RACED;
	char *open, *to;
	size_t needed;

	if (address < slot->chunk.low)
		return WEFT__FAULT_RESERVATION;
	needed = needed_before(slot, page);
	/* Sequentially consistent: a thread that sees `open` moved also sees `opening` raised until the pages are
	 * there. */
	atomic_fetch_add(&slot->opening, 1);
	open = atomic_load(&slot->open);
	while (address < open) {
		to = next_open(slot, open, page, needed);
		if (!charge_from(slot, open, &to, page, here)) {
			result = WEFT__FAULT_BUDGET;
			break;
		}
		if (atomic_compare_exchange_strong(&slot->open, &open, to)) {
			if (open_pages(slot, to, (size_t)(open - to))) {
				/* The kernel has no memory for it, or no mapping. No thread can have used the pages
				 * meanwhile, so that restoring `open` is safe unless it moved on. */
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

static enum weft__fault commit_fault(struct weft__slot *slot, char *address)
{
	return open_for(slot, address, true);
}

/* ---- missing pages --------------------------------------------------------------------------------------------- */

/*
 * The faulting thread must handle the fault in a signal: it may reclaim, or its coroutine fails. Another thread may
 * open the page meanwhile and write to it, and a guard would discard that data. That thread moves `open`, then reads
 * `closing`; this function stores `closing`, then reads `open`. So one of the two sees the other's store: the other
 * thread waits for the guard and removes it, or no guard is set.
 */
static void leave_to_signal(struct weft__slot *slot, char *page)
{
	atomic_store(&closing, slot);
	if (page < atomic_load(&slot->open))
		(void)weft__guard(page, WEFT__PAGE);
	atomic_store(&closing, NULL);
	weft__missing_wake(page, WEFT__PAGE);
}

static void supply(char *page)
{
	if (weft__missing_supply(page, WEFT__PAGE))
		weft__missing_wake(page, WEFT__PAGE); /* there may be memory when the page is touched again */
}

static void answer_missing(char *page)
{
	struct weft__slot *slot = weft__arena_find(page);
	enum weft__fault result = WEFT__FAULT_FOREIGN;

	/* A stray pointer touched a page of no slot; or the page is the record's, which the thread that discarded it
	 * supplies, too; or the page is open. */
	if (!slot || page >= weft__page_of(slot) || page >= atomic_load(&slot->open) ||
	    WEFT_CANARY(missing_pages_are_free)) {
		supply(page);
		return;
	}
	/* A stack without owner: the signal reports that, and ends the process. Acquire: pairs with the owner's
	 * release. */
	if (atomic_load_explicit(&slot->owner, memory_order_acquire))
		result = open_for(slot, page, false);
	if (result == WEFT__FAULT_OPENED)
		weft__fault_count();
	else if (result == WEFT__FAULT_RACED)
		supply(page);
	else
		leave_to_signal(slot, page);
}

static bool close_by_guards(struct weft__slot *slot)
{
	char *open = atomic_load_explicit(&slot->open, memory_order_relaxed);

	if (atomic_load_explicit(&slot->memory, memory_order_relaxed) == WEFT__INTACT && open > slot->chunk.low)
		(void)weft__guard(slot->chunk.low, (size_t)(open - slot->chunk.low));
	return true;
}

static void begin_as_child(void)
{
	if (!by_missing)
		return;
	by_missing = false;
	weft__missing_end();
	if (WEFT_NO_CANARY(children_have_no_guards))
		weft__arena_walk(WEFT_COMMIT, close_by_guards);
}

void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void __sanitizer_start_switch_fiber(void **keep, const void *low, size_t bytes) __attribute__((weak));

static const char *why_not_missing(void)
{
	if (RUNNING_ON_VALGRIND || __tsan_destroy_fiber || __sanitizer_start_switch_fiber)
		return "sanitizers and valgrind read stacks while all threads stand still; so signals are used";
	if (!weft__guards_by_madvise())
		return "that needs guards by madvise, kernel 6.13; so signals are used";
	if (weft__missing_begin(answer_missing))
		return "the kernel does not let this process use userfaultfd (see "
		       "/proc/sys/vm/unprivileged_userfaultfd); so "
		       "signals are used";
	return NULL;
}

static void choose_mechanism(void)
{
	const char *why_not;

	if (!weft__config_wants_missing())
		return;
	why_not = why_not_missing();
	if (why_not) {
		weft__config_refuse_missing(why_not);
		return;
	}
	by_missing = !pthread_atfork(NULL, NULL, begin_as_child);
}

static void decide_mechanism(void)
{
	WEFT__CALL_ONCE(choose_mechanism);
}

static int commit_mapped(char *start, size_t bytes)
{
	decide_mechanism();
	return by_missing ? weft__missing_watch(start, bytes) : 0;
}

const char *weft_commit_mechanism(void)
{
	if (!weft__arena_open())
		decide_mechanism();
	return by_missing ? "userfaultfd" : "signal";
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
    .mapped = commit_mapped,
    .prepare = commit_prepare,
    .discard = commit_discard,
    .dropped = commit_dropped,
    .lowest_written = commit_lowest_written,
    .trim = commit_trim,
    .tight = is_tight,
    .fill = commit_fill,
    .wait_for_lookers = wait_for_reclaimers,
    .fault = commit_fault,
};
