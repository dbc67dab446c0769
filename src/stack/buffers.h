/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Small pieces of memory with per-thread free lists: no lock and no system call when warm, and never malloc, because
 * they are allocated in the middle of a switch. Classes are multiples of 64 bytes up to a page, then powers of two;
 * larger pieces are mapped. A list that grows too long moves half of itself to the process's store, as a batch.
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
	WEFT__BUFFER_MAPPED = WEFT__BUFFER_CLASSES, /* the class of pieces with a mapping of their own */
};

static inline unsigned weft__buffer_class(size_t bytes)
{
	if (bytes <= WEFT__PAGE)
		return (unsigned)((bytes + WEFT__BUFFER_UNIT - 1) / WEFT__BUFFER_UNIT) - 1;
	if (bytes > (size_t)1 << WEFT__BUFFER_LARGEST_SHIFT)
		return WEFT__BUFFER_MAPPED;
	return WEFT__BUFFER_SMALL + (63 - (unsigned)__builtin_clzll(bytes - 1)) - 12;
}

/* The size of a class other than WEFT__BUFFER_MAPPED. */
static inline size_t weft__buffer_size(unsigned class)
{
	if (class < WEFT__BUFFER_SMALL)
		return (class + (size_t)1) * WEFT__BUFFER_UNIT;
	return (size_t)1 << (class - WEFT__BUFFER_SMALL + 13);
}

void *weft__buffer_take_slow(struct weft__thread *thread, unsigned class, size_t bytes);
void weft__buffer_give_slow(struct weft__thread *thread, void *buffer, unsigned class, size_t bytes);

/* Allocate at least `bytes` bytes, aligned to 64; NULL if there is no memory. `class` is weft__buffer_class(bytes). */
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

/* Free a piece, with the class and size of its allocation; in any thread. */
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

/* Called at thread exit, and to free memory: moves the thread's lists to the process's store. */
WEFT__OF_BUFFERS void weft__buffers_drain(struct weft__thread *thread);
/* Discard pages inside of free buffers of the store. Returns the bytes. */
WEFT__OF_BUFFERS size_t weft__buffers_trim(void);

/* Visit the memory of buffers, in use or not. */
WEFT__OF_BUFFERS void weft__buffers_each(void (*visit)(char *start, size_t bytes));

#endif
