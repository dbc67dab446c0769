/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks made of chunks: code that segmented, lookahead and mmu share. Instrumented code finds, in one of three ways,
 * that a frame does not fit; all three end in __morestack (arch/x86_64_linked.S), which calls this file.
 *
 *  1. A chunk is a slot of the arena, closed except for its top, as under `commit`. If a frame does not fit, more of
 *     the slot is opened, as much again as is open; then no chunk is linked, and the next call finds room. So there is
 *     no depth at which a call in a loop is slow (hot split).
 *  2. When the slot is used up, a chunk twice as large is linked, and cached when its frames return. From then on
 *     assembly alone switches to it and back. Behind a tiny chunk the first two are small: frames of a few calls do not
 *     take a page.
 *  3. Code without checks is called on a system stack: a large contiguous slot, of which each thread caches one.
 *  4. Functions here run on the thread's own small stack, so that a chunk needs no more room than a frame without a
 *     check uses: WEFT_SLACK. A tiny chunk is 832 or 1216 bytes, its coroutine included. There is no gap between such a
 *     chunk and the next, nor between small chunks: code below their limit uses at most WEFT_TINY_SLACK.
 * Targets: 1.06 of plain code; a hot split below 2 plain calls; first growth within 1.2 of overcommit (warm), 1.5
 * (cold); 10^6 suspended coroutines at 900 bytes each.
 *
 * Memory is taken as it is needed and not against a budget; when the system has none the coroutine fails.
 */
#define WEFT__PART_LINKED
#define WEFT__PART_FAILING
#include <errno.h>
#include <stdlib.h>

#include "stack/fault.h"

enum {
	FIRST = 2 * WEFT__PAGE,		/* open from the start */
	LARGEST_STEP = 256 * 1024,	/* opened beyond the present need */
	SMALLEST_LINKED = 32 * 1024,	/* chunks after the first */
	LARGEST_LINKED = 1024 * 1024,	/* unless a single frame needs more */
	SYSTEM_BYTES = 8 * 1024 * 1024, /* the usual size for a main thread; reserved, not used */
	FRAME = 256,			/* the frame of __morestack */
};

/* The assembly of this part (arch/x86_64_linked.S); the rest of every program names it by a weak reference. */
void weft__icall(void);
__attribute__((used)) static void (*const assembly)(void) = weft__icall;

/* Relaxed: statistics. */
static atomic_size_t growths[WEFT_POLICY_COUNT], splits[WEFT_POLICY_COUNT];

void weft__count_split(weft_policy_t policy)
{
	atomic_fetch_add_explicit(&splits[policy], 1, memory_order_relaxed);
}

void weft__linked_stats(weft_policy_t policy, weft_stack_stats_t *stats)
{
	stats->growths = atomic_load_explicit(&growths[policy], memory_order_relaxed);
	stats->splits = atomic_load_explicit(&splits[policy], memory_order_relaxed);
}

/* ---- slots ----------------------------------------------------------------------------------------------------- */

static char *open_from(const struct weft__slot *slot)
{
	return atomic_load_explicit(&slot->open,
				    /* moved by the thread that runs on it, or by that thread's fault */
				    memory_order_relaxed);
}

/* Is the slot tiny, roomy or small, or memory of the caller's? All of it is open, and stays open. */
static bool is_whole(const struct weft__slot *slot)
{
	return weft__class_shares_pages(slot->class);
}

static void set_open(struct weft__slot *slot, char *open)
{
	atomic_store_explicit(&slot->open, open, memory_order_relaxed);
	slot->chunk.limit = open + WEFT_SLACK;
}

/* The address from which a slot is open at the start. */
static char *first_open(char *low, char *end)
{
	return (size_t)(end - low) < FIRST ? low : end - FIRST;
}

static inline int prepare_whole(const struct weft__policy *self, struct weft__slot *slot, char *start)
{
	slot->chunk.low = start;
	atomic_store_explicit(&slot->open, start, memory_order_relaxed);
	slot->chunk.limit = start + WEFT_CANARY_OR(frames_go_below_small_chunks, WEFT_TINY_SLACK - 96, WEFT_TINY_SLACK);
	atomic_fetch_add_explicit(self->committed, (size_t)((char *)(slot + 1) - start), memory_order_relaxed);
	return 0;
}

