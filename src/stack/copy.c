/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* copy: regions, and records of coroutines. coro/copying.c moves the frames between them. */
#define WEFT__PART_COPY
#define WEFT__PART_FAILING
#include "stack/copy.h"

#include <errno.h>
#include <pthread.h>

#include "internal/alloc_faults.h"
#include "internal/signal_safe_lock.h"
#include "internal/valgrind.h"
#include "os/os.h"
#include "stack/contiguous.h"
#include "stack/fault.h"

_Static_assert(sizeof(struct weft__region) <= WEFT__OBJECT_BYTES, "the slot's room for what a region is");

static struct {
	pthread_mutex_t lock;
	pthread_cond_t idle; /* a region became idle, or its claim ended */
	struct weft__region *all, *unlisted[WEFT__CLASSES];
	struct weft__slot *landings;	/* cached by threads that have ended */
	char *next_record, *end_record; /* the rest of the newest span of records */
} copy = {.lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER};

WEFT__LOCK_OF_FILE(copy.lock);

/* ---- records ------------------------------------------------------------------------------------------------- */

static struct weft__copied *next_record(void)
{
	struct weft__copied *record;
	size_t span;

	if ((size_t)(copy.end_record - copy.next_record) < sizeof *record) {
		char *start = weft__arena_take_span(WEFT__SPAN_OF_RECORDS, &span);

		if (!start)
			return NULL;
		copy.next_record = start;
		copy.end_record = start + span;
	}
	record = (struct weft__copied *)copy.next_record;
	copy.next_record += sizeof *record;
	return record;
}

static const char *copy_unavailable(void);

static void copied_renew(weft_policy_t policy, unsigned class, struct weft__slot *slot)
{
	weft__object_clear(slot->object);
	slot->policy = (uint8_t)policy;
	slot->class = (uint8_t) class;
	atomic_store_explicit(&slot->kept, false, memory_order_relaxed);
	atomic_store_explicit(&slot->memory, WEFT__INTACT, memory_order_relaxed);
	atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
	slot->chunk.limit = NULL;
	slot->chunk.low = (char *)slot; /* empty */
	atomic_store_explicit(&slot->open, slot->chunk.low, memory_order_relaxed);
}

int weft__copied_cut(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list)
{
	struct weft__copied *record;
	unsigned made = 0;

	*list = NULL;
	if (copy_unavailable())
		return -ENOTSUP;
	if (WEFT__INJECT_FAULT() || (!weft__tls_landing && !weft__landing_make()))
		return -ENOMEM;
	lock();
	for (; made < count && (record = next_record()); made++) {
		copied_renew(policy, class, &record->slot);
		record->slot.next = *list;
		*list = &record->slot;
	}
	unlock();
	return made ? (int)made : -ENOMEM;
}

struct weft__slot *weft__copied_find(char *span, const void *address)
{
	size_t place = (size_t)((const char *)address - span) / sizeof(struct weft__copied);

	return &((struct weft__copied *)span)[place].slot;
}

static void (*visitor)(char *start, size_t bytes);

/* Visit only the cut part of the newest span, and all of an older span. */
static void visit_span(char *start, size_t bytes)
{
	visitor(start, copy.end_record == start + bytes ? (size_t)(copy.next_record - start) : bytes);
}

void weft__copied_each(void (*visit)(char *start, size_t bytes))
{
	lock();
	visitor = visit;
	weft__arena_each_span(WEFT__SPAN_OF_RECORDS, visit_span);
	unlock();
}

/* ---- regions: making and listing ----------------------------------------------------------------------------- */

static struct weft__slot *take_slot(unsigned class)
{
	struct weft__slot *slot;

	if (weft__arena_cut(WEFT_COPY, class, 1, &slot) < 1)
		return NULL;
	slot->valgrind_id = VALGRIND_STACK_REGISTER(slot->chunk.low, slot);
	return slot;
}

static struct weft__region *make_region(unsigned class)
{
	struct weft__slot *slot = take_slot(class);
	struct weft__region *region;

	if (!slot)
		return NULL;
	region = (struct weft__region *)slot->object;
	*region = (struct weft__region){.class = (uint8_t) class};
	lock();
	region->all = copy.all;
	copy.all = region;
	unlock();
	return region;
}

/* The caller holds the lock. If the region's coroutine runs, it will not run again. */
static void vacate(struct weft__region *region)
{
	if (atomic_load_explicit(&region->busy, memory_order_relaxed)) {
		region->occupant = NULL;
		atomic_store_explicit(&weft__region_slot(region)->owner, NULL, memory_order_relaxed);
	}
	atomic_store_explicit(&region->busy, WEFT__REGION_IDLE, memory_order_release);
}

