/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract of a stack policy, and the slots it works on. One file per policy; nobody else asks which it is.
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
 *  3. Free slots go: thread's bin (no lock) -> class's warm list (a lock per batch) -> cold list (pages given back).
 *     Bins and lists are arrays of pointers, so that a kept slot may lose its memory where it is: see reclaim.c.
 *  4. Memory of the arena is never unmapped: a stale pointer to a coroutine reads an object that says so.
 * To reach: create + run + delete, warm, 20 ns; 10^6 suspended coroutines of 256 KiB at 4.8 KB each: one page of the
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
	WEFT__MIN_STRIDE_SHIFT = 13,	    /* 8 KiB */
	WEFT__SIZES = 18,		    /* up to 1 GiB */
	WEFT__WIDE_CLASS = 2 * WEFT__SIZES, /* guarded by size, unguarded by size, half of it guard by size, and: */
	WEFT__TINY_CLASS = 3 * WEFT__SIZES, /* several to a page: first chunks */
	WEFT__ROOMY_CLASS,		    /* the same, with room for a few calls */
	WEFT__SMALL_CLASS,		    /* several to a page: two chunks linked behind these */
	WEFT__CALLERS_CLASS,		    /* in memory of the caller's: in no list or span; see caller_memory.c */
	WEFT__CLASSES,
	WEFT__TINY_BYTES = 832,
	WEFT__ROOMY_BYTES = 1216,
	WEFT__SMALL_BYTES = 1088,   /* all odd multiples of a cache line: neighbours differ in their cache sets */
	WEFT__TINY_LARGEST = 1024,  /* a larger wish is for a stack with frames, */
	WEFT__ROOMY_LARGEST = 2048, /* and a larger one than this for pages */
	WEFT__HUGE_SHIFT = 15,	    /* unguarded slots up to 32 KiB share huge pages */
#ifdef WEFT_FREESTANDING
	WEFT__LEAST_STACK = 1024, /* in memory of the caller's */
#else
	WEFT__LEAST_STACK = 4096, /* the same, for what the library does under a lock */
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
 * In use: `owner` is the coroutine on the stack, which is the object or one in storage of somebody else's. Free: NULL.
 */
struct weft__slot {
	WEFT__ALIGNAS(64) char object[WEFT__OBJECT_BYTES];
	void *_Atomic owner; /* read by the fault handler of any thread */
	__extension__ union {
		struct weft__chunk chunk; /* low: lowest byte that may ever be touched; limit: NULL unless linked */
		struct weft__slot *next;  /* in a list of slots that were just cut, or of landings */
	};
	char *_Atomic open; /* lowest byte that may be touched now; moves down only, while in use */
	__extension__ union {
		char *frames; /* linked: where frames begin, in a chunk that is not the first: see weft__frames_of */
		struct {
			atomic_uint opening;	   /* commit: threads that are moving `open` */
			_Atomic uint32_t borrowed; /* commit: bytes of the reserve that it took */
		};
	};
	uint8_t policy, class;
	/* Is the slot in a bin or a warm list? And whose is its memory? See reclaim.c. */
	_Atomic bool kept;
	_Atomic uint8_t memory;
	uint32_t valgrind_id;
};

/* The slot of a stack in memory of the caller's. */
struct weft__callers {
	struct weft__slot slot; /* its class is WEFT__CALLERS_CLASS */
	uint64_t mark;		/* while it is in use: see caller_memory.c */
	char *memory;		/* as it was handed over */
	size_t bytes;
	size_t guard;	 /* bytes below `low` that are closed */
	bool is_watched; /* there is a pattern below `low` */
	bool is_all;	 /* WEFT_MEMORY_ONLY */
};

/* Values of `memory`. A slot without memory reads as zeros. */
enum { WEFT__DROPPED, WEFT__INTACT, WEFT__RECLAIMED };

