/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * heap: a block of memory for each call. The limit is above every address, so each prologue comes to __morestack, which
 * takes a block from the thread's list of that size and gives it back when the call returns. Sizes are multiples of
 * 64 bytes up to 4 KiB; larger frames have memory of their own.
 *
 * A block is used from its end: its record, then the frame, then room for what runs without a check. Lists are the
 * thread's, whatever thread a block comes from; what a thread leaves behind at its end the next ones take.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "stack/policy.h"

enum { SLAB = 256 * 1024, LARGEST_SLAB = 32 * 1024 * 1024, BATCH = 16, LARGE = WEFT_BLOCK_CLASSES };

__thread struct weft__block *weft__tls_blocks[WEFT_BLOCK_CLASSES] __attribute__((tls_model("initial-exec")));

/* What ended threads left: lists. */
static struct {
	pthread_mutex_t lock;
	struct weft__block *blocks[WEFT_BLOCK_CLASSES];
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct weft__block *make(char *start, size_t bytes, size_t class)
{
	struct weft__block *block = (struct weft__block *)(void *)(start + bytes) - 1;

	block->chunk = (struct weft__chunk){.class = class, .limit = WEFT__HEAP_LIMIT, .low = start};
	return block;
}

static struct weft__block *take_left(size_t class)
{
	struct weft__block *list;

	pthread_mutex_lock(&left.lock);
	list = left.blocks[class];
	if (list)
		left.blocks[class] = list->list;
	pthread_mutex_unlock(&left.lock);
	return list;
}

/* As large as all before together: who goes deep needs many, and huge pages for them. */
static bool next_slab(struct weft__thread *thread)
{
	size_t bytes = thread->slabs ? thread->slabs : SLAB;
	char *slab;

	if (bytes > LARGEST_SLAB)
		bytes = LARGEST_SLAB;
	slab = weft__os_alloc(bytes);
	if (!slab && bytes > SLAB)
		slab = weft__os_alloc(bytes = SLAB);
	if (!slab)
		return false;
	if (weft__os_make_stack(slab, bytes)) {
		weft__os_free(slab, bytes);
		return false;
	}
	weft__os_prefer_huge(slab, bytes);
	thread->slabs += bytes;
	thread->slab = slab;
	thread->slab_end = slab + bytes;
	return true;
}

/* A list of new blocks; what is left of a slab that is too short is lost. */
static struct weft__block *cut(struct weft__thread *thread, size_t class)
{
	struct weft__block *list = NULL;
	size_t bytes = class * 64;

	if ((size_t)(thread->slab_end - thread->slab) < bytes && !next_slab(thread))
		return NULL;
	for (int i = 0; i < BATCH && (size_t)(thread->slab_end - thread->slab) >= bytes; i++) {
		struct weft__block *block = make(thread->slab, bytes, class);

		thread->slab += bytes;
		block->next = list;
		list = block;
	}
	return list;
}

/* Where stacks are executable, each has pages of its own. */
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
		weft__owner_spent(self, (char *)__builtin_frame_address(0));
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

/* What no block was cut from yet: nobody else would find it. */
static void give_slab(struct weft__thread *thread)
{
	char *unused = (char *)(((uintptr_t)thread->slab + WEFT__PAGE - 1) & ~(uintptr_t)(WEFT__PAGE - 1));

	if (unused < thread->slab_end)
		weft__os_free(unused, (size_t)(thread->slab_end - unused));
	thread->slab = thread->slab_end = NULL;
}

void weft__blocks_detach(struct weft__thread *thread)
{
	give_slab(thread);
	for (size_t class = 0; class < WEFT_BLOCK_CLASSES; class += 1) {
		struct weft__block *first = weft__tls_blocks[class];

		weft__tls_blocks[class] = NULL;
		if (!first)
			continue;
		pthread_mutex_lock(&left.lock);
		first->list = left.blocks[class];
		left.blocks[class] = first;
		pthread_mutex_unlock(&left.lock);
	}
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