static void leave_landing(void)
{
	struct weft__slot *slot = (struct weft__slot *)weft__tls_landing;

	if (!slot)
		return;
	slot->next = copy.landings;
	copy.landings = slot;
	weft__tls_landing = NULL;
}

void weft__regions_leave(struct weft__thread *thread)
{
	struct weft__region *region, *next;

	lock();
	for (region = copy.all; region; region = region->all) {
		if (region->runner != thread)
			continue;
		region->runner = NULL;
		vacate(region);
		if (atomic_load_explicit(&region->thread, memory_order_relaxed) == thread)
			atomic_store_explicit(&region->thread, NULL, memory_order_relaxed);
	}
	for (unsigned class = 0; class < WEFT__CLASSES; class ++) {
		for (region = thread->regions[class]; region; region = next) {
			next = region->next;
			region->lister = NULL;
			region->next = copy.unlisted[class];
			copy.unlisted[class] = region;
		}
		thread->regions[class] = NULL;
	}
	leave_landing();
	pthread_cond_broadcast(&copy.idle);
	unlock();
}

bool weft__landing_make(void)
{
	struct weft__slot *slot;

	lock();
	slot = copy.landings;
	if (slot)
		copy.landings = slot->next;
	unlock();
	if (!slot)
		slot = take_slot(weft__class(WEFT_COPY, 64 * 1024, true));
	weft__tls_landing = (char *)slot;
	return slot != NULL;
}

/* ---- regions: from thread to thread -------------------------------------------------------------------------- */

static void claim(struct weft__region *region, struct weft__thread *me)
{
	const struct weft__thread *other;

	while (region->claimed)
		pthread_cond_wait(&copy.idle, &copy.lock);
	region->claimed = me;
	atomic_store(&region->thread, me);
	weft__os_barrier();
	other = region->runner; /* it does not end meanwhile: to end, it needs the lock */
	/* Acquire: pairs with the release in weft__count_entering. */
	while (WEFT_NO_CANARY(a_region_is_given_away_while_taken) && other && other != me &&
	       atomic_load_explicit(&other->entering, memory_order_acquire))
		weft__os_yield();
}

static void end_claim(struct weft__region *region)
{
	region->claimed = NULL;
	pthread_cond_broadcast(&copy.idle);
}

/* Does the thread that runs in the region wait, directly or through other threads, for a region that this thread runs
 * in? */
static bool closes_circle(const struct weft__region *region, const struct weft__thread *me)
{
	const struct weft__thread *t = region->runner;

	while (t && t != me && t->waits_for)
		t = t->waits_for->runner;
	return t == me;
}

static void wait_for(struct weft__region *region, struct weft__thread *me)
{
	me->waits_for = region;
	pthread_cond_wait(&copy.idle, &copy.lock);
	me->waits_for = NULL;
}

/* The caller holds the lock. Returns WEFT__REGION_IDLE once the region is idle; else the reason for not waiting. */
static int wait_until_idle(struct weft__region *region, struct weft__thread *me, bool wait)
{
	for (;;) {
		if (WEFT_CANARY(a_region_is_taken_while_it_runs))
			return WEFT__REGION_IDLE;
		/* Acquire: pairs with the release in weft__region_leave. */
		switch (atomic_load_explicit(&region->busy, memory_order_acquire)) {
		case WEFT__REGION_IDLE:
			return WEFT__REGION_IDLE;
		case WEFT__REGION_CHANGING: /* for some dozens of nanoseconds */
			unlock();
			weft__os_yield();
			lock();
			break;
		default:
			if (!wait)
				return WEFT__REGION_OTHERS;
			if (closes_circle(region, me))
				return WEFT__REGION_DEADLOCK;
			wait_for(region, me);
		}
	}
}

int weft__region_hold_slow(struct weft__region *region, struct weft__thread *me, bool wait)
{
	int result;

	lock();
	result = atomic_load_explicit(&region->busy, memory_order_relaxed);
	if (result && region->runner == me) { /* a thread waits for this thread to leave it */
		atomic_store_explicit(&region->busy, WEFT__REGION_CHANGING, memory_order_relaxed);
		unlock();
		return result;
	}
	claim(region, me);
	result = wait_until_idle(region, me, wait);
	if (result == WEFT__REGION_IDLE) {
		region->runner = me;
		atomic_store_explicit(&region->busy, WEFT__REGION_CHANGING, memory_order_relaxed);
	} else {
		atomic_store_explicit(&region->thread, region->runner, memory_order_relaxed);
	}
	end_claim(region);
	unlock();
	return result;
}

void weft__region_wake(void)
{
	lock();
	pthread_cond_broadcast(&copy.idle);
	unlock();
}

/* ---- regions that threads left --------------------------------------------------------------------------------- */

static bool deserted(struct weft__region *region)
{
	return region->members == atomic_load_explicit(&region->left, memory_order_relaxed);
}