int weft__linked_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low)
{
	char *end = weft__slot_end(slot), *open = first_open(low, end);
	int error;

	if (low == start) /* it has no guard: see is_whole */
		return prepare_whole(self, slot, start);
	error = weft__guard(start, (size_t)(open - start));
	if (!error && !weft__guards_by_madvise()) /* else the top never had guards */
		error = weft__unguard(open, (size_t)(end - open));
	if (error)
		return error;
	slot->chunk.low = low;
	set_open(slot, open);
	atomic_fetch_add_explicit(self->committed, (size_t)(end - open), memory_order_relaxed);
	return 0;
}

size_t weft__linked_discard(const struct weft__policy *self, struct weft__slot *slot)
{
	char *end = weft__slot_end(slot);
	size_t bytes = (size_t)(end - open_from(slot));

	weft__os_drop(end - bytes, bytes);
	atomic_fetch_sub_explicit(self->committed, bytes, memory_order_relaxed);
	return bytes;
}

/* Open the slot down to `to`, the start of a page. Async-signal-safe. */
static bool open_down(struct weft__slot *slot, char *to)
{
	char *open = open_from(slot);

	if (weft__unguard(to, (size_t)(open - to)))
		return false;
	set_open(slot, to);
	atomic_fetch_add_explicit(weft__policies[slot->policy]->committed, (size_t)(open - to), memory_order_relaxed);
	return true;
}

/* Open the slot down to `lowest`, and as much again as is open already; or only down to `lowest`, if there is no more
 * memory. */
static bool open_for(struct weft__slot *slot, char *lowest)
{
	char *open = open_from(slot);
	char *page = weft__page_of(lowest);
	size_t step = (size_t)(weft__slot_end(slot) - open);
	char *to;

	if (page >= open)
		return true;
	if (page < slot->chunk.low)
		return false;
	if (step > LARGEST_STEP)
		step = LARGEST_STEP;
	to = (size_t)(open - slot->chunk.low) > step ? open - step : slot->chunk.low;
	return (to < page && open_down(slot, to)) || open_down(slot, page);
}

WEFT__BRINGS(weft__fault_spent);

/*
 * Instrumented code does not fault here, but a frame larger than the slack in code without checks does, or a signal
 * frame. The slot is opened for them as far as it reaches.
 */
enum weft__fault weft__linked_fault(struct weft__slot *slot, char *address)
{
	if (address < slot->chunk.low)
		return WEFT__FAULT_OVERFLOW;
	if (address >= open_from(slot))
		return WEFT__FAULT_FOREIGN;
	return open_for(slot, address) ? WEFT__FAULT_OPENED : WEFT__FAULT_OVERFLOW;
}

/* ---- stacks ---------------------------------------------------------------------------------------------------- */

/* Arrays of variable length that did not fit. A word of the coroutine's that switches never read names the newest.
 * AddressSanitizer's switches keep an address in that word, which is even: ours are odd. */
struct weft__array;

static uintptr_t *word_of(struct weft_link *link)
{
	return (uintptr_t *)(void *)((char *)link + WEFT_CORO_ARRAYS);
}

static struct weft__array *newest(struct weft_link *link)
{
	uintptr_t word = *word_of(link);

	return word & 1 ? (struct weft__array *)(word - 1) : NULL;
}

static void set_newest(struct weft_link *link, struct weft__array *array)
{
	*word_of(link) = array ? (uintptr_t)array + 1 : 0;
}

void weft__chunks_begin(struct weft_link *link, struct weft__slot *slot)
{
	slot->chunk.below = slot->chunk.above = NULL;
	link->chunk = &slot->chunk;
	link->limit = slot->chunk.limit;
	set_newest(link, NULL);
}

static bool is_block(const struct weft__chunk *chunk)
{
	return chunk->limit == WEFT__HEAP_LIMIT;
}

static void give_slot(struct weft__chunk *chunk)
{
	struct weft__slot *slot = weft__slot_of(chunk);

	/* Relaxed: as when the coroutine layer ends a coroutine. */
	atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
	weft__slot_give(slot);
}

