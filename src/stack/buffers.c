/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define WEFT__PART_BUFFERS
#include "stack/buffers.h"

#include <errno.h>
#include <pthread.h>

#include "internal/alloc_faults.h"
#include "internal/signal_safe_lock.h"
#include "stack/shared_pages.h"

#ifdef WEFT_TINY
enum { LIST_BYTES = 1024 };
#else
enum { LIST_BYTES = 1 << 20 }; /* per class and thread */
#endif
enum { BATCH_BYTES = 16 * 1024 }; /* cut or moved at once */

static struct {
	pthread_mutex_t lock;
	char *next, *end; /* the rest of the newest span */
	struct weft__buffer *batches[WEFT__BUFFER_CLASSES];
	struct weft__hollows hollows[WEFT__BUFFER_CLASSES];
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

WEFT__LOCK_OF_FILE(store.lock);

/* A fork must not leave the child with a lock that no thread holds. */
__attribute__((constructor(104))) static void survive_fork(void)
{
	(void)pthread_atfork(lock, unlock, unlock);
}

static uint32_t batch_of(unsigned class)
{
	size_t count = BATCH_BYTES / weft__buffer_size(class);

	return count ? (uint32_t)count : 1;
}

/* The caller holds the lock. A list of buffers that lost their memory; NULL if there is none. */
static struct weft__buffer *fill_hollows(unsigned class, uint32_t *count)
{
	struct weft__buffer *head = NULL, *buffer;

	for (*count = 0; *count < batch_of(class) && (buffer = weft__hollows_pop(&store.hollows[class])); ++*count) {
		buffer->next = head;
		head = buffer;
	}
	return head;
}

/* The caller holds the lock. A list of new buffers, up to a batch or the rest of the span; NULL if there is no
 * memory. */
static struct weft__buffer *cut(unsigned class, uint32_t *count)
{
	size_t size = weft__buffer_size(class), span;
	struct weft__buffer *head = NULL, *buffer;

	if ((size_t)(store.end - store.next) < size) {
		char *start = weft__arena_take_span(WEFT__SPAN_OF_BUFFERS, &span);

		if (!start)
			return NULL;
		store.next = start;
		store.end = start + span;
	}
	for (*count = 0; *count < batch_of(class) && (size_t)(store.end - store.next) >= size; ++*count) {
		buffer = (struct weft__buffer *)store.next;
		store.next += size;
		buffer->next = head;
		head = buffer;
	}
	return head;
}

static struct weft__buffer *take_batch(unsigned class, uint32_t *count)
{
	struct weft__buffer *batch;