/* The caller holds the lock. Get a region that no thread lists: no coroutine runs there, or none belongs there. */
static bool adopt(struct weft__region *region, struct weft__thread *me)
{
	struct weft__thread *owner = atomic_load_explicit(&region->thread, memory_order_relaxed);
	bool got;

	if (!owner)
		return true;
	/* A guess, to save barriers. */
	if (region->claimed || !deserted(region))
		return false;
	claim(region, me);
	got = atomic_load_explicit(&region->busy, memory_order_acquire) == WEFT__REGION_IDLE && deserted(region);
	if (!got)
		atomic_store_explicit(&region->thread, region->runner, memory_order_relaxed);
	end_claim(region);
	return got;
}

static struct weft__region *adopt_any(struct weft__thread *me, unsigned class, bool alone)
{
	struct weft__region **link = &copy.unlisted[class], *region;

	for (; (region = *link); link = &region->next)
		if ((!alone || deserted(region)) && adopt(region, me)) {
			*link = region->next;
			return region;
		}
	return NULL;
}

/* The caller holds the lock, which orders the stores. From now on the region is the thread's, and no coroutine runs
 * there. */
static void receive(struct weft__region *region, struct weft__thread *me)
{
	region->lister = region->runner = me;
	region->next = NULL;
	atomic_store_explicit(&region->thread, me, memory_order_relaxed);
}

/* With `alone`: a region to which, from now on, only one coroutine of the caller's belongs. */
static struct weft__region *more(struct weft__thread *me, unsigned class, bool alone)
{
	struct weft__region *region;

	lock();
	region = adopt_any(me, class, alone);
	if (region) { /* at once: coroutines of other threads may belong there, and their threads may claim it */
		receive(region, me);
		region->members += alone;
	}
	unlock();
	if (region)
		return region;
	region = make_region(class);
	if (!region)
		return NULL;
	lock();
	receive(region, me);
	region->members += alone;
	unlock();
	return region;
}

/* ---- a region for a first resume ------------------------------------------------------------------------------- */

enum { NEAR = WEFT_CANARY_OR(each_level_looks_at_all, 100000, 16), SHARE = 8 };

/* Another thread that ran in a region of this thread's list keeps it until this thread takes it back. */
static bool take_back(struct weft__region *region, struct weft__thread *me)
{
	int before;

	if (!weft__region_is_idle(region))
		return false;
	before = weft__region_hold_slow(region, me, false);
	if (before >= 0)
		weft__region_leave(region, me, before);
	return before == WEFT__REGION_IDLE;
}

/* Search the first `most` regions of a list. First without the barriers that taking back costs. */
static struct weft__region *free_among(struct weft__region *list, struct weft__thread *me, uint32_t most)
{
	struct weft__region *region;
	uint32_t n;

	for (region = list, n = 0; region && n < most; region = region->next, n++)
		if (weft__region_is_idle(region) && weft__region_is_ours(region, me))
			return region;
	for (region = list, n = 0; region && n < most; region = region->next, n++)
		if (!weft__region_is_ours(region, me) && take_back(region, me))
			return region;
	return NULL;
}

/* Search all regions. `looked_at` is their number at the last such search; the search is repeated when 1/SHARE as many
 * have been made since. */
static struct weft__region *free_of_all(struct weft__thread *me, unsigned class)
{
	struct weft__region_counts *counts = &me->region_counts[class];

	if (counts->made * SHARE < counts->looked_at)
		return NULL;
	counts->made = counts->looked_at = 0;
	for (struct weft__region *region = me->regions[class]; region; region = region->next)
		counts->looked_at++;
	return free_among(me->regions[class], me, UINT32_MAX);
}

/* Make a region and put it into the list: behind `after`, else near its start. */
static struct weft__region *one_more(struct weft__thread *me, unsigned class, struct weft__region *after)
{
	struct weft__region *region = more(me, class, false), **link = &me->regions[class];

	if (!region)
		return NULL;
	if (after)
		link = &after->next;
	else
		for (int n = 0; *link && n < NEAR; n++)
			link = &(*link)->next;
	region->next = *link;
	*link = region;
	me->region_counts[class].made++;
	return region;
}

/*
 * A program that nests n deep has n regions, all busy except the newest. Searching all of them each time would make the
 * n-th n times as expensive as the first. But then the region behind the resumer's is the right region.
 */
struct weft__region *weft__region_search(struct weft__thread *me, unsigned class, struct weft__region *resumers)
{
	struct weft__region *region = free_among(me->regions[class], me, NEAR);

	if (resumers && (resumers->lister != me || resumers->class != class))
		resumers = NULL;
	if (!region && resumers)
		region = free_among(resumers->next, me, NEAR);
	if (!region)
		region = free_of_all(me, class);
	return region ? region : one_more(me, class, resumers);
}