/* Free the chunks that are cached for the next growth. */
static void give_above(struct weft__chunk *chunk)
{
	struct weft__chunk *above = chunk->above, *next;

	chunk->above = NULL;
	for (; above; above = next) {
		next = above->above;
		give_slot(above);
	}
}

/* These belong to "heap", which is a separate part. */
__thread struct weft__block *weft__tls_blocks[WEFT_BLOCK_CLASSES] __attribute__((tls_model("initial-exec")));

struct weft__block *weft__take_block(struct weft_link *self, size_t bytes)
{
	return weft__block_take(self, bytes);
}

void weft__give_block(struct weft__block *block)
{
	weft__block_give(block);
}

/* `newer`: the chunk in use above this chunk; the caller has freed it already. */
static void give_kept(struct weft__chunk *chunk, const struct weft__chunk *newer)
{
	if (!is_block(chunk) && chunk->limit && chunk->above != newer)
		give_above(chunk);
}

static void give_chunk(struct weft__chunk *chunk)
{
	if (!chunk->limit)
		weft__system_give(chunk);
	else if (is_block(chunk))
		weft__block_give((struct weft__block *)chunk);
	else
		give_slot(chunk);
}

static void free_arrays(struct weft_link *link, const char *sp);

void weft__chunks_end(struct weft_link *link, struct weft__slot *slot)
{
	struct weft__chunk *chunk = link->chunk, *newer = NULL, *below;

	free_arrays(link, NULL);
	for (; chunk; chunk = below) {
		below = chunk->below;
		if (slot && chunk == &slot->chunk) { /* the first chunk */
			if (weft__unlikely(chunk->above != newer))
				give_above(chunk);
			chunk->above = NULL;
			break;
		}
		give_kept(chunk, newer);
		give_chunk(chunk);
		newer = chunk;
	}
	link->chunk = NULL;
	link->limit = NULL;
}

static bool has(const struct weft__chunk *chunk, const char *address)
{
	return address >= chunk->low && address < (const char *)chunk;
}

bool weft__chunks_have(const struct weft_link *link, const void *address)
{
	for (const struct weft__chunk *chunk = link->chunk; chunk; chunk = chunk->below)
		if (has(chunk, address))
			return true;
	return false;
}

/* ---- growing ---------------------------------------------------------------------------------------------------- */

/* Make room for `bytes` bytes below `from` in the chunk's slot. */
static bool enlarge(struct weft__chunk *chunk, const char *from, size_t bytes)
{
	struct weft__slot *slot = weft__slot_of(chunk);
	size_t room = (size_t)(from - chunk->low);

	return !is_whole(slot) && room > bytes && open_for(slot, chunk->low + (room - bytes));
}

/* The slot is the second small chunk, behind a small one. */
static bool is_last_small(const struct weft__slot *slot)
{
	return slot->class == WEFT__SMALL_CLASS && weft__slot_of(slot->chunk.below)->class == WEFT__SMALL_CLASS;
}

/* Should a small chunk follow, and does it have room? Stores of `mmu` would not detect its end. */
static bool is_small_next(const struct weft__slot *slot, size_t need, size_t args)
{
	size_t lost = args ? WEFT_ARGUMENT_ALIGNMENT : 0; /* for the alignment of their copy */

	return is_whole(slot) && weft__slot_bytes(slot) < WEFT__PAGE && !is_last_small(slot) &&
	       need + args + lost <= WEFT__SMALL_ROOM && !weft__has_probes();
}

/* The class of the next chunk, if that chunk must be larger than a page; 0 if no class is so large. */
static unsigned next_class(const struct weft__slot *slot, size_t bytes)
{
	size_t size = 2 * weft__slot_bytes(slot);
	unsigned class;

	if (size < SMALLEST_LINKED)
		size = SMALLEST_LINKED;
	if (size > LARGEST_LINKED)
		size = LARGEST_LINKED;
	while (size - size / 8 < bytes + 2 * WEFT__PAGE)
		size *= 2;
	class = weft__class((weft_policy_t)slot->policy, size, true);
	return class == WEFT__CLASSES ? 0 : class;
}

