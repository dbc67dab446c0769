/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract of a stack policy, and the slots that it works on. Each policy has a file; other code never asks which
 * policy a slot has.
 *
 * Design of the stack layer
 *  1. One arena of reserved address space, cut into spans; a span belongs to one policy and one size class, and is
 *     cut into slots of equal stride. From an address, span and slot follow by division: the fault handler
 *     needs no lock and no table that moves.
 *  2. A slot: [guard][stack, growing down][struct weft__slot][unused]. The coroutine object is in the slot: creating a
 *     coroutine is taking a slot from a list. Sizes are powers of two, so without care equal frames of many stacks
 *     would meet in the same cache sets, and their pages in the same sets of the address translation caches. Hence
 *     0 to 40 unused cache lines at the slot's end, differing between neighbours (the object and the first frames are
 *     still in one page), and one unused page between slots.
 *  3. A free slot moves: thread's bin (no lock) -> class's warm list (a lock per batch) -> cold list (pages discarded).
 *     Bins and lists are arrays of pointers, so that a cached slot may lose its memory in place: see reclaim.c.
 *  4. Memory of the arena is never unmapped: through a stale pointer to a coroutine, code reads an object that is
 *     marked as free.
 * Targets: create + run + delete, warm, 20 ns; 10^6 suspended coroutines of 256 KiB at 4.8 KB each: one page of the
 * slot and an eighth of a page-table page, because 2 MiB of address space share one.
 */
#ifndef WEFT_SRC_STACK_POLICY_H
#define WEFT_SRC_STACK_POLICY_H

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <weft/stack.h>

#include "arch/chunk.h"
#include "internal/link_part.h"
#include "os/os.h"
#include "stack/callbacks.h"

enum {
	WEFT__MIN_STRIDE_SHIFT = 13, /* 8 KiB */
	WEFT__SIZES = 18,	     /* up to 1 GiB */
	/* sizes with guard, sizes without guard, sizes of which half is guard, and: */
	WEFT__WIDE_CLASS = 2 * WEFT__SIZES,
	WEFT__TINY_CLASS = 3 * WEFT__SIZES, /* several to a page: first chunks */
	WEFT__ROOMY_CLASS,		    /* also first chunks, with room for a few calls */
	/* several to a page: later chunks, two linked behind a tiny or roomy chunk */
	WEFT__SMALL_CLASS,
	WEFT__CALLERS_CLASS, /* memory of the caller's: in no list or span; see caller_memory.c */
	WEFT__CLASSES,
	WEFT__TINY_BYTES = 832,
	WEFT__ROOMY_BYTES = 1216,
	WEFT__SMALL_BYTES = 1088,   /* all odd multiples of a cache line: neighbours differ in their cache sets */
	WEFT__TINY_LARGEST = 1024,  /* a larger size than this asks for a stack with frames, ... */
	WEFT__ROOMY_LARGEST = 2048, /* ... and a larger size than this for pages */
	WEFT__HUGE_SHIFT = 15,	    /* unguarded slots up to 32 KiB share huge pages */
#ifdef WEFT_FREESTANDING
	WEFT__LEAST_STACK = 1024, /* in memory of the caller's */
#else
	WEFT__LEAST_STACK = 4096, /* also in memory of the caller's: the library needs so much under a lock */
#endif
#ifdef WEFT_TINY
	WEFT__MAX_SPAN_SHIFT = 20,
	WEFT__BIN_LIMIT = 4,
	WEFT__WARM_LIMIT = 8,
#else
	WEFT__MAX_SPAN_SHIFT = 26,
	WEFT__BIN_LIMIT = 128,
	WEFT__WARM_LIMIT = 16384,
#endif
};

/*
 * Invariant: low is the guard's size above the slot's first byte; low <= open < the record < the slot's end.
 * In use: `owner` is the coroutine on the stack: the object, or a coroutine in other storage. Free: NULL.
 */