	lock();
	batch = store.batches[class];
	if (batch) {
		store.batches[class] = batch->batch;
		*count = batch->in_batch;
	} else {
		batch = fill_hollows(class, count);
		if (!batch)
			batch = cut(class, count);
	}
	unlock();
	return batch;
}

void *weft__buffer_take_slow(struct weft__thread *thread, unsigned class, size_t bytes)
{
	struct weft__buffer *batch;
	uint32_t count;

	if (WEFT__INJECT_FAULT())
		return NULL;
	if (class >= WEFT__BUFFER_MAPPED)
		return weft__os_alloc(bytes);
	batch = take_batch(class, &count);
	if (!batch)
		return NULL;
	if (!thread->buffers[class].limit)
		thread->buffers[class].limit = LIST_BYTES / weft__buffer_size(class) + 2;
	thread->buffers[class].head = batch->next;
	thread->buffers[class].count = count - 1;
	return batch;
}

/* Move the first `count` buffers of a thread's list to the process's store. */
static void give_batch(struct weft__buffer_list *list, unsigned class, uint32_t count)
{
	struct weft__buffer *batch = list->head, *last = batch;

	if (!batch)
		return;
	for (uint32_t i = 1; i < count; i++)
		last = last->next;
	list->head = last->next;
	list->count -= count;
	last->next = NULL;
	lock();
	batch->in_batch = count;
	batch->batch = store.batches[class];
	store.batches[class] = batch;
	unlock();
}

void weft__buffer_give_slow(struct weft__thread *thread, void *memory, unsigned class, size_t bytes)
{
	struct weft__buffer_list *list = &thread->buffers[class];
	struct weft__buffer *buffer = memory;

	if (class >= WEFT__BUFFER_MAPPED) {
		weft__os_free(memory, bytes);
		return;
	}
	if (!list->limit)
		list->limit = LIST_BYTES / weft__buffer_size(class) + 2;
	buffer->next = list->head;
	list->head = buffer;
	if (++list->count > list->limit)
		give_batch(list, class, list->count / 2);
}

void weft__buffers_drain(struct weft__thread *thread)
{
	for (unsigned class = 0; class < WEFT__BUFFER_CLASSES; class ++)
		give_batch(&thread->buffers[class], class, thread->buffers[class].count);
}

static void (*visitor)(char *start, size_t bytes);

/* Visit only the cut part of the newest span, and all of an older span. */
static void visit_span(char *start, size_t bytes)
{
	visitor(start, store.end == start + bytes ? (size_t)(store.next - start) : bytes);
}

void weft__buffers_each(void (*visit)(char *start, size_t bytes))
{
	lock();
	visitor = visit;
	weft__arena_each_span(WEFT__SPAN_OF_BUFFERS, visit_span);
	unlock();
}

/* ---- trimming -------------------------------------------------------------------------------------------------- */

static void add_free(struct weft__pages *pages, unsigned class)
{
	size_t size = weft__buffer_size(class);

	for (struct weft__buffer *batch = store.batches[class]; batch; batch = batch->batch)
		for (struct weft__buffer *buffer = batch; buffer; buffer = buffer->next)
			weft__pages_add(pages, buffer, size, false);
	for (size_t i = 0; i < store.hollows[class].count; i++)
		weft__pages_add(pages, store.hollows[class].piece[i], size, true);
}

static size_t count_hollows(const struct weft__pages *pages, unsigned class)
{
	size_t count = 0;

	for (struct weft__buffer *batch = store.batches[class]; batch; batch = batch->batch)
		for (struct weft__buffer *buffer = batch; buffer; buffer = buffer->next)
			count += weft__pages_hollow(pages, buffer, weft__buffer_size(class));
	return count;
}

/* Without memory to record hollow buffers, no buffer of this class may become hollow. */
static void spare(struct weft__pages *pages, unsigned class)
{
	if (weft__hollows_reserve(&store.hollows[class], count_hollows(pages, class)))
		return;
	for (struct weft__buffer *batch = store.batches[class]; batch; batch = batch->batch)
		for (struct weft__buffer *buffer = batch; buffer; buffer = buffer->next)
			weft__pages_spare(pages, buffer, weft__buffer_size(class));
}

/* Make new batches of the buffers that are not hollow. */
static void take_hollows(const struct weft__pages *pages, unsigned class)
{
	struct weft__buffer *batch = store.batches[class], *next_batch, *buffer, *next;

	store.batches[class] = NULL;
	for (; batch; batch = next_batch) {
		struct weft__buffer *kept = NULL;
		uint32_t count = 0;

		next_batch = batch->batch;
		for (buffer = batch; buffer; buffer = next) {
			next = buffer->next;
			if (weft__pages_hollow(pages, buffer, weft__buffer_size(class))) {
				weft__hollows_push(&store.hollows[class], buffer);
				continue;
			}
			buffer->next = kept;
			kept = buffer;
			count++;
		}
		if (!kept)
			continue;
		kept->in_batch = count;
		kept->batch = store.batches[class];
		store.batches[class] = kept;
	}
}

size_t weft__buffers_trim(void)
{
	struct weft__pages pages;
	size_t bytes = 0;

	lock();
	if (weft__pages_begin(&pages)) {
		for (unsigned class = 0; class < WEFT__BUFFER_CLASSES; class ++)
			add_free(&pages, class);
		for (unsigned class = 0; class < WEFT__BUFFER_CLASSES; class ++)
			spare(&pages, class);
		for (unsigned class = 0; class < WEFT__BUFFER_CLASSES; class ++)
			take_hollows(&pages, class);
		bytes = weft__pages_drop(&pages);
	}
	unlock();
	return bytes;
}