/* What a fault in a slot turned out to be. */
enum weft__fault {
	WEFT__FAULT_OPENED,	 /* try again */
	WEFT__FAULT_RACED,	 /* nothing to do: another thread opened the page, or is about to; try again */
	WEFT__FAULT_OVERFLOW,	 /* the stack is too small: say so and end the process */
	WEFT__FAULT_BUDGET,	 /* the coroutine fails */
	WEFT__FAULT_MEMORY,	 /* the coroutine fails */
	WEFT__FAULT_RESERVATION, /* the coroutine fails */
	WEFT__FAULT_FOREIGN,	 /* none of ours */
};

struct weft__policy {
	const char *name;
	size_t default_size;
	bool accounted; /* does the kernel count whole slots against its commit limit? */
	bool closed;	/* do slots start closed? */
	bool linked;	/* are stacks made of chunks? Then code must be instrumented, or run on system stacks */
	bool tiny;	/* may a stack be smaller than a page? */
	bool shared;	/* do coroutines take turns on one region? Then it is no place for a thread */
	/* May a stack lie in memory of the caller's? Not at all; with any end; with a closed page at its low end. */
	enum weft__callers_use { WEFT__CALLERS_NEVER, WEFT__CALLERS_ANY, WEFT__CALLERS_CLOSED } callers;

	bool learns; /* does it follow what coroutines of the same function needed? See needs.h */

	atomic_size_t *committed; /* bytes of prepared slots that may be touched */

	/* A span was mapped, for slots of this policy with pages of their own. 0 or a negative errno. May be absent. */
	int (*mapped)(char *start, size_t bytes);
	/* Make a fresh or cold slot usable from `low` up, guarded from `start` to there, and set the fields open and
	 * chunk. `slot` is where its object will be, not readable before. Negative errno: nothing changed. */
	int (*prepare)(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low);
	/* Give the memory of a free slot back, the object's included. Bytes. Async-signal-safe. */
	size_t (*discard)(const struct weft__policy *self, struct weft__slot *slot);
	/* The page of the slot's record was dropped. Async-signal-safe. May be absent. */
	void (*dropped)(struct weft__slot *slot);
	/* Where the lowest page lies that the slot's stacks have written to. Async-signal-safe. Only if it `learns`. */
	char *(*lowest_written)(const struct weft__slot *slot);
	/* Give back the memory of a suspended stack below `to`, a page's start that no frame needs anything below.
	 * Bytes given back. May be absent. */
	size_t (*trim)(struct weft__slot *slot, char *to);
	/* Policies whose coroutines have no stack of their own: make `count` slots at most that hold an object and
	 * nothing else, as weft__arena_cut does with those of all others. */
	int (*cut)(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);
	/* Make one of those again whose memory was dropped. Only with `cut`. */
	void (*renew)(weft_policy_t policy, unsigned class, struct weft__slot *slot);
	/* A thread's hand is NULL now: return when nobody looks at what it was. May be absent: nobody looks. */
	void (*wait_for_lookers)(void);
	/* Is memory so short that no slot should be prepared ahead of need? May be absent. */
	bool (*tight)(void);
	/* Open all of a slot, for a thread. 0 or a negative errno. May be absent. */
	int (*fill)(struct weft__slot *slot);
	/* NULL, or why it cannot be used here; may be absent. */
	const char *(*unavailable)(void);
	/* A fault at `address`, above the slot's first byte. Runs in a signal handler: only async-signal-safe calls. */
	enum weft__fault (*fault)(struct weft__slot *slot, char *address);
};

/* Stand-ins for those that the program is linked without: policies.c. */
#define WEFT__POLICY(constant, name, linked) extern const struct weft__policy weft__##name;
#include <weft/internal/policies.def>
#undef WEFT__POLICY
extern const struct weft__policy *const weft__policies[WEFT_POLICY_COUNT]; /* [0] is NULL */

/* Whose coroutines can be cloned. */
static const weft_policy_t weft__policy_that_clones = WEFT_COPY;

/* ---- geometry ------------------------------------------------------------------------------------------- */

