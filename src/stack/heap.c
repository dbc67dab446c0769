/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heap: a block of memory for each call. The limit is above every address, so each prologue calls __morestack, which
 * takes a block from the thread's list of that size and puts it back when the call returns. Sizes are multiples of 64
 * bytes up to 4 KiB; larger frames have memory of their own.
 *
 * A block is used from its end: its record, then the frame, then room for code without checks. A block is put into the
 * list of the thread in which its call returns, whichever thread it came from. Blocks that a thread leaves behind at
 * its end, and surplus blocks of workers, are in a store that all threads take from. Slabs, from which blocks are cut,
 * are in spans of the arena.
 */
#define WEFT__PART_LINKED
#define WEFT__PART_HEAP
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "internal/signal_safe_lock.h"
#include "stack/shared_pages.h"

enum {
	SLAB = 256 * 1024,
	LARGEST_SLAB = 32 * 1024 * 1024,
	SMALLEST_REST = 2 * WEFT__PAGE,
	BATCH = 16,
	SHARE = 512, /* blocks of a size that a thread takes from the store at most */
	KEEP = 64,   /* blocks of a size that a worker keeps when other threads need some */
	LARGE = WEFT_BLOCK_CLASSES,
};

/* The store: lists of ended threads and from workers, uncut pieces of slabs, blocks that have had no memory since they
 * were trimmed, and the rest of the newest span. */