struct weft__slot {
	WEFT__ALIGNAS(64) char object[WEFT__OBJECT_BYTES];
	void *_Atomic owner; /* read by the fault handler of any thread */
	__extension__ union {
		struct weft__chunk chunk; /* low: lowest byte that may ever be touched; limit: NULL unless linked */
		struct weft__slot *next;  /* in a list of newly cut slots, or of landings */
	};
	char *_Atomic open; /* lowest byte that may be touched now; moves only down while the slot is in use */
	__extension__ union {
		char *frames; /* linked: where frames begin, in a chunk that is not the first: see weft__frames_of */
		struct {
			atomic_uint opening;	   /* commit: threads that are moving `open` */
			_Atomic uint32_t borrowed; /* commit: bytes that it took of the reserve */
		};
	};
	uint8_t policy, class;
	/* Is the slot in a bin or a warm list? Who owns its memory? See reclaim.c. */
	_Atomic bool kept;
	_Atomic uint8_t memory;
	uint32_t valgrind_id;
};

/* The slot of a stack in memory of the caller's. */
struct weft__callers {
	struct weft__slot slot; /* its class is WEFT__CALLERS_CLASS */
	uint64_t mark;		/* valid while it is in use: see caller_memory.c */
	char *memory;		/* the caller's address */
	size_t bytes;
	size_t guard;	 /* bytes below `low` that are closed */
	bool is_watched; /* there is a pattern below `low` */
	bool is_all;	 /* WEFT_MEMORY_ONLY */
};

/* Values of `memory`. A slot without memory reads as zeros. */
enum { WEFT__DROPPED, WEFT__INTACT, WEFT__RECLAIMED };

/* The result of handling a fault in a slot. */
enum weft__fault {
	WEFT__FAULT_OPENED,	 /* retry the access */
	WEFT__FAULT_RACED,	 /* another thread opened the page, or is about to; retry the access */
	WEFT__FAULT_OVERFLOW,	 /* the stack is too small: report it and end the process */
	WEFT__FAULT_BUDGET,	 /* the coroutine fails */
	WEFT__FAULT_MEMORY,	 /* the coroutine fails */
	WEFT__FAULT_RESERVATION, /* the coroutine fails */
	WEFT__FAULT_FOREIGN,	 /* not a fault of the library's */
};

struct weft__policy {
	const char *name;
	size_t default_size;
	bool accounted; /* does the kernel count whole slots against its commit limit? */
	bool closed;	/* are new slots closed? */
	bool linked;	/* are stacks made of chunks? Then code must be instrumented, or run on system stacks */
	bool tiny;	/* may a stack be smaller than a page? */
	bool shared;	/* do coroutines take turns in a region? Then a thread cannot use it */
	/* May a stack be in memory of the caller's? Never; with any low end; with a closed page at the low end. */
	enum weft__callers_use { WEFT__CALLERS_NEVER, WEFT__CALLERS_ANY, WEFT__CALLERS_CLOSED } callers;

	bool learns; /* does it adapt to the stack that coroutines of the same function needed? See needs.h */

	atomic_size_t *committed; /* bytes of prepared slots that may be touched */

	/* Called when a span was mapped for slots of this policy with pages of their own. 0 or a negative errno. May be
	 * absent. */
	int (*mapped)(char *start, size_t bytes);
	/* Make a fresh or cold slot usable from `low` up, guarded from `start` to there, and set the fields open and
	 * chunk. `slot` is the future place of its object, not readable before. Negative errno: nothing changed. */
	int (*prepare)(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low);
	/* Discard the memory of a free slot, the object's included. Returns the bytes. Async-signal-safe. */
	size_t (*discard)(const struct weft__policy *self, struct weft__slot *slot);
	/* Called when the page of the slot's record was discarded. Async-signal-safe. May be absent. */
	void (*dropped)(struct weft__slot *slot);
	/* Returns the lowest page that the slot's stacks have written to. Async-signal-safe. Only if it `learns`. */
	char *(*lowest_written)(const struct weft__slot *slot);
	/* Discard the memory of a suspended stack below `to`, the start of a page below which no frame needs anything.
	 * Returns the bytes. May be absent. */
	size_t (*trim)(struct weft__slot *slot, char *to);
	/* Only for policies whose coroutines have no stack of their own: make at most `count` slots that hold an object
	 * and nothing else, as weft__arena_cut does for all other policies. */
	int (*cut)(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);
	/* Prepare such a slot again after its memory was discarded. Only with `cut`. */
	void (*renew)(weft_policy_t policy, unsigned class, struct weft__slot *slot);
	/* A thread's hand is NULL now: return when no other thread reads the previous hand. May be absent: no other
	 * thread reads hands. */
	void (*wait_for_lookers)(void);
	/* Is memory so short that no slot should be prepared ahead of need? May be absent. */
	bool (*tight)(void);
	/* Open all of a slot, for a thread. 0 or a negative errno. May be absent. */
	int (*fill)(struct weft__slot *slot);
	/* NULL, or why the policy cannot be used here; may be absent. */
	const char *(*unavailable)(void);
	/* A fault at `address`, above the slot's first byte. Runs in a signal handler: only async-signal-safe calls. */
	enum weft__fault (*fault)(struct weft__slot *slot, char *address);
};