/* What a small chunk has above its limit: see weft__frames_of. */
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

/* Several of these slots share a page: they have no guard, and give no memory back alone. Memory of the caller's is
 * taken for such a slot: all of it is open, and none of it goes back. */
static inline bool weft__class_shares_pages(unsigned class)
{
	return class >= WEFT__TINY_CLASS;
}

static inline bool weft__class_is_guarded(unsigned class)
{
	return class - WEFT__SIZES >= WEFT__SIZES && !weft__class_shares_pages(class);
}

/* Where the frames of a slot begin. A small chunk holds no coroutine, never did, and never will: its frames begin where
 * the object of others is. */
static inline char *weft__frames_of(struct weft__slot *slot, unsigned class)
{
	return class == WEFT__SMALL_CLASS ? slot->object + sizeof slot->object : slot->object;
}

static inline struct weft__slot *weft__slot_of(struct weft__chunk *chunk)
{
	return (struct weft__slot *)(void *)((char *)chunk - WEFT_CHUNK_TOP);
}

/* End of the page that the slot's record is in: of what is used of the slot. */
static inline char *weft__slot_end(const struct weft__slot *slot)
{
	return (char *)(((uintptr_t)slot | (WEFT__PAGE - 1)) + 1);
}

/* Guards: a frame that does not touch every page must not step over one. Address space is cheap, page-table entries
 * are shared with the neighbours'. */
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

/* pool.c: bytes of the whole slot. For messages, and where a chunk is linked. */
WEFT__COLD size_t weft__slot_bytes(const struct weft__slot *slot);

/* ---- helpers that policies share ---------------------------------------------------------------------------- */

/* Guard the range by the mechanism in force. Async-signal-safe. */
int weft__guard(char *start, size_t bytes);
int weft__unguard(char *start, size_t bytes);
bool weft__guards_by_madvise(void);

/* ---- arena.c: from addresses to slots ------------------------------------------------------------------------- */

/* Reserve the arena, unless it is there. NULL, or why not; the next call tries again. */
const char *weft__arena_open(void);

/* Prepare `count` slots at most, cold ones first, as a list. Their number, or a negative errno if there is not one. */
int weft__arena_cut(weft_policy_t policy, unsigned class, unsigned count, struct weft__slot **list);

/* Async-signal-safe. The slot whose range holds the address, if its object is readable; else NULL. */
struct weft__slot *weft__arena_find(const void *address);

/* Async-signal-safe. Is it an address of the arena? */
bool weft__arena_has(const void *address);

/* A span for other things than stacks: fresh zero pages, never given back. NULL if there is none. */
enum weft__span_use { WEFT__SPAN_OF_BUFFERS = WEFT__CLASSES + 1, WEFT__SPAN_OF_RECORDS, WEFT__SPAN_OF_BLOCKS };
char *weft__arena_take_span(enum weft__span_use use, size_t *bytes);
/* Where the arena begins, and how much of it is spans in use. */
char *weft__arena_used(size_t *bytes);
void weft__arena_each_span(enum weft__span_use use, void (*visit)(char *start, size_t bytes));

/* Give a free slot's memory back, unless it has none, and remember it as cold. False if there is no room to remember
 * it, or if slots of this class have no pages of their own. */
