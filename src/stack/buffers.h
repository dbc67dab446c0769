/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Small pieces of memory with per-thread free lists: no lock and no system call when warm, and never malloc, because
 * they are taken in the middle of a switch. Classes are multiples of 64 bytes up to a page, then powers of two;
 * what is larger is mapped. A list that grows too long hands half of itself to the process, as a batch.
 *
 * The memory comes from spans of the arena and is never unmapped.
 */
#ifndef WEFT_SRC_STACK_BUFFERS_H
#define WEFT_SRC_STACK_BUFFERS_H

#include "stack/policy.h"

enum {
	WEFT__BUFFER_UNIT = 64,
	WEFT__BUFFER_SMALL = WEFT__PAGE / WEFT__BUFFER_UNIT, /* classes up to a page */
	WEFT__BUFFER_LARGEST_SHIFT = 20,
	WEFT__BUFFER_MAPPED = WEFT__BUFFER_CLASSES, /* the class of what has a mapping of its own */
};

static inline unsigned weft__buffer_class(size_t bytes)
{
	if (bytes <= WEFT__PAGE)
		return (unsigned)((bytes + WEFT__BUFFER_UNIT - 1) / WEFT__BUFFER_UNIT) - 1;
	if (bytes > (size_t)1 << WEFT__BUFFER_LARGEST_SHIFT)
		return WEFT__BUFFER_MAPPED;
	return WEFT__BUFFER_SMALL + (63 - (unsigned)__builtin_clzll(bytes - 1)) - 12;
}

/* Bytes of a class that is not WEFT__BUFFER_MAPPED. */
static inline size_t weft__buffer_size(unsigned class)
{
	if (class < WEFT__BUFFER_SMALL)
		return (class + (size_t)1) * WEFT__BUFFER_UNIT;
	return (size_t)1 << (class - WEFT__BUFFER_SMALL + 13);
}

void *weft__buffer_take_slow(struct weft__thread *thread, unsigned class, size_t bytes);
void weft__buffer_give_slow(struct weft__thread *thread, void *buffer, unsigned class, size_t bytes);

/* At least so many bytes, aligned to 64; NULL if there is no memory. `class` is weft__buffer_class(bytes). */
static inline void *weft__buffer_take(struct weft__thread *thread, unsigned class, size_t bytes)
{
	struct weft__buffer_list *list = &thread->buffers[class];
	struct weft__buffer *buffer = class < WEFT__BUFFER_MAPPED ? list->head : NULL;

	if (weft__unlikely(!buffer))
		return weft__buffer_take_slow(thread, class, bytes);
	list->head = buffer->next;
	list->count--;
	return buffer;
}

/* With the class and size that it was taken with; by any thread. */
static inline void weft__buffer_give(struct weft__thread *thread, void *memory, unsigned class, size_t bytes)
{
	struct weft__buffer_list *list = &thread->buffers[class];
	struct weft__buffer *buffer = memory;

	if (weft__unlikely(class >= WEFT__BUFFER_MAPPED || list->count >= list->limit)) {
		weft__buffer_give_slow(thread, memory, class, bytes);
		return;
	}
	buffer->next = list->head;
	list->head = buffer;
	list->count++;
}

/* At thread exit, and when memory should go back: the thread's lists to the process. */
WEFT__OF_BUFFERS void weft__buffers_drain(struct weft__thread *thread);
/* Pages inside of free buffers that the process keeps go back to the kernel. Returns how many bytes. */
WEFT__OF_BUFFERS size_t weft__buffers_trim(void);

/* Visit the memory that buffers come from, in use or not. */
WEFT__OF_BUFFERS void weft__buffers_each(void (*visit)(char *start, size_t bytes));

#endif