/* policies.c has stand-ins for policies that the program is linked without. */
#define WEFT__POLICY(constant, name, linked) extern const struct weft__policy weft__##name;
#include <weft/detail/policies.def>
#undef WEFT__POLICY
extern const struct weft__policy *const weft__policies[WEFT_POLICY_COUNT]; /* [0] is NULL */

/* The policy whose coroutines can be cloned. */
static const weft_policy_t weft__policy_that_clones = WEFT_COPY;

/* ---- geometry ------------------------------------------------------------------------------------------- */

/* The room of a small chunk above its limit: see weft__frames_of. */
enum { WEFT__SMALL_ROOM = WEFT__SMALL_BYTES - ((int)sizeof(struct weft__slot) - WEFT__OBJECT_BYTES) - WEFT_TINY_SLACK };

_Static_assert(offsetof(struct weft__slot, chunk) == WEFT_CHUNK_TOP, "edit src/arch/chunk.h");
_Static_assert(WEFT__SPENT_MEMORY == WEFT_SPENT_MEMORY, "the same");
_Static_assert(offsetof(struct weft__slot, frames) - offsetof(struct weft__slot, chunk) == WEFT_CHUNK_FRAMES,
	       "the same");
_Static_assert(offsetof(struct weft__slot, chunk) - offsetof(struct weft__slot, owner) == WEFT_CHUNK_OWNER, "the same");

static inline size_t weft__class_bytes(unsigned class)
{
	static const uint16_t shared[] = {WEFT__TINY_BYTES, WEFT__ROOMY_BYTES, WEFT__SMALL_BYTES};

	if (weft__unlikely(class >= WEFT__TINY_CLASS))
		return shared[class - WEFT__TINY_CLASS];
	return (size_t)1 << (WEFT__MIN_STRIDE_SHIFT + class % WEFT__SIZES);
}

/* Several of these slots share a page: they have no guard, and their memory cannot be discarded alone. Memory of the
 * caller's is treated as such a slot: all of it is open, and none of it is discarded. */
static inline bool weft__class_shares_pages(unsigned class)
{
	return class >= WEFT__TINY_CLASS;
}

static inline bool weft__class_is_guarded(unsigned class)
{
	return class - WEFT__SIZES >= WEFT__SIZES && !weft__class_shares_pages(class);
}

/* The start of a slot's frames. A small chunk never holds a coroutine: its frames begin where other slots have the
 * object. */
static inline char *weft__frames_of(struct weft__slot *slot, unsigned class)
{
	return class == WEFT__SMALL_CLASS ? slot->object + sizeof slot->object : slot->object;
}

static inline struct weft__slot *weft__slot_of(struct weft__chunk *chunk)
{
	return (struct weft__slot *)(void *)((char *)chunk - WEFT_CHUNK_TOP);
}

/* The end of the page that has the slot's record, and so of the used part of the slot. */
static inline char *weft__slot_end(const struct weft__slot *slot)
{
	return (char *)(((uintptr_t)slot | (WEFT__PAGE - 1)) + 1);
}

/* Guards: a frame that does not touch every page must not skip the guard. Address space is cheap, and neighbours share
 * page-table entries. */
static inline size_t weft__guard_size(unsigned class)
{
	size_t size = weft__class_bytes(class) / 8;

	if (class >= WEFT__WIDE_CLASS)
		return weft__class_shares_pages(class) ? 0 : weft__class_bytes(class) / 2;
	if (class >= WEFT__SIZES)
		return 0;
	return size < WEFT__PAGE ? WEFT__PAGE : size > 65536 ? 65536 : size;
}

static inline bool weft__is_callers(const struct weft__slot *slot)
{
	return slot->class == WEFT__CALLERS_CLASS;
}