bool weft__arena_chill(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Prepare a slot again whose memory was dropped. 0 or a negative errno. */
int weft__arena_revive(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Drop the page that the record of such a slot is in: there it was written that somebody tried. */
void weft__arena_forget(struct weft__slot *slot, weft_policy_t policy, unsigned class);

/* Async-signal-safe, one caller at a time. Visit the policy's slots that have pages of their own and an object: all of
 * them once, beginning where the last walk ended, until `visit` returns false. */
void weft__arena_walk(weft_policy_t policy, bool (*visit)(struct weft__slot *slot));

/* Bytes of memory behind the slots of a policy; asks the kernel about each. */
size_t weft__arena_resident(weft_policy_t policy);

/* Visit the slots that have their objects, in use or not. */
void weft__arena_each(void (*visit)(struct weft__slot *slot));

/* Bytes cut into slots. */
size_t weft__arena_reserved(weft_policy_t policy);

/* ---- pool.c: free slots --------------------------------------------------------------------------------------- */

/*
 * Per policy and class, per thread. Only the thread writes. Other threads read `tally`: its low half is the number of
 * slots here, its high half counts the slots that ever came here.
 */
struct weft__bin {
	struct weft__slot **slots;
	_Atomic uint64_t tally;
	uint32_t limit;
	uint8_t policy, class;
};
enum { WEFT__BIN_ROOMS = 2433 }; /* in all bins of a policy: their limits, and one more each */
#ifdef WEFT_FREESTANDING	 /* one bin, always empty: see freestanding/system.c */
enum { WEFT__BIN_POLICIES = 1, WEFT__BIN_CLASSES = 1, WEFT__BIN_PLACES = 1 };
#else
enum { WEFT__BIN_POLICIES = WEFT_POLICY_COUNT, WEFT__BIN_CLASSES = WEFT__CLASSES, WEFT__BIN_PLACES = WEFT__BIN_ROOMS };
#endif
static const uint64_t weft__bin_came = (uint64_t)1 << 32;

/* A free buffer: see buffers.h. `batch` and `in_batch` are the first of a batch's. */
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
 * What a thread keeps. In the list of all threads from attach to exit. A record is never unmapped, because the fault
 * handler of any thread may read its tallies: it then serves another thread. Bins and their tallies stay as they are.
 */
struct weft__thread {
	_Atomic uint32_t entering;	       /* copy: a region may be about to be this thread's; see copy.h */
	struct weft__bin *default_bin;	       /* weft_create's: the default policy and size */
	bool has_hand;			       /* not if its stacks are no one piece each, or are watched */
	const struct weft__hand *_Atomic hand; /* the thread's. NULL: it ended, or a fork left it behind */
	_Atomic uint64_t copied;	       /* copy: bytes that it has copied */
	struct weft__region *waits_for;
	struct weft__region *regions[WEFT__CLASSES]; /* its own by size, lowest first */
	struct weft__region_counts {
		uint32_t made, looked_at;
	} region_counts[WEFT__CLASSES]; /* see copy.c */
	struct weft__buffer_list buffers[WEFT__BUFFER_CLASSES];
	struct weft__chunk **system; /* its idle system stack */
	char *slab, *slab_end;	     /* where heap frames' blocks are cut from */
	size_t slabs;		     /* bytes of all that it had */
	unsigned blocks_wanted;	     /* how often others had asked for blocks when it last gave some */
	struct weft__thread *next, *previous;
	void *alt_stack;
	struct weft__slot *root; /* that its function runs on: see weft_thread_create */
	bool owner_used;
	void *_Atomic owner_local; /* thread-local memory of the layer above's; NULL: none, or a fork left it behind */
	uint32_t valgrind_id;
	bool in_hook;
	/* From here on it stays as it is when the record serves another thread. */
	struct weft__bin bins[WEFT__BIN_POLICIES][WEFT__BIN_CLASSES];
	struct weft__thread *record;					/* the next of all records; constant */
	struct weft__thread *spare;					/* the next of those that serve no thread */
	struct weft__slot *slots[WEFT__BIN_POLICIES][WEFT__BIN_PLACES]; /* of the bins */
	char owner[WEFT__OWNER_BYTES] __attribute__((aligned(64)));	/* the layer above's, zero at first */
	/* Where failure hooks run; above that: where linked stacks grow. */
	char small_stack[WEFT_HOOK_STACK + WEFT_SMALL_STACK] __attribute__((aligned(64)));
};

/* What most creations need of the thread. */
struct weft__hand {
	_Atomic uintptr_t slot; /* of the default bin, out of it, for whoever asks next. Other threads count it */
	uint64_t next_id, last_id;
};
/* In place of a slot. CLOSED: there will be none, nor may weft_create take one out of the bin by itself; perhaps there
 * are no bins yet. */
enum weft__hand_state { WEFT__HAND_CLOSED, WEFT__HAND_EMPTY };
extern __thread struct weft__hand weft__tls_hand __attribute__((tls_model("initial-exec")));

_Static_assert(offsetof(struct weft__slot, class) == offsetof(struct weft__slot, policy) + 1 &&
		   offsetof(struct weft__bin, class) == offsetof(struct weft__bin, policy) + 1,
	       "policy and class are compared together");

/* Does the slot belong into the default bin? */
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

/* Is Memcheck to be told about frames? To ask costs less than to tell. Constant once a thread is attached. */
extern bool weft__on_memcheck;

extern __thread struct weft__thread *weft__tls_thread __attribute__((tls_model("initial-exec")));

/* Make the calling thread's; NULL if there is no memory. */
struct weft__thread *weft__thread_attach(void);

/* Call fn for each attached thread's record. No thread detaches meanwhile, so thread-local memory stays readable. */
WEFT__COLD void weft__each_thread(void (*fn)(struct weft__thread *thread));

static inline struct weft__thread *weft__thread(void)
{
	struct weft__thread *thread = weft__tls_thread;

	return weft__likely(thread) ? thread : weft__thread_attach();
}

/* The class of a size as in weft_attr_t; WEFT__CLASSES if there is none so large. */
unsigned weft__class(weft_policy_t policy, size_t size, bool guard);
/* The class of a size with a guard of so many bytes at least. The rest is no smaller than with the usual guard. */
unsigned weft__class_with_guard(weft_policy_t policy, size_t size, size_t guard);

/* The top of a bin cannot be used as it is, or the bin is empty: put the slot right, or fill the bin and take one. NULL
 * and a negative errno in *error if that cannot be done. */
struct weft__slot *weft__slot_take_slow(struct weft__bin *bin, int *error);

static inline uint64_t weft__bin_tally(const struct weft__bin *bin)
{
	return atomic_load_explicit(&bin->tally, memory_order_relaxed);
}

/* Only the calling thread writes, so a change needs no atomic instruction. */
static inline void weft__bin_set_tally(struct weft__bin *bin, uint64_t tally)
{
	atomic_store_explicit(&bin->tally, tally, memory_order_release); /* pairs with the acquire in weft__pool_came */
}

/* From here on the slot is the calling thread's. False: first wait for its memory, or prepare it. */
static inline bool weft__slot_own(struct weft__slot *slot)
{
	atomic_store_explicit(&slot->kept, false, memory_order_relaxed);
	/* Pairs with the barrier in reclaim.c: it sees this store, or the load here sees its claim. */
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&slot->memory, memory_order_acquire) == WEFT__INTACT;
}

/* A slot out of a bin, as it was given. NULL: there is none on top that can be used as it is. */
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

/* Frames of the dead are to be seen as such in tests. */
#ifdef WEFT_TINY
void weft__poison(struct weft__slot *slot);
#else
static inline void weft__poison(struct weft__slot *slot)
{
	(void)slot;
}
#endif

/* The hand is empty. The slot's owner is dead, but not forgotten. */
static inline void weft__put_recent_slot(struct weft__slot *slot)
{
	weft__poison(slot);
	/* From here on a reclaimer may have its memory. Release: and sees what the slot is. */
	atomic_store_explicit(&slot->kept, WEFT_NO_CANARY(slot_at_hand_keeps_its_memory), memory_order_release);
	atomic_store_explicit(&weft__tls_hand.slot, (uintptr_t)slot, memory_order_relaxed);
}

/* What is at hand, if anything, goes to its bin. */
void weft__give_recent_slot(void);

/* A free slot, prepared, its owner not set. */
static inline struct weft__slot *weft__slot_take(struct weft__bin *bin, int *error)
{
	struct weft__slot *slot = weft__slot_take_kept(bin);

	return weft__likely(slot != NULL) ? slot : weft__slot_take_slow(bin, error);
}

/* Keep a slot whose owner is gone. */
void weft__slot_give(struct weft__slot *slot);

/* Async-signal-safe, only under reclaim.c's lock. As long as it is the same, no slot of the policy came to be kept.
 * 0: a thread has one at hand that has memory. */
uint64_t weft__pool_came(weft_policy_t policy);

/* ---- caller_memory.c: slots in memory of the caller's ------------------------------------------------------------ */

/* A caller asks for a stack of this kind in this memory. */
struct weft__callers_wish {
	weft_policy_t policy; /* WEFT_DEFAULT_POLICY: what stands for that here */
	void *memory;
	size_t bytes;
	size_t guard; /* bytes wanted, 0: none */
	bool watched; /* with a pattern at the low end, if the policy has use for that */
	bool only;    /* WEFT_MEMORY_ONLY */
};
/* A slot there, its owner not set; NULL and a negative errno. */
WEFT__OF_CALLERS struct weft__slot *weft__callers_take(const struct weft__callers_wish *wish, int *error);
/* The memory is the caller's again. `bin`: NULL, or a bin of the class that the slot is in, and does not stay in. */
WEFT__OF_CALLERS WEFT__COLD void weft__callers_give(struct weft__slot *slot, struct weft__bin *bin);
/* Bytes at any address that hold so many bytes of stack, and no fewer than the policy needs: as weft_memory_size. */
WEFT__OF_CALLERS size_t weft__callers_size(const struct weft__callers_wish *wish, size_t stack);
/* NULL, or the words for what weft__callers_take would answer, and the line about it. */
struct weft__line;
WEFT__OF_CALLERS bool weft__callers_unfit(const struct weft__callers_wish *wish, struct weft__line *line);
/* Is the slot, which may be any address, one of ours that `owner` uses? */
WEFT__OF_CALLERS bool weft__callers_has(const struct weft__slot *slot, const void *owner);
/* Did frames of this slot, which end at `sp`, write below it? */
WEFT__OF_CALLERS bool weft__callers_overflowed(const struct weft__slot *slot, const char *sp);
/* pool.c: how many of a policy are in use. */
extern atomic_size_t weft__callers_live[WEFT_POLICY_COUNT];
/* Is the address in the slot's guard? */
static inline bool weft__callers_closed(const struct weft__slot *slot, const char *address)
{
	return address < slot->chunk.low && slot->chunk.low - address <= (ptrdiff_t)weft__callers_of(slot)->guard;
}

/* ---- reclaim.c: memory of slots that are kept ------------------------------------------------------------------ */

/* Async-signal-safe, takes no lock of another file. Take the memory of kept slots of a policy away, wherever they are
 * kept, until that is so many bytes. How many it was; 0: no kept slot has memory. Wanting 0 bytes waits until whoever
 * was here before is through. */
size_t weft__reclaim(weft_policy_t policy, size_t bytes);

/* Wait until nobody claims the slot's memory, which the calling thread owns. Is it there? */
bool weft__slot_settle(struct weft__slot *slot);

/* Give back what a suspended stack, whose frames end at `sp`, does not use. Bytes. */
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

/* The stack in a slot that was just taken starts, with no frames. For slots of linked policies. */
WEFT__OF_LINKED void weft__chunks_begin(struct weft_link *link, struct weft__slot *slot);
/* Give back every chunk but the first, `slot` (NULL: that too), and the system stacks and arrays that frames had. */
WEFT__OF_LINKED void weft__chunks_end(struct weft_link *link, struct weft__slot *slot);
/* Give back the chunks that a stack keeps for the next time: a suspended one's, or the caller's own, which stands on a
 * system stack. The slot that its newest frame is in, system stacks aside: `slot` where that is no chunk. */
WEFT__OF_LINKED struct weft__slot *weft__chunks_trim(struct weft_link *link, struct weft__slot *slot);
/* The object of a coroutine that was on linked stacks is about to be other memory: the idle system stacks of all
 * threads, which the fault handler may look at, forget that it had them. Takes the pool's lock. */
WEFT__OF_LINKED WEFT__COLD void weft__system_forget(const void *owner);
/* Is it an address of this stack's chunks? */
WEFT__OF_LINKED bool weft__chunks_have(const struct weft_link *link, const void *address);

/* What prepare, discard and fault of linked policies share. */
int weft__linked_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low);
size_t weft__linked_discard(const struct weft__policy *self, struct weft__slot *slot);
size_t weft__linked_trim(struct weft__slot *slot, char *to);
enum weft__fault weft__linked_fault(struct weft__slot *slot, char *address);