static struct {
	pthread_mutex_t lock;
	struct weft__block *blocks[WEFT_BLOCK_CLASSES];
	struct weft__hollows hollows[WEFT_BLOCK_CLASSES];
	struct rest {
		struct rest *next;
		char *end;
	} *rests;
	char *next, *end;
	_Atomic unsigned wanted; /* how often a thread took the last blocks of a size, or found no block */
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

WEFT__LOCK_OF_FILE(left.lock);

/* A fork must not leave the child with a lock that no thread holds. */
__attribute__((constructor(104))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

static struct weft__block *make(char *start, size_t bytes, size_t class)
{
	struct weft__block *block = (struct weft__block *)(void *)(start + bytes) - 1;

	block->chunk = (struct weft__chunk){.class = class, .limit = WEFT__HEAP_LIMIT, .low = start};
	return block;
}

static struct weft__block *fill_hollows(size_t class)
{
	struct weft__block *list = NULL, *block;
	char *start;

	for (int i = 0; i < BATCH && (start = weft__hollows_pop(&left.hollows[class])); i++) {
		block = make(start, class * 64, class);
		block->next = list;
		list = block;
	}
	return list;
}

static struct weft__block *last_of(struct weft__block *block, int most)
{
	while (--most && block->next)
		block = block->next;
	return block;
}

/* The caller holds the lock. Take up to SHARE blocks of a size; the rest stays. */
static struct weft__block *take_share(size_t class)
{
	struct weft__block *list = left.blocks[class], *last, *rest;

	if (!list)
		return NULL;
	last = last_of(list, SHARE);
	rest = last->next;
	last->next = NULL;
	if (rest)
		rest->list = list->list;
	left.blocks[class] = rest ? rest : list->list;
	return list;
}

static struct weft__block *take_left(size_t class)
{
	struct weft__block *list;

	lock();
	list = take_share(class);
	if (!left.blocks[class])
		left.wanted++;
	if (!list)
		list = fill_hollows(class);
	unlock();
	return list;
}

/* The caller holds the lock. */
static char *cut_slab(size_t bytes)
{
	size_t span;
	char *slab;

	if ((size_t)(left.end - left.next) < bytes) {
		slab = weft__arena_take_span(WEFT__SPAN_OF_BLOCKS, &span);
		if (!slab || span < bytes)
			return NULL;
		left.next = slab;
		left.end = slab + span;
	}
	slab = left.next;
	left.next += bytes;
	return slab;
}

/* The caller holds the lock. The slab is as large as all previous slabs together: a thread that recurses deeply needs
 * many blocks, and huge pages for them. */
static char *new_slab(struct weft__thread *thread, char **end)
{
	size_t bytes = thread->slabs ? thread->slabs : SLAB;
	char *slab;

	if (bytes > LARGEST_SLAB)
		bytes = LARGEST_SLAB;
	slab = cut_slab(bytes);
	if (!slab && bytes > SLAB)
		slab = cut_slab(bytes = SLAB);
	if (!slab)
		return NULL;
	weft__os_prefer_huge(slab, bytes);
	thread->slabs += bytes;
	*end = slab + bytes;
	return slab;
}

static bool next_slab(struct weft__thread *thread)
{
	struct rest *rest;
	char *slab, *end;

	lock();
	rest = left.rests;
	if (rest) {
		left.rests = rest->next;
		slab = (char *)rest;
		end = rest->end;
	} else {
		slab = new_slab(thread, &end);
	}
	unlock();
	if (!slab)
		return false;
	thread->slab = slab;
	thread->slab_end = end;
	return true;
}

/*
 * A list of new blocks, each below the previous block, like the frames of a contiguous stack: a deep recursion then
 * walks through memory in one direction, and the processor's prefetchers follow it. The rest of a slab, if it is too
 * short for a block, is lost.
 */
static struct weft__block *cut(struct weft__thread *thread, size_t class)
{
	struct weft__block *list = NULL, **tail = &list;
	size_t bytes = class * 64;

	if ((size_t)(thread->slab_end - thread->slab) < bytes && !next_slab(thread))
		return NULL;
	for (int i = 0; i < BATCH && (size_t)(thread->slab_end - thread->slab) >= bytes; i++) {
		thread->slab_end -= bytes;
		*tail = make(thread->slab_end, bytes, class);
		tail = &(*tail)->next;
	}
	*tail = NULL;
	return list;
}

/* If stacks must be executable, each large frame has pages of its own. */
static char *pages(size_t bytes)
{
	char *start = weft__os_alloc(bytes);

	if (start && weft__os_make_stack(start, bytes)) {
		weft__os_free(start, bytes);
		return NULL;
	}
	return start;
}

static struct weft__block *take_large(size_t bytes)
{
	char *start = NULL;

	if (bytes < SIZE_MAX / 2)
		start = weft__os_executable_stacks() ? pages(bytes) : aligned_alloc(64, bytes);
	return start ? make(start, bytes, LARGE) : NULL;
}

static void give_large(struct weft__block *block)
{
	if (weft__os_executable_stacks())
		weft__os_free(block->chunk.low, (size_t)((char *)(block + 1) - block->chunk.low));
	else
		free(block->chunk.low);
}

static struct weft__block *take_small(size_t class)
{
	struct weft__thread *thread = weft__thread();
	struct weft__block *list = take_left(class);

	if (!list && thread)
		list = cut(thread, class);
	if (list)
		weft__tls_blocks[class] = list->next;
	return list;
}

struct weft__block *weft__block_take(struct weft_link *self, size_t bytes)
{
	struct weft__block *block = bytes < LARGE * 64 ? take_small(bytes / 64) : take_large(bytes);

	if (!block)
		weft__owner_spent(self, (char *)__builtin_frame_address(0), WEFT__SPENT_MEMORY);
	weft__count_split(WEFT_HEAP);
	return block;
}

void weft__block_give(struct weft__block *block)
{
	size_t class = block->chunk.class;

	if (class == LARGE) {
		give_large(block);
		return;
	}
	block->next = weft__tls_blocks[class];
	weft__tls_blocks[class] = block;
}

/* Put the uncut rest of the thread's slab into the store: no other thread would find it. */
static void give_slab(struct weft__thread *thread)
{
	struct rest *rest = (struct rest *)(void *)thread->slab;

	if (thread->slab_end - thread->slab >= SMALLEST_REST) {
		lock();
		rest->end = thread->slab_end;
		rest->next = left.rests;
		left.rests = rest;
		unlock();
	}
	thread->slab = thread->slab_end = NULL;
}

static void give_lists(void)
{
	for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1) {
		struct weft__block *first = weft__tls_blocks[class];

		weft__tls_blocks[class] = NULL;
		if (!first)
			continue;
		lock();
		first->list = left.blocks[class];
		left.blocks[class] = first;
		unlock();
	}
}

static void give_surplus(size_t class)
{
	struct weft__block *last = weft__tls_blocks[class], *surplus;

	if (!last)
		return;
	last = last_of(last, KEEP);
	surplus = last->next;
	if (!surplus)
		return;
	last->next = NULL;
	lock();
	surplus->list = left.blocks[class];
	left.blocks[class] = surplus;
	unlock();
}

/*
 * A coroutine that calls in one thread and returns in another thread takes blocks from the list of the first thread and
 * puts them into the list of the second. The first thread would cut new blocks forever. So a thread that takes the last
 * blocks of the store announces that some are wanted, and each worker then puts all except KEEP blocks of each size
 * into the store. Counting the blocks of a list in each call and return would cost more than walking through a part of
 * it now and then.
 */
void weft__blocks_share(void)
{
	struct weft__thread *thread = weft__tls_thread;
	unsigned wanted = atomic_load_explicit(&left.wanted, memory_order_relaxed);

	if (!thread || thread->blocks_wanted == wanted || WEFT_CANARY(blocks_stay_where_they_are))
		return;
	thread->blocks_wanted = wanted;
	for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1)
		give_surplus(class);
}

