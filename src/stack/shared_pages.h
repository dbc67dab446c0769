/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Giving memory back where several free pieces share a page: tiny slots, records, buffers, blocks. Whoever keeps them
 * says which pieces are free; then pages that hold nothing else are dropped. A piece that lies in such a page, or
 * partly does, is hollow: what was in it is lost, and it must not be linked to others through its own memory.
 */
#ifndef WEFT_SRC_STACK_SHARED_PAGES_H
#define WEFT_SRC_STACK_SHARED_PAGES_H

#include "stack/policy.h"

/* For each page of the arena how many of its bytes are free, and whether some have memory. */
struct weft__pages {
	uint16_t *free;
	size_t count;
	size_t low, high; /* pages of interest */
};

/* False: there is no memory for that. Else weft__pages_drop must follow. */
bool weft__pages_begin(struct weft__pages *pages);
/* This piece is free; is it hollow already? */
void weft__pages_add(struct weft__pages *pages, const void *start, size_t bytes, bool hollow);
/* All are added. Will this piece be hollow? */
bool weft__pages_hollow(const struct weft__pages *pages, const void *start, size_t bytes);
/* It must not be, after all. */
void weft__pages_spare(struct weft__pages *pages, const void *start, size_t bytes);
/* Drop the pages. Bytes. */
size_t weft__pages_drop(struct weft__pages *pages);

/* Pieces that are hollow. */
struct weft__hollows {
	void **piece;
	size_t count, room;
};

/* Make room for so many more. False: no memory. */
bool weft__hollows_reserve(struct weft__hollows *hollows, size_t more);

static inline void weft__hollows_push(struct weft__hollows *hollows, void *piece)
{
	hollows->piece[hollows->count++] = piece;
}

/* NULL if there is none. */
static inline void *weft__hollows_pop(struct weft__hollows *hollows)
{
	return hollows->count ? hollows->piece[--hollows->count] : NULL;
}

#endif