/* The thread ends: its system stack and free blocks. */
WEFT__OF_LINKED void weft__linked_detach(struct weft__thread *thread);
WEFT__OF_HEAP void weft__blocks_detach(struct weft__thread *thread);
/* Gives the blocks that this thread has too many of to threads that need some. */
WEFT__OF_HEAP void weft__blocks_share(void);
/* Workers call it now and then: memory that tasks took in one thread and gave back in another one goes round. */
WEFT_API void weft__stack_share(void);
/* As weft__take_block and weft__give_block. Only stacks of "heap" have blocks, and these come from heap.c. */
struct weft__block;
WEFT__OF_HEAP struct weft__block *weft__block_take(struct weft_link *self, size_t bytes);
WEFT__OF_HEAP void weft__block_give(struct weft__block *block);
/* Give the idle system stack back. */
WEFT__OF_LINKED void weft__system_trim(void);
/* Drop pages of heap frames' free blocks, of this thread and of ended ones. Bytes. */
WEFT__OF_HEAP size_t weft__blocks_trim(void);
/* A slot that is kept, several to a page: its bytes. */
size_t weft__shared_slot(struct weft__slot *slot, weft_policy_t policy, unsigned class, char **start);

/* Where a store that asks for more stack continues; NULL if pc is none. Async-signal-safe. */
WEFT__OF_LINKED void *weft__probe_at(const void *pc);
/* It faulted at the end of a chunk that cannot be enlarged. If it does so often, it becomes a comparison.
 * Async-signal-safe. */