void weft__blocks_detach(struct weft__thread *thread)
{
	give_slab(thread);
	give_lists();
}

/* ---- trimming -------------------------------------------------------------------------------------------------- */

static void add_free(struct weft__pages *pages, size_t class)
{
	for (struct weft__block *list = left.blocks[class]; list; list = list->list)
		for (struct weft__block *block = list; block; block = block->next)
			weft__pages_add(pages, block->chunk.low, class * 64, false);
	for (size_t i = 0; i < left.hollows[class].count; i++)
		weft__pages_add(pages, left.hollows[class].piece[i], class * 64, true);
}

/* Without memory to record hollow blocks, no block of this class may become hollow. */
static void spare(struct weft__pages *pages, size_t class)
{
	size_t count = 0;

	for (struct weft__block *list = left.blocks[class]; list; list = list->list)
		for (struct weft__block *block = list; block; block = block->next)
			count += weft__pages_hollow(pages, block->chunk.low, class * 64);
	if (weft__hollows_reserve(&left.hollows[class], count))
		return;
	for (struct weft__block *list = left.blocks[class]; list; list = list->list)
		for (struct weft__block *block = list; block; block = block->next)
			weft__pages_spare(pages, block->chunk.low, class * 64);
}

/* The blocks that are not hollow become one list. */
static void take_hollows(const struct weft__pages *pages, size_t class)
{
	struct weft__block *list = left.blocks[class], *next_list, *block, *next, *kept = NULL;

	for (; list; list = next_list) {
		next_list = list->list;
		for (block = list; block; block = next) {
			next = block->next;
			if (weft__pages_hollow(pages, block->chunk.low, class * 64)) {
				weft__hollows_push(&left.hollows[class], block->chunk.low);
				continue;
			}
			block->next = kept;
			kept = block;
		}
	}
	if (kept)
		kept->list = NULL;
	left.blocks[class] = kept;
}

size_t weft__blocks_trim(void)
{
	struct weft__pages pages;
	size_t bytes = 0;

	give_lists();
	lock();
	if (weft__pages_begin(&pages)) {
		for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1)
			add_free(&pages, class);
		for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1)
			spare(&pages, class);
		for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1)
			take_hollows(&pages, class);
		bytes = weft__pages_drop(&pages);
	}
	unlock();
	return bytes;
}

/* ---- the policy: a first chunk that holds the coroutine, and frames of none but its entry
 * ---------------------------- */

static atomic_size_t committed;

static const char *heap_unavailable(void)
{
	return weft__has_probes()
		   ? "heap needs code that checks at each call, and this program was compiled with --policy "
		     "mmu: compile it with --policy heap or segmented"
		   : NULL;
}

static int heap_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low)
{
	int error = heap_unavailable() ? -EINVAL : weft__linked_prepare(self, slot, start, low);

	if (!error)
		slot->chunk.limit = WEFT__HEAP_LIMIT;
	return error;
}

const char weft__with_heap;

const struct weft__policy weft__heap = {
    .name = "heap",
    .default_size = WEFT__TINY_LARGEST,
    .closed = true,
    .linked = true,
    .tiny = true,
    .unavailable = heap_unavailable,
    .committed = &committed,
    .prepare = heap_prepare,
    .discard = weft__linked_discard,
    .fault = weft__linked_fault,
};
