/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The arena: one reservation, cut into spans and slots. All changes are made under one lock, taken once per batch of
 * slots; the fault handler reads without it:
 *   span[i]       written before the span's first slot is handed out, then constant
 *   readable[n]   raised when slot number n has its object, lowered before it loses it
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "internal/signal_safe_lock.h"
#include "internal/tsan_hidden.h"
#include "stack/copy.h"
#include "stack/policy.h"

#define SPAN_BYTES ((size_t)1 << arena.span_shift)
#define GRANULE_BYTES ((size_t)1 << WEFT__MIN_STRIDE_SHIFT)

enum {
	COLOURS = 29, /* with 1.5 KB of frames a slot of the last colour still needs one page */
	COLOUR_BYTES = 64,
	RECORD_BYTES = (sizeof(struct weft__slot) + 63) / 64 * 64,
};

struct span {
	atomic_uchar class_plus_1; /* class of its slots; 0: free */
	uint8_t policy;		   /* policy of its slots */
	/* first span of a slot that has several spans; the span itself if slots are smaller than spans */
	uint32_t head;
};

/* The slots of a policy and size. */
struct size_class {
	char *next, *end; /* the rest of the span that slots are cut from */
	size_t cut;	  /* slots ever cut */
	uint32_t *cold;	  /* numbers of slots without memory */
	size_t cold_count;
};