WEFT__OF_LINKED void weft__probe_learn(const void *pc);
/* Where a thread continues that found a trap in the place of a probe; NULL if there is none. Async-signal-safe. */
WEFT__OF_LINKED void *weft__probe_trapped(const void *pc);
extern struct weft__module *_Atomic weft__modules; /* that have such stores */

static inline bool weft__has_probes(void)
{
	return atomic_load_explicit(&weft__modules, memory_order_relaxed) != NULL;
}

/* For a constructor that weft-as writes into each module compiled for "mmu": the module's table of probes. */
WEFT_API void weft__register_probes(const void *begin, const void *end);

WEFT__OF_LINKED void weft__linked_stats(weft_policy_t policy, weft_stack_stats_t *stats);
void weft__count_split(weft_policy_t policy);

/* ---- fault.c -------------------------------------------------------------------------------------------------- */

/* Install the handler of SIGSEGV and SIGBUS. Once. */
void weft__fault_install(void);
/* Undo what the program did since that keeps faults of the calling thread from the handler. A few system calls: for
 * places that make some anyway. */
void weft__fault_ready(struct weft__thread *thread);
/* weft_handle_fault, weft/thread.h. */
bool weft__fault_handle(int number, siginfo_t *info, void *context);
/* sigaction; but a handler of SIGSEGV or SIGBUS is put behind ours. */
int weft__fault_sigaction(int number, const struct sigaction *action, struct sigaction *old);

/* Async-signal-safe. A fault was answered elsewhere. */
void weft__fault_count(void);
/* Fill in the counts of faults and failures. */
void weft__fault_stats(weft_policy_t policy, weft_stack_stats_t *stats);

#endif
