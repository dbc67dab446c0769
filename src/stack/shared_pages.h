/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Discarding memory when several free pieces share a page: tiny slots, records, buffers, blocks. The owner of the free
 * lists names the pieces that are free; then pages that hold nothing else are discarded. A piece is hollow if it is in
 * such a page, even partly: its contents are lost, and it must not be linked to other pieces through its own memory.
 */
#ifndef WEFT_SRC_STACK_SHARED_PAGES_H
#define WEFT_SRC_STACK_SHARED_PAGES_H

#include "stack/policy.h"

/* For each page of the arena: how many of its bytes are free, and whether some of them have memory. */
struct weft__pages {
	uint16_t *free;
	size_t count;
	size_t low, high; /* pages of interest */
};

/* False: there is no memory for the table. If true, weft__pages_drop must follow. */
bool weft__pages_begin(struct weft__pages *pages);
/* Record a free piece. `hollow`: it is hollow already. */
void weft__pages_add(struct weft__pages *pages, const void *start, size_t bytes, bool hollow);
/* After all pieces are recorded: will this piece be hollow? */
bool weft__pages_hollow(const struct weft__pages *pages, const void *start, size_t bytes);
/* Keep the piece from becoming hollow. */
void weft__pages_spare(struct weft__pages *pages, const void *start, size_t bytes);
/* Discard the pages. Returns the bytes. */
size_t weft__pages_drop(struct weft__pages *pages);

/* Hollow pieces. */
struct weft__hollows {
	void **piece;
	size_t count, room;
};

/* Make room for `more` pieces. False: no memory. */
bool weft__hollows_reserve(struct weft__hollows *hollows, size_t more);

static inline void weft__hollows_push(struct weft__hollows *hollows, void *piece)
{
	hollows->piece[hollows->count++] = piece;
}

/* NULL: there is no hollow piece. */
static inline void *weft__hollows_pop(struct weft__hollows *hollows)
{
	return hollows->count ? hollows->piece[--hollows->count] : NULL;
}

#endif