static struct {
	pthread_mutex_t lock;
	char *base;	     /* aligned to a span */
	unsigned span_shift; /* a 64th of the reservation, 64 MiB at most: each policy and size in use takes a span */
	size_t spans;
	atomic_size_t used_spans; /* written under the lock */
	struct span *span;
	atomic_uchar *readable;
	size_t readable_open; /* accessible bytes of `readable`: for the spans up to the last mapped span */
	struct size_class classes[WEFT_POLICY_COUNT][WEFT__CLASSES];
	atomic_size_t reserved[WEFT_POLICY_COUNT];
	bool by_madvise;
	atomic_bool is_open; /* the fields above are set; written under the lock */
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- reserving ----------------------------------------------------------------------------------------- */

/* Reserve as much as possible, up to 4 TiB: halve until the system agrees. Half of a limit is left for the rest of the
 * program, and for a span that is being mapped, which counts twice for a moment. */
static size_t reserve_most(char **start)
{
	enum { SMALLEST = 2 << 20 };

	size_t limit = weft__os_address_limit();
	size_t bytes = (size_t)4 << 40;

	while (limit != SIZE_MAX && bytes > limit / 2)
		bytes /= 2;
	for (; bytes >= SMALLEST; bytes /= 2) {
		*start = weft__os_reserve(bytes);
		if (*start)
			return bytes;
	}
	return 0;
}

/* Allocate the tables for the spans of a reservation. Without memory there are none, and `base` stays NULL. */
static WEFT__COLD bool describe(char *start, size_t bytes)
{
	char *end = start + bytes;
	size_t readable;

	arena.span_shift = WEFT__MAX_SPAN_SHIFT;
	while (SPAN_BYTES > bytes / 64)
		arena.span_shift--;
	start = (char *)(((uintptr_t)start + SPAN_BYTES - 1) & ~(SPAN_BYTES - 1));
	arena.spans = (size_t)(end - start) / SPAN_BYTES;
	readable = arena.spans * SPAN_BYTES / GRANULE_BYTES;
	arena.span = weft__os_alloc(arena.spans * sizeof *arena.span);
	/* Up to half a GiB. If all of it were writable it would count as data, and mlockall would lock it. */
	arena.readable = arena.span ? weft__os_alloc_closed(readable) : NULL;
	if (!arena.readable) {
		if (arena.span)
			weft__os_free(arena.span, arena.spans * sizeof *arena.span);
		return false;
	}
	arena.by_madvise = weft__os_has_guards();
	arena.base = start;
	return true;
}

/* A failure leaves nothing allocated: the next coroutine tries again, when there may be memory. */
static void reserve(void)
{
	char *start;
	size_t bytes = reserve_most(&start);

	if (!bytes)
		return;
	if (!describe(start, bytes)) {
		weft__os_free(start, bytes);
		return;
	}
	/* Release: pairs with the acquire in weft__arena_open. */
	atomic_store_explicit(&arena.is_open, true, memory_order_release);
}

WEFT__LOCK_OF_FILE(arena.lock);

/* A fork while another thread cuts a span must not leave the child with a lock that no thread holds. Not registered at
 * the first use: a fork in the middle of that would make the child register once more, and its own forks take the lock
 * twice. */
__attribute__((constructor(102))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

static bool is_open(void)
{
	/* Acquire: pairs with the release in reserve. */
	return atomic_load_explicit(&arena.is_open, memory_order_acquire);
}

WEFT__COLD const char *weft__arena_open(void)
{
	if (is_open())
		return NULL;
	lock();
	if (!is_open())
		reserve();
	unlock();
	return is_open() ? NULL : "no address space for stacks: raise its limit (ulimit -v, -d, or -l after mlockall)";
}

bool weft__guards_by_madvise(void)
{
	return arena.by_madvise;
}

int weft__guard(char *start, size_t bytes)
{
	return arena.by_madvise ? weft__os_guard(start, bytes) : weft__os_protect(start, bytes, false);
}

int weft__unguard(char *start, size_t bytes)
{
	return arena.by_madvise ? weft__os_unguard(start, bytes) : weft__os_protect(start, bytes, true);
}

/* ---- geometry -------------------------------------------------------------------------------------------- */

/*
 * The distance of guarded slots: a page more than their size, because pages a power of two apart share the sets of the
 * address translation caches. Unguarded slots are adjacent.
 */
static inline size_t stride_of(unsigned class)
{
	size_t size = weft__class_bytes(class);

	return weft__class_is_guarded(class) && size < SPAN_BYTES ? size + WEFT__PAGE : size;
}

/* The number of slots in a span; 1 if a slot has several spans. */
static size_t places_in(unsigned class)
{
	size_t most = SPAN_BYTES / stride_of(class);

	return most ? most : 1;
}

static char *span_start(size_t i)
{
	return arena.base + i * SPAN_BYTES;
}

/* A slot's number: the number of its span times the smallest slots of a span, plus the slot's place in its span. Slots
 * that share pages have no number of their own: they are never made cold, so that nothing is recorded about them. */
static inline uint32_t number_of(const char *start, unsigned class)
{
	size_t i = (size_t)(start - arena.base) >> arena.span_shift;
	size_t place = (size_t)(start - span_start(i)) / stride_of(class);

	return (uint32_t)(i * (SPAN_BYTES / GRANULE_BYTES) + place);
}

static WEFT__COLD char *start_of(uint32_t number, unsigned class)
{
	size_t most = SPAN_BYTES / GRANULE_BYTES;

	return span_start(number / most) + number % most * stride_of(class);
}

/* The start of the slot that holds the address, in a span of slots of this class, and its number. */
static char *holder(const void *address, unsigned class, uint32_t *number)
{
	size_t head = arena.span[(size_t)((const char *)address - arena.base) >> arena.span_shift].head;
	char *span = span_start(head);
	size_t stride = stride_of(class), place = (size_t)((const char *)address - span) / stride;

	*number = (uint32_t)(head * (SPAN_BYTES / GRANULE_BYTES) + place);
	return span + place * stride;
}

/* The start of a slot that shares pages. */
static char *start_of_shared(struct weft__slot *slot, unsigned class)
{
	return (char *)slot + RECORD_BYTES - weft__class_bytes(class);
}

/* `number`: the slot's number, 0 if it shares pages. */
static inline struct weft__slot *slot_numbered(uint32_t number, char *start, unsigned class)
{
	char *end = start + weft__class_bytes(class);

	return (struct weft__slot *)(end - number % COLOURS * COLOUR_BYTES - RECORD_BYTES);
}

static inline struct weft__slot *slot_at(char *start, unsigned class)
{
	return slot_numbered(weft__class_shares_pages(class) ? 0 : number_of(start, class), start, class);
}

_Static_assert(RECORD_BYTES + (COLOURS - 1) * COLOUR_BYTES <= WEFT__PAGE - 1024,
	       "object and colour leave room for the first frames in the slot's last page");

WEFT__INLINE bool has(const void *address)
{
	const char *at = address;

	return at >= arena.base && arena.base && (size_t)(at - arena.base) < arena.spans * SPAN_BYTES;
}

bool weft__arena_has(const void *address)
{
	return has(address);
}

/* A slot that shares pages has its class once it was handed out; before that, its memory reads as zeros. */
static struct weft__slot *shared_slot(char *span, unsigned class, size_t place)
{
	size_t bytes = weft__class_bytes(class);
	struct weft__slot *slot = slot_numbered(0, span + place * bytes, class);

	return (place + 1) * bytes <= SPAN_BYTES && slot->class == class ? slot : NULL;
}

/* The place of the slot that shares pages and contains the byte at this offset in the span. By constants, because
 * compilers turn division by these into multiplication. */
static size_t shared_place(size_t offset, unsigned class)
{
	if (class == WEFT__TINY_CLASS)
		return offset / WEFT__TINY_BYTES;
	return class == WEFT__ROOMY_CLASS ? offset / WEFT__ROOMY_BYTES : offset / WEFT__SMALL_BYTES;
}

static __attribute__((noinline)) struct weft__slot *find_in_span(const void *address)
{
	size_t i = (size_t)((const char *)address - arena.base) >> arena.span_shift;
	unsigned class;
	uint32_t number;
	char *start;

	/* Acquire: pairs with the releases in map_span and weft__arena_take_span. */
	class = atomic_load_explicit(&arena.span[i].class_plus_1, memory_order_acquire);
	if (class == WEFT__SPAN_OF_RECORDS)
		return weft__copied_find(span_start(i), address);
	if (!class || class > WEFT__CLASSES)
		return NULL;
	class -= 1;
	if (weft__class_shares_pages(class))
		return shared_slot(span_start(i), class,
				   shared_place((size_t)((const char *)address - span_start(i)), class));
	start = holder(address, class, &number);
	/* Acquire: pairs with the release in bring_up; the object can be read. */
	if (!atomic_load_explicit(&arena.readable[number], memory_order_acquire))
		return NULL;
	return slot_numbered(number, start, class);
}

struct weft__slot *weft__arena_find(const void *address)
{
	return has(address) ? find_in_span(address) : NULL;
}

/* ---- cutting ---------------------------------------------------------------------------------------------- */

/* Make the part of `readable` accessible that is for the first `spans` spans. */
static int open_readable(size_t spans)
{
	size_t end = (spans * (SPAN_BYTES / GRANULE_BYTES) + WEFT__PAGE - 1) & ~(size_t)(WEFT__PAGE - 1);
	int error = 0;

	if (end > arena.readable_open)
		error = weft__os_open((char *)arena.readable + arena.readable_open, end - arena.readable_open);
	if (!error && end > arena.readable_open)
		arena.readable_open = end;
	return error;
}

static WEFT__COLD int map_span(weft_policy_t policy, unsigned number, struct size_class *class)
{
	const struct weft__policy *how = weft__policies[policy];
	bool open = arena.by_madvise || !how->closed || weft__class_shares_pages(number);
	bool huge = !weft__class_is_guarded(number) && weft__class_bytes(number) <= (size_t)1 << WEFT__HUGE_SHIFT;
	size_t stride = stride_of(number);
	size_t first = arena.used_spans;
	size_t count = stride > SPAN_BYTES ? stride / SPAN_BYTES : 1;
	char *start = span_start(first);
	int error;

	if (count > arena.spans - first)
		return -ENOMEM;
	error = open_readable(first + count);
	if (!error)
		error = weft__os_map(start, count * SPAN_BYTES, how->accounted, open, huge);
	if (!error && how->mapped && !weft__class_shares_pages(number))
		error = how->mapped(start, count * SPAN_BYTES);
	if (error)
		return error;
	arena.used_spans += count;
	class->next = start;
	class->end = start + count * SPAN_BYTES / stride * stride;
	for (size_t i = first; i < first + count; i++) {
		arena.span[i].head = (uint32_t)first;
		arena.span[i].policy = (uint8_t)policy;
		/* Release: pairs with the acquire in weft__arena_find. */
		atomic_store_explicit(&arena.span[i].class_plus_1, (unsigned char)(number + 1), memory_order_release);
	}
	return 0;
}

WEFT__COLD char *weft__arena_take_span(enum weft__span_use use, size_t *bytes)
{
	char *start = NULL;
	size_t i;

	lock();
	i = arena.used_spans;
	if (i < arena.spans && !open_readable(i + 1) && !weft__os_map(span_start(i), SPAN_BYTES, false, true, false)) {
		start = span_start(i);
		*bytes = SPAN_BYTES;
		arena.span[i].head = (uint32_t)i;
		/* Release: pairs with the acquire in weft__arena_find. */
		atomic_store_explicit(&arena.span[i].class_plus_1, (unsigned char)use, memory_order_release);
		arena.used_spans++;
	}
	unlock();
	return start;
}

char *weft__arena_used(size_t *bytes)
{
	*bytes = atomic_load_explicit(&arena.used_spans, memory_order_relaxed) * SPAN_BYTES;
	return arena.base;
}

size_t weft__shared_slot(struct weft__slot *slot, weft_policy_t policy, unsigned class, char **start)
{
	if (weft__policies[policy]->cut) {
		*start = (char *)slot;
		return sizeof(struct weft__copied);
	}
	*start = start_of_shared(slot, class);
	return weft__class_bytes(class);
}

void weft__arena_each_span(enum weft__span_use use, void (*visit)(char *start, size_t bytes))
{
	lock();
	for (size_t i = 0; i < arena.used_spans; i++)
		if (atomic_load_explicit(&arena.span[i].class_plus_1, memory_order_relaxed) == use)
			visit(span_start(i), SPAN_BYTES);
	unlock();
}

/* The start of the next slot: a cold slot, else a new slot. */
static int next_start(weft_policy_t policy, unsigned number, struct size_class *class, char **start)
{
	int error = 0;

	if (class->cold_count) {
		*start = start_of(class->cold[class->cold_count - 1], number);
		return 0;
	}
	if (class->next == class->end)
		error = map_span(policy, number, class);
	*start = class->next;
	return error;
}

static void start_used(weft_policy_t policy, unsigned number, struct size_class *class)
{
	if (class->cold_count) {
		class->cold_count--;
		return;
	}
	class->next += stride_of(number);
	class->cut++;
	atomic_fetch_add_explicit(&arena.reserved[policy], stride_of(number), memory_order_relaxed); /* a statistic */
}

static WEFT__COLD int bring_up(weft_policy_t policy, unsigned number, char *start, struct weft__slot **made)
{
	const struct weft__policy *how = weft__policies[policy];
	uint32_t place = weft__class_shares_pages(number) ? 0 : number_of(start, number);
	struct weft__slot *slot = slot_numbered(place, start, number);
	int error = how->prepare(how, slot, start, start + weft__guard_size(number));

	if (error)
		return error;
	weft__object_clear(slot->object);
	slot->class = (uint8_t)number;
	slot->policy = (uint8_t)policy;
	atomic_store_explicit(&slot->kept, false, memory_order_relaxed);
	/* Release: pairs with the acquire in weft__slot_own. */
	atomic_store_explicit(&slot->memory, WEFT__INTACT, memory_order_release);
	if (!weft__class_shares_pages(number)) /* release: pairs with the acquire in weft__arena_find */
		atomic_store_explicit(&arena.readable[place], 1, memory_order_release);
	*made = slot;
	return 0;
}

int weft__arena_cut(weft_policy_t policy, unsigned number, unsigned count, struct weft__slot **list)
{
	struct size_class *class = &arena.classes[policy][number];
	struct weft__slot *slot;
	int made = 0, error = 0;
	char *start;

	*list = NULL;
	lock();
	/* A program with one coroutine should not pay for thirty-two; and cold slots may not be needed again. */
	if (count > class->cut + 1)
		count = (unsigned)class->cut + 1;
	if (class->cold_count || (weft__policies[policy]->tight && weft__policies[policy]->tight()))
		count = 1;
	while ((unsigned)made < count) {
		error = next_start(policy, number, class, &start);
		if (!error)
			error = bring_up(policy, number, start, &slot);
		if (error)
			break;
		start_used(policy, number, class);
		slot->next = *list;
		*list = slot;
		made++;
	}
	unlock();
	return made ? made : error;
}

WEFT__COLD bool weft__arena_chill(struct weft__slot *slot, weft_policy_t policy, unsigned number)
{
	struct size_class *class = &arena.classes[policy][number];
	const struct weft__policy *how = weft__policies[policy];
	bool done = false;
	uint32_t place;
	char *start;

	if (weft__class_shares_pages(number) || how->cut) /* no pages of its own */
		return false;
	start = holder(slot, number, &place);
	lock();
	if (!class->cold)
		class->cold = weft__os_alloc(arena.spans * SPAN_BYTES / stride_of(number) * sizeof *class->cold);
	if (class->cold) {
		/* Relaxed: the slot is free; a fault in it now is a use after free in either case. */
		atomic_store_explicit(&arena.readable[place], 0, memory_order_relaxed);
		if (!arena.by_madvise) /* else each would keep a mapping */
			(void)weft__os_protect(start, weft__class_bytes(number), true);
		if (atomic_load_explicit(&slot->memory, memory_order_relaxed) != WEFT__DROPPED)
			how->discard(how, slot);
		class->cold[class->cold_count++] = place;
		done = true;
	}
	unlock();
	return done;
}

WEFT__COLD int weft__arena_revive(struct weft__slot *slot, weft_policy_t policy, unsigned class)
{
	struct weft__slot *same;
	uint32_t number;

	if (weft__policies[policy]->cut) {
		weft__policies[policy]->renew(policy, class, slot);
		return 0;
	}
	return bring_up(policy, class,
			weft__class_shares_pages(class) ? start_of_shared(slot, class) : holder(slot, class, &number),
			&same);
}

void weft__arena_forget(struct weft__slot *slot, weft_policy_t policy, unsigned class)
{
	if (weft__class_shares_pages(class) || weft__policies[policy]->cut)
		return;
	weft__os_drop(weft__page_of(slot), WEFT__PAGE);
	if (weft__policies[policy]->dropped)
		weft__policies[policy]->dropped(slot);
}

size_t weft__arena_reserved(weft_policy_t policy)
{
	return atomic_load_explicit(&arena.reserved[policy], memory_order_relaxed);
}

static void visit_span(size_t i, unsigned class, void (*visit)(struct weft__slot *slot))
{
	uint32_t first = number_of(span_start(i), class);

	for (uint32_t place = 0; place < places_in(class); place++)
		if (weft__class_shares_pages(class)) {
			struct weft__slot *slot = shared_slot(span_start(i), class, place);

			if (slot)
				visit(slot);
		} else if (atomic_load_explicit(&arena.readable[first + place], memory_order_relaxed))
			visit(slot_at(start_of(first + place, class), class));
}

void weft__arena_each(void (*visit)(struct weft__slot *slot))
{
	lock(); /* which orders the loads */
	for (size_t i = 0; i < arena.used_spans; i++) {
		unsigned class = atomic_load_explicit(&arena.span[i].class_plus_1, memory_order_relaxed);

		if (class && class <= WEFT__CLASSES &&
		    arena.span[i].head == i) /* a slot of several spans: only the first span */
			visit_span(i, class - 1, visit);
	}
	unlock();
}

/* ---- walking without the lock ---------------------------------------------------------------------------------- */

/* Visit the slots from `place` on. Returns the place where it stopped, or places_in at the end. */
static size_t walk_span(size_t i, unsigned class, size_t place, bool (*visit)(struct weft__slot *slot))
{
	uint32_t first = number_of(span_start(i), class);

	for (; place < places_in(class); place++)
		/* Acquire: pairs with the release in bring_up; the object can be read. */
		if (atomic_load_explicit(&arena.readable[first + place], memory_order_acquire) &&
		    !visit(slot_at(start_of(first + (uint32_t)place, class), class)))
			break;
	return place;
}

/* Does the span begin slots of the policy that have pages of their own? *class is their class. */
static bool walks(size_t i, weft_policy_t policy, unsigned *class)
{
	/* Acquire: pairs with the release in map_span. */
	unsigned found = atomic_load_explicit(&arena.span[i].class_plus_1, memory_order_acquire);

	*class = found - 1;
	return found && !weft__class_shares_pages(*class) && arena.span[i].policy == policy && arena.span[i].head == i;
}

WEFT__COLD void weft__arena_walk(weft_policy_t policy, bool (*visit)(struct weft__slot *slot))
{
	static size_t next_span[WEFT_POLICY_COUNT], next_place[WEFT_POLICY_COUNT];
	size_t spans = atomic_load_explicit(&arena.used_spans, memory_order_acquire);
	size_t i = next_span[policy], place = next_place[policy];
	unsigned class;

	/* One more than there are spans: the first span is continued from its start at the end. */
	for (size_t n = 0; spans && n <= spans; n++) {
		if (i >= spans)
			i = 0;
		if (walks(i, policy, &class)) {
			place = walk_span(i, class, place, visit);
			if (place < places_in(class))
				break;
		}
		place = 0;
		i++;
	}
	next_span[policy] = i;
	next_place[policy] = place;
}

/* State of a count by the calling thread. */
static __thread struct {
	weft_policy_t policy;
	char *counted; /* counted up to here: slots may share pages */
	size_t bytes;
} resident __attribute__((tls_model("initial-exec")));

static void add_resident(struct weft__slot *slot)
{
	char *from = weft__page_of(slot->chunk.low), *end = weft__slot_end(slot);

	if (slot->policy != resident.policy)
		return;
	if (weft__class_shares_pages(slot->class) && from < resident.counted)
		from = resident.counted;
	if (from >= end)
		return;
	resident.bytes += weft__os_resident(from, (size_t)(end - from));
	resident.counted = end;
}

size_t weft__arena_resident(weft_policy_t policy)
{
	resident.policy = policy;
	resident.counted = NULL;
	resident.bytes = 0;
	weft__arena_each(add_resident);
	return resident.bytes;
}