static struct weft__slot *take(unsigned policy, unsigned class)
{
	int error;

	return weft__slot_take(&weft__thread()->bins[policy][class], &error);
}

/* A slot with room for `bytes` bytes, slack included. */
static struct weft__slot *take_large(const struct weft__slot *slot, size_t bytes)
{
	unsigned class = next_class(slot, bytes);
	struct weft__slot *made = class ? take(slot->policy, class) : NULL;

	if (!made || enlarge(&made->chunk, (char *)made, bytes))
		return made;
	weft__slot_give(made);
	return NULL;
}

/* The stack is memory of the caller's, and must not grow beyond it. */
static bool is_all_there_is(const struct weft__slot *slot)
{
	return weft__is_callers(slot) && weft__callers_of(slot)->is_all;
}

static struct weft__chunk *link_chunk(struct weft_link *self, size_t need, size_t args, size_t bytes)
{
	struct weft__chunk *current = self->chunk;
	struct weft__slot *slot = weft__slot_of(current), *made = NULL;

	if (is_all_there_is(slot))
		return NULL;
	give_above(current);
	if (is_small_next(slot, need, args))
		made = take(slot->policy, WEFT__SMALL_CLASS);
	if (!made) /* or there is no span for small chunks */
		made = take_large(slot, bytes);
	if (!made)
		return NULL;
	made->frames = weft__frames_of(made, made->class);
	made->chunk.below = current;
	made->chunk.above = NULL;
	/* Release: as in the coroutine layer. */
	atomic_store_explicit(&made->owner, self, memory_order_release);
	current->above = &made->chunk;
	weft__count_split((weft_policy_t)slot->policy);
	return &made->chunk;
}

struct weft__chunk *weft__chunk_grow(struct weft_link *self, size_t need, size_t args, char *sp)
{
	struct weft__chunk *chunk = self->chunk, *made;
	size_t bytes = need + args + WEFT_SLACK + FRAME;

	if (enlarge(chunk, sp, bytes)) {
		self->limit = chunk->limit;
		atomic_fetch_add_explicit(&growths[weft__slot_of(chunk)->policy], 1, memory_order_relaxed);
		return chunk;
	}
	made = link_chunk(self, need, args, bytes);
	if (!made)
		weft__owner_spent(self, sp,
				  is_all_there_is(weft__slot_of(chunk)) ? WEFT__SPENT_RESERVATION : WEFT__SPENT_MEMORY);
	return made;
}

/* ---- trimming ------------------------------------------------------------------------------------------------- */

static size_t close_below(struct weft__slot *slot, char *to)
{
	char *open = open_from(slot);

	if (to <= open || weft__guard(open, (size_t)(to - open)))
		return 0;
	atomic_fetch_sub_explicit(weft__policies[slot->policy]->committed, (size_t)(to - open), memory_order_relaxed);
	set_open(slot, to);
	return (size_t)(to - open);
}

/* The part that was open at the start stays open, because a later prepare expects no guards there. */
size_t weft__linked_trim(struct weft__slot *slot, char *to)
{
	char *first = first_open(slot->chunk.low, weft__slot_end(slot));
	size_t bytes;

	if (is_whole(slot))
		return 0;
	bytes = close_below(slot, to < first ? to : first);
	if (to > first && open_from(slot) == first) {
		bytes += weft__os_resident(first, (size_t)(to - first));
		weft__os_drop(first, (size_t)(to - first));
	}
	return bytes;
}

struct weft__slot *weft__chunks_trim(struct weft_link *link, struct weft__slot *slot)
{
	struct weft__chunk *chunk = link->chunk, *newer = NULL;

	while (chunk && !chunk->limit) {
		newer = chunk;
		chunk = chunk->below;
	}
	if (!chunk || is_block(chunk))
		return slot;
	give_kept(chunk, newer);
	return weft__slot_of(chunk);
}

/* ---- system stacks ------------------------------------------------------------------------------------------------
 * */

struct weft__chunk *weft__system_take(struct weft_link *self)
{
	struct weft__thread *thread = weft__thread();
	unsigned class = weft__class(WEFT_OVERCOMMIT, SYSTEM_BYTES, true);
	struct weft__slot *slot;
	int error;