static inline const struct weft__callers *weft__callers_of(const struct weft__slot *slot)
{
	return (const struct weft__callers *)(const void *)slot;
}

/* Bytes of the guard below `low`. */
static inline size_t weft__slot_guard(const struct weft__slot *slot)
{
	return weft__unlikely(weft__is_callers(slot)) ? weft__callers_of(slot)->guard : weft__guard_size(slot->class);
}

static inline char *weft__slot_start(const struct weft__slot *slot)
{
	return slot->chunk.low - weft__slot_guard(slot);
}

/* pool.c: bytes of the whole slot. For messages, and for linking a chunk. */
WEFT__COLD size_t weft__slot_bytes(const struct weft__slot *slot);

/* ---- helpers that policies share ---------------------------------------------------------------------------- */

/* Guard the range by the mechanism in use. Async-signal-safe. */
int weft__guard(char *start, size_t bytes);
int weft__unguard(char *start, size_t bytes);
bool weft__guards_by_madvise(void);

/* ---- arena.c: from addresses to slots ------------------------------------------------------------------------- */

/* Reserve the arena, unless it is reserved. NULL, or why that failed; the next call tries again. */
const char *weft__arena_open(void);

/* Prepare at most `count` slots, cold slots first, as a list. Their number, or a negative errno if there is none. */
int weft__arena_cut(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);

/* Async-signal-safe. The slot whose range contains the address, if its object is readable; else NULL. */
struct weft__slot *weft__arena_find(const void *address);

/* Async-signal-safe. Is the address in the arena? */
bool weft__arena_has(const void *address);

/* A span that holds no stacks: fresh zero pages, never unmapped. NULL if there is none. */
enum weft__span_use { WEFT__SPAN_OF_BUFFERS = WEFT__CLASSES + 1, WEFT__SPAN_OF_RECORDS, WEFT__SPAN_OF_BLOCKS };
char *weft__arena_take_span(enum weft__span_use use, size_t *bytes);
/* The start of the arena, and the bytes of its spans in use. */
char *weft__arena_used(size_t *bytes);
void weft__arena_each_span(enum weft__span_use use, void (*visit)(char *start, size_t bytes));

/* Discard a free slot's memory, unless it has none, and put the slot on the cold list. False if the list has no room,
 * or if slots of this class have no pages of their own. */