/* ---- trimming -------------------------------------------------------------------------------------------------- */

/* The caller holds the lock. No coroutine belongs there, so the contents are not needed, except the page that has the
 * region's record. */
static size_t drop_frames(struct weft__region *region, struct weft__thread *me)
{
	struct weft__slot *slot = weft__region_slot(region);
	char *end = weft__page_of(slot);
	size_t bytes = 0;

	if (region->claimed || !deserted(region) || !weft__region_is_idle(region))
		return 0;
	claim(region, me);
	if (weft__region_is_idle(region) && deserted(region)) {
		bytes = weft__os_resident(slot->chunk.low, (size_t)(end - slot->chunk.low));
		if (bytes)
			weft__os_drop(slot->chunk.low, (size_t)(end - slot->chunk.low));
	}
	atomic_store_explicit(&region->thread, region->runner, memory_order_relaxed);
	end_claim(region);
	return bytes;
}

size_t weft__regions_trim(struct weft__thread *me)
{
	size_t bytes = 0;

	lock();
	for (struct weft__region *region = copy.all; region; region = region->all)
		bytes += drop_frames(region, me);
	unlock();
	return bytes;
}

/* ---- regions that no coroutine shares -------------------------------------------------------------------------- */

/* A thread that trims discards the frames of deserted regions. So the region is held until a member is counted. */
static bool enter_deserted(struct weft__region *region, struct weft__thread *me)
{
	bool got;

	if (!deserted(region) || weft__region_hold_own(region, me, WEFT__REGION_IDLE) != WEFT__REGION_IDLE)
		return false;
	got = deserted(region);
	region->members += got;
	weft__region_leave(region, me, WEFT__REGION_IDLE);
	return got;
}

struct weft__region *weft__region_alone(struct weft__thread *me, unsigned class)
{
	struct weft__region **link = &me->regions[class], *region;

	for (; (region = *link); link = &region->next)
		if (enter_deserted(region, me))
			break;
	if (region)
		*link = region->next;
	else
		region = more(me, class, true);
	if (region)
		region->lister = NULL;
	return region;
}

static bool unlink_region(struct weft__region **link, struct weft__region *region)
{
	for (; *link; link = &(*link)->next)
		if (*link == region) {
			*link = region->next;
			return true;
		}
	return false;
}

bool weft__region_unlist(struct weft__region *region, struct weft__thread *me)
{
	bool done;

	lock();
	done =
	    unlink_region(region->lister == me ? &me->regions[region->class] : &copy.unlisted[region->class], region);
	if (done)
		region->lister = NULL;
	unlock();
	return done;
}

void weft__region_share(struct weft__region *region, struct weft__thread *me)
{
	struct weft__region **list = &me->regions[region->class];

	lock();
	receive(region, me);
	region->next = *list;
	*list = region;
	unlock();
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

/* Only this thread continues: coroutines that other threads ran are lost. */
static void in_child(void)
{
	for (struct weft__region *region = copy.all; region; region = region->all) {
		region->claimed = NULL;
		if (region->runner == weft__tls_thread)
			continue;
		vacate(region);
		region->runner = NULL; /* else a claim would wait for it */
		atomic_store_explicit(&region->thread, NULL, memory_order_relaxed);
	}
	pthread_cond_init(&copy.idle, NULL);
	unlock();
}

__attribute__((constructor(104))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, in_child);
}

/* ---- the policy ------------------------------------------------------------------------------------------------ */

/* Present if the program is built with AddressSanitizer, ThreadSanitizer. */
void __asan_init(void) __attribute__((weak));
void __tsan_init(void) __attribute__((weak));

static const char *copy_unavailable(void)
{
	if (__asan_init)
		return "AddressSanitizer keeps a record of each stack address, and one address of a copied stack "
		       "serves many coroutines: build without it, or use another policy";
	if (__tsan_init)
		return "ThreadSanitizer keeps a record of each stack address, and one address of a copied stack "
		       "serves many coroutines: build without it, or use another policy";
	return NULL;
}

WEFT__BRINGS(weft__fault_spent);

static enum weft__fault copy_fault(struct weft__slot *slot, char *address)
{
	if (slot->chunk.low == (char *)slot) /* a record */
		return WEFT__FAULT_FOREIGN;
	return weft__contiguous_fault(slot, address);
}

static atomic_size_t committed;

const struct weft__policy weft__copy = {
    .name = "copy",
    .default_size = 1024 * 1024,
    .accounted = false,
    .closed = false,
    .shared = true,
    .committed = &committed,
    .prepare = weft__contiguous_prepare,
    .discard = weft__contiguous_discard,
    .cut = weft__copied_cut,
    .renew = copied_renew,
    .unavailable = copy_unavailable,
    .fault = copy_fault,
};