	slot = thread ? weft__slot_take(&thread->bins[WEFT_OVERCOMMIT][class], &error) : NULL;
	if (!slot)
		weft__owner_spent(self, (char *)__builtin_frame_address(0), WEFT__SPENT_MEMORY);
	slot->chunk.above = NULL;
	atomic_store_explicit(&slot->owner, self, memory_order_release);
	return &slot->chunk;
}

void weft__system_give(struct weft__chunk *chunk)
{
	if (!weft__tls_system)
		weft__tls_system = chunk;
	else
		give_slot(chunk);
}

static __thread const void *forgotten __attribute__((tls_model("initial-exec")));

static void forget_owner(struct weft__thread *thread)
{
	struct weft__chunk *idle = thread->system ? __atomic_load_n(thread->system, __ATOMIC_ACQUIRE) : NULL;
	void *owner = (void *)forgotten;

	/* The thread may be about to use it for another coroutine, but not for a coroutine that is being deleted. */
	if (idle)
		atomic_compare_exchange_strong(&weft__slot_of(idle)->owner, &owner, NULL);
}

void weft__system_forget(const void *owner)
{
	forgotten = owner;
	weft__each_thread(forget_owner);
}

/* ---- longjmp ------------------------------------------------------------------------------------------------------
 * */

void weft__chunks_cut(struct weft_link *self, char *sp)
{
	struct weft__chunk *chunk = self->chunk, *newer = NULL, *below;

	if (!weft__chunks_have(self, sp))
		return; /* the frames of a signal handler's own stack */
	for (; !has(chunk, sp); chunk = below) {
		below = chunk->below;
		give_kept(chunk, newer);
		if (chunk->limit && !is_block(chunk)) /* cached for the next growth */
			newer = chunk;
		else
			give_chunk(chunk);
	}
	self->chunk = chunk;
	self->limit = chunk->limit;
}

/* ---- arrays -------------------------------------------------------------------------------------------------------
 * */

/* Precedes the array. `chunk` and `sp` identify the frame that owns it. */
struct weft__array {
	struct weft__array *older;
	const struct weft__chunk *chunk;
	char *sp;
	void *pad;
};

static bool chunk_is_gone(const struct weft_link *link, const struct weft__chunk *chunk)
{
	for (const struct weft__chunk *c = link->chunk; c; c = c->below)
		if (c == chunk)
			return false;
	return true;
}

/* Has its frame returned, if the stack now ends at `sp`? */
static bool is_dead(const struct weft_link *link, const struct weft__array *array, const char *sp)
{
	return array->chunk == link->chunk ? array->sp < sp : chunk_is_gone(link, array->chunk);
}

/* Free the arrays of frames that have returned; all arrays if `sp` is NULL. */
static void free_arrays(struct weft_link *link, const char *sp)
{
	struct weft__array *array = newest(link);

	if (!array)
		return;
	while (array && (!sp || is_dead(link, array, sp))) {
		struct weft__array *older = array->older;

		free(array);
		array = older;
	}
	set_newest(link, array);
}

void *weft__array_take(struct weft_link *self, size_t bytes, char *sp)
{
	struct weft__array *array;

	free_arrays(self, sp);
	array = bytes < SIZE_MAX / 2 ? malloc(sizeof *array + bytes) : NULL;
	if (!array)
		weft__owner_spent(self, sp, WEFT__SPENT_MEMORY);
	array->older = newest(self);
	array->chunk = self->chunk;
	array->sp = sp;
	set_newest(self, array);
	return array + 1;
}

/* ---- threads ------------------------------------------------------------------------------------------------------
 * */

void weft__system_trim(void)
{
	struct weft__chunk *idle = weft__tls_system;

	weft__tls_system = NULL;
	if (idle)
		give_slot(idle);
}

void weft__linked_detach(struct weft__thread *thread)
{
	weft__system_trim();
	if (weft__blocks_detach)
		weft__blocks_detach(thread);
	weft__limit_ends(); /* a later thread may find the values that this thread leaves there */
}