bool weft__arena_chill(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Prepare a slot again after its memory was discarded. 0 or a negative errno. */
int weft__arena_revive(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Discard the page of the record of such a slot, to which a failed attempt to prepare it has written. */
void weft__arena_forget(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Async-signal-safe, one caller at a time. Visit the policy's slots that have pages of their own and an object: each
 * once, beginning where the last walk ended, until `visit` returns false. */
void weft__arena_walk(weft_policy_t policy, bool (*visit)(struct weft__slot *slot));

/* Bytes of memory behind the slots of a policy; asks the kernel about each slot. */
size_t weft__arena_resident(weft_policy_t policy);

/* Visit the slots that have their objects, in use or not. */
void weft__arena_each(void (*visit)(struct weft__slot *slot));

/* Bytes cut into slots. */
size_t weft__arena_reserved(weft_policy_t policy);

/* ---- pool.c: free slots --------------------------------------------------------------------------------------- */

/*
 * A thread's cached slots of a policy and class. Only the thread writes. Other threads read `tally`: its low half is
 * the number of slots in the bin, its high half counts the slots that were ever put into it.
 */
struct weft__bin {
	struct weft__slot **slots;
	_Atomic uint64_t tally;
	uint32_t limit;
	uint8_t policy, class;
};
enum { WEFT__BIN_ROOMS = 2433 }; /* places in all bins of a policy: the sum of their limits, and one more for each */
#ifdef WEFT_FREESTANDING	 /* one bin, always empty: see freestanding/system.c */
enum { WEFT__BIN_POLICIES = 1, WEFT__BIN_CLASSES = 1, WEFT__BIN_PLACES = 1 };
#else
enum { WEFT__BIN_POLICIES = WEFT_POLICY_COUNT, WEFT__BIN_CLASSES = WEFT__CLASSES, WEFT__BIN_PLACES = WEFT__BIN_ROOMS };
#endif
static const uint64_t weft__bin_came = (uint64_t)1 << 32;

/* A free buffer: see buffers.h. Only the first buffer of a batch uses `batch` and `in_batch`. */
struct weft__buffer {
	struct weft__buffer *next, *batch;
	uint32_t in_batch;
};
struct weft__buffer_list {
	struct weft__buffer *head;
	uint32_t count, limit;
};
enum { WEFT__BUFFER_CLASSES = 64 + 8 };

struct weft__region;

/*
 * The stack layer's state of a thread. In the list of all threads from attach to exit. A record is never unmapped,
 * because the fault handler of any thread may read its tallies: after the thread's exit it serves another thread, and
 * keeps its bins and their tallies.
 */
struct weft__thread {
	_Atomic uint32_t entering;	       /* copy: this thread may be about to take a region; see copy.h */
	struct weft__bin *default_bin;	       /* weft_create's bin: the default policy and size */
	bool has_hand;			       /* false if a stack is not one piece of memory, or is watched */
	const struct weft__hand *_Atomic hand; /* the thread's hand. NULL: the thread ended, or a fork left it behind */
	_Atomic uint64_t copied;	       /* copy: bytes that it has copied */
	struct weft__region *waits_for;
	struct weft__region *regions[WEFT__CLASSES]; /* the thread's own regions by size, lowest first */
	struct weft__region_counts {
		uint32_t made, looked_at;
	} region_counts[WEFT__CLASSES]; /* see copy.c */
	struct weft__buffer_list buffers[WEFT__BUFFER_CLASSES];
	struct weft__chunk **system; /* the thread's idle system stack */
	char *slab, *slab_end;	     /* the part of a slab that is still to be cut into blocks of heap frames */
	size_t slabs;		     /* bytes of all slabs that the thread had */
	unsigned blocks_wanted;	     /* how often other threads had asked for blocks when it last gave some */
	struct weft__thread *next, *previous;
	void *alt_stack;
	struct weft__slot *root; /* the slot that its function runs on: see weft_thread_create */
	bool owner_used;
	void *_Atomic owner_local; /* thread-local memory of the layer above; NULL: none, or a fork left it behind */
	uint32_t valgrind_id;
	bool in_hook;
	/* The fields from here on keep their values when the record serves another thread. */
	struct weft__bin bins[WEFT__BIN_POLICIES][WEFT__BIN_CLASSES];
	struct weft__thread *record;					/* the next of all records; constant */
	struct weft__thread *spare;					/* the next record that serves no thread */
	struct weft__slot *slots[WEFT__BIN_POLICIES][WEFT__BIN_PLACES]; /* arrays of the bins */
	char owner[WEFT__OWNER_BYTES] __attribute__((aligned(64)));	/* memory of the layer above, zero at first */
	/* Failure hooks run in the lower part; above it is the stack for growing linked stacks. */
	char small_stack[WEFT_HOOK_STACK + WEFT_SMALL_STACK] __attribute__((aligned(64)));
};

/* The state that most creations need of the thread. */
struct weft__hand {
	_Atomic uintptr_t slot; /* a slot taken out of the default bin, for the next creation. Other threads count it */
	uint64_t next_id, last_id;
};
/* Values of `slot` that are no slot. CLOSED: the hand never holds a slot, and weft_create must not take a slot out of
 * the bin by itself; perhaps there are no bins yet. */
enum weft__hand_state { WEFT__HAND_CLOSED, WEFT__HAND_EMPTY };
extern __thread struct weft__hand weft__tls_hand __attribute__((tls_model("initial-exec")));

_Static_assert(offsetof(struct weft__slot, class) == offsetof(struct weft__slot, policy) + 1 &&
		   offsetof(struct weft__bin, class) == offsetof(struct weft__bin, policy) + 1,
	       "policy and class are compared together");

/* Is the slot of the default bin's policy and class? */
static inline bool weft__is_default(const struct weft__slot *slot, const struct weft__thread *thread)
{
	uint16_t usual, here;

	memcpy(&usual, &thread->default_bin->policy, sizeof usual);
	memcpy(&here, &slot->policy, sizeof here);
	return here == usual;
}

/* The bin for stacks of a policy and class. */
static inline struct weft__bin *weft__bin_of(struct weft__thread *thread, unsigned policy, unsigned class)
{
#ifdef WEFT_FREESTANDING
	(void)policy, (void)class;
	return &thread->bins[0][0];
#else
	return &thread->bins[policy][class];
#endif
}

/* Must frames be reported to Memcheck? Testing this flag costs less than a report. Constant once a thread is
 * attached. */
extern bool weft__on_memcheck;

extern __thread struct weft__thread *weft__tls_thread __attribute__((tls_model("initial-exec")));

/* Make the calling thread's record; NULL if there is no memory. */
struct weft__thread *weft__thread_attach(void);

/* Call fn for each attached thread's record. No thread detaches meanwhile, so thread-local memory stays readable. */
WEFT__COLD void weft__each_thread(void (*fn)(struct weft__thread *thread));

static inline struct weft__thread *weft__thread(void)
{
	struct weft__thread *thread = weft__tls_thread;

	return weft__likely(thread) ? thread : weft__thread_attach();
}

/* The class of a size as in weft_attr_t; WEFT__CLASSES if no class is so large. */
unsigned weft__class(weft_policy_t policy, size_t size, bool guard);
/* The class of a size with a guard of at least `guard` bytes. The rest is no smaller than with the usual guard. */
unsigned weft__class_with_guard(weft_policy_t policy, size_t size, size_t guard);

/* The slot on top of a bin needs work before use, or the bin is empty: prepare the slot, or fill the bin and take a
 * slot. NULL and a negative errno in *error if that fails. */
struct weft__slot *weft__slot_take_slow(struct weft__bin *bin, int *error);

static inline uint64_t weft__bin_tally(const struct weft__bin *bin)
{
	return atomic_load_explicit(&bin->tally, memory_order_relaxed);
}

/* Only the calling thread writes the tally, so a change needs no atomic instruction. */
static inline void weft__bin_set_tally(struct weft__bin *bin, uint64_t tally)
{
	atomic_store_explicit(&bin->tally, tally, memory_order_release); /* pairs with the acquire in weft__pool_came */
}

/* After this call the slot belongs to the calling thread. False: it must first wait for the slot's memory, or prepare
 * it. */
static inline bool weft__slot_own(struct weft__slot *slot)
{
	atomic_store_explicit(&slot->kept, false, memory_order_relaxed);
	/* Pairs with the barrier in reclaim.c: the reclaimer sees this store, or the load here sees its claim. */
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&slot->memory, memory_order_acquire) == WEFT__INTACT;
}

/* Take the top slot of a bin if it is usable without further work; else NULL. */
static inline struct weft__slot *weft__slot_take_kept(struct weft__bin *bin)
{
	uint64_t tally = weft__bin_tally(bin);
	struct weft__slot *slot;

	if (weft__unlikely(!(uint32_t)tally))
		return NULL;
	slot = bin->slots[(uint32_t)tally - 1];
	if (weft__unlikely(!weft__slot_own(slot)))
		return NULL;
	weft__bin_set_tally(bin, tally - 1);
	return slot;
}

static inline uintptr_t weft__recent_slot(const struct weft__hand *hand)
{
	return atomic_load_explicit(&hand->slot, memory_order_relaxed);
}

static inline void weft__set_hand(enum weft__hand_state state)
{
	atomic_store_explicit(&weft__tls_hand.slot, state, memory_order_relaxed);
}

/* Tests overwrite frames of ended coroutines, so that a use of them fails. */
#ifdef WEFT_TINY
void weft__poison(struct weft__slot *slot);
#else
static inline void weft__poison(struct weft__slot *slot)
{
	(void)slot;
}
#endif

/* The hand must be empty. The slot's owner has ended, but the slot still names it. */
static inline void weft__put_recent_slot(struct weft__slot *slot)
{
	weft__poison(slot);
	/* From here on a reclaimer may take its memory. Release: so that the reclaimer sees the slot's fields. */
	atomic_store_explicit(&slot->kept, WEFT_NO_CANARY(slot_at_hand_keeps_its_memory), memory_order_release);
	atomic_store_explicit(&weft__tls_hand.slot, (uintptr_t)slot, memory_order_relaxed);
}

/* Move the slot in the hand, if there is one, to its bin. */
void weft__give_recent_slot(void);

/* Take a free slot, prepared, without an owner. */
static inline struct weft__slot *weft__slot_take(struct weft__bin *bin, int *error)
{
	struct weft__slot *slot = weft__slot_take_kept(bin);

	return weft__likely(slot != NULL) ? slot : weft__slot_take_slow(bin, error);
}

/* Cache a slot whose owner is gone. */
void weft__slot_give(struct weft__slot *slot);

/* Async-signal-safe, only under reclaim.c's lock. If two calls return the same number, no slot of the policy was cached
 * in between. 0: a thread's hand has a slot with memory. */
uint64_t weft__pool_came(weft_policy_t policy);

/* ---- caller_memory.c: slots in memory of the caller's ------------------------------------------------------------ */

/* A caller asks for a stack of this kind in this memory. */
struct weft__callers_wish {
	weft_policy_t policy; /* WEFT_DEFAULT_POLICY: the default for memory of the caller's */
	void *memory;
	size_t bytes;
	size_t guard; /* bytes wanted, 0: none */
	bool watched; /* with a pattern at the low end, if the policy can use it */
	bool only;    /* WEFT_MEMORY_ONLY */
};
/* Returns a slot in that memory, without an owner; NULL and a negative errno. */
WEFT__OF_CALLERS struct weft__slot *weft__callers_take(const struct weft__callers_wish *wish, int *error);
/* After this call the memory is the caller's again. `bin`: NULL, or the bin that has the slot on top, which loses
 * it. */
WEFT__OF_CALLERS WEFT__COLD void weft__callers_give(struct weft__slot *slot, struct weft__bin *bin);
/* The number of bytes that hold, at any address, so many bytes of stack, and no fewer than the policy needs: as
 * weft_memory_size. */
WEFT__OF_CALLERS size_t weft__callers_size(const struct weft__callers_wish *wish, size_t stack);
/* NULL, or fills in the line that explains why weft__callers_take would fail. */
struct weft__line;
WEFT__OF_CALLERS bool weft__callers_unfit(const struct weft__callers_wish *wish, struct weft__line *line);
/* `slot` may be any address. Is it a slot of the library's that `owner` uses? */
WEFT__OF_CALLERS bool weft__callers_has(const struct weft__slot *slot, const void *owner);
/* Did frames of this slot, which end at `sp`, write below the slot's low end? */
WEFT__OF_CALLERS bool weft__callers_overflowed(const struct weft__slot *slot, const char *sp);
/* pool.c: number of slots of a policy that are in use. */
extern atomic_size_t weft__callers_live[WEFT_POLICY_COUNT];
/* Is the address in the slot's guard? */
static inline bool weft__callers_closed(const struct weft__slot *slot, const char *address)
{
	return address < slot->chunk.low && slot->chunk.low - address <= (ptrdiff_t)weft__callers_of(slot)->guard;
}

/* ---- reclaim.c: memory of slots that are kept ------------------------------------------------------------------ */

/* Async-signal-safe, takes no lock of another file. Take the memory of cached slots of a policy away, in whatever bins
 * or lists they are, until that is `bytes` bytes. Returns the bytes; 0: no cached slot has memory. With `bytes` 0 it
 * waits until earlier callers have finished. */
size_t weft__reclaim(weft_policy_t policy, size_t bytes);

/* Wait until no reclaimer claims the memory of the slot, which the calling thread owns. True: the memory is intact. */
bool weft__slot_settle(struct weft__slot *slot);

/* Discard the part that a suspended stack, whose frames end at `sp`, does not use. Returns the bytes. */
size_t weft__stack_trim(struct weft_link *link, struct weft__slot *slot, char *sp);

uint64_t weft__more_ids(void);

static inline bool weft__has_id(void)
{
	return weft__tls_hand.next_id != weft__tls_hand.last_id;
}

static inline uint64_t weft__new_id(void)
{
	return weft__likely(weft__has_id()) ? weft__tls_hand.next_id++ : weft__more_ids();
}

/* ---- linked.c, heap.c, mmu_probes.c: stacks of chunks ------------------------------------------------------------ */

/* Begin a stack without frames in a newly taken slot. For slots of linked policies. */
WEFT__OF_LINKED void weft__chunks_begin(struct weft_link *link, struct weft__slot *slot);
/* Free every chunk except the first, `slot` (NULL: that too), and the system stacks and arrays of its frames. */
WEFT__OF_LINKED void weft__chunks_end(struct weft_link *link, struct weft__slot *slot);
/* Free the chunks that a stack caches for its next growth. The stack is a suspended stack, or the caller's own, which
 * runs on a system stack. Returns the slot of its newest frame, system stacks aside: `slot` if that frame is in no
 * chunk. */
WEFT__OF_LINKED struct weft__slot *weft__chunks_trim(struct weft_link *link, struct weft__slot *slot);
/* The object of a coroutine that ran on linked stacks is about to be reused: clear it as owner of the idle system
 * stacks of all threads, which the fault handler may read. Takes the pool's lock. */
WEFT__OF_LINKED WEFT__COLD void weft__system_forget(const void *owner);
/* Is the address in a chunk of this stack? */
WEFT__OF_LINKED bool weft__chunks_have(const struct weft_link *link, const void *address);

/* Functions that linked policies use for prepare, discard, trim and fault. */
int weft__linked_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low);
size_t weft__linked_discard(const struct weft__policy *self, struct weft__slot *slot);
size_t weft__linked_trim(struct weft__slot *slot, char *to);
enum weft__fault weft__linked_fault(struct weft__slot *slot, char *address);

/* The thread ends: free its system stack and its blocks. */
WEFT__OF_LINKED void weft__linked_detach(struct weft__thread *thread);
WEFT__OF_HEAP void weft__blocks_detach(struct weft__thread *thread);
/* Moves surplus blocks of this thread to threads that need some. */
WEFT__OF_HEAP void weft__blocks_share(void);
/* Workers call it now and then: memory that tasks allocate in one thread and free in another thread circulates. */
WEFT_API void weft__stack_share(void);
/* Like weft__take_block and weft__give_block. Only stacks of "heap" have blocks, and these come from heap.c. */
struct weft__block;
WEFT__OF_HEAP struct weft__block *weft__block_take(struct weft_link *self, size_t bytes);
WEFT__OF_HEAP void weft__block_give(struct weft__block *block);
/* Free the idle system stack. */
WEFT__OF_LINKED void weft__system_trim(void);
/* Discard pages of heap frames' free blocks, of this thread and of ended threads. Returns the bytes. */
WEFT__OF_HEAP size_t weft__blocks_trim(void);
/* The bytes of a cached slot that shares pages. */
size_t weft__shared_slot(struct weft__slot *slot, weft_policy_t policy, unsigned class, char **start);

/* The address at which a probe's code continues after asking for more stack; NULL if pc is no probe.
 * Async-signal-safe. */
WEFT__OF_LINKED void *weft__probe_at(const void *pc);
/* The probe faulted at the end of a chunk that cannot be enlarged. If it does so often, it is replaced by a comparison.
 * Async-signal-safe. */
WEFT__OF_LINKED void weft__probe_learn(const void *pc);
/* The address at which a thread continues after a trap that replaces a probe; NULL if there is none.
 * Async-signal-safe. */
WEFT__OF_LINKED void *weft__probe_trapped(const void *pc);
extern struct weft__module *_Atomic weft__modules; /* modules that have probes */

static inline bool weft__has_probes(void)
{
	return atomic_load_explicit(&weft__modules, memory_order_relaxed) != NULL;
}

/* Called by a constructor that weft-as writes into each module compiled for "mmu": registers the module's table of
 * probes. */
WEFT_API void weft__register_probes(const void *begin, const void *end);

WEFT__OF_LINKED void weft__linked_stats(weft_policy_t policy, weft_stack_stats_t *stats);
void weft__count_split(weft_policy_t policy);

/* ---- fault.c -------------------------------------------------------------------------------------------------- */

/* Install the handler of SIGSEGV and SIGBUS. Once. */
void weft__fault_install(void);
/* Undo changes that the program has made since to keep faults of the calling thread from the handler. A few system
 * calls: for functions that make some anyway. */
void weft__fault_ready(struct weft__thread *thread);
/* weft_handle_fault, weft/thread.h. */
bool weft__fault_handle(int number, siginfo_t *info, void *context);
/* Like sigaction; but a handler of SIGSEGV or SIGBUS is put behind the library's. */
int weft__fault_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* Async-signal-safe. Count a fault that other code has handled. */
void weft__fault_count(void);
/* Fill in the counts of faults and failures. */
void weft__fault_stats(weft_policy_t policy, weft_stack_stats_t *stats);

#endif
