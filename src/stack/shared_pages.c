/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stack/shared_pages.h"

#include <string.h>

enum { HAS_MEMORY = 1 << 15, SPARED = 1 << 14, COUNT = SPARED - 1 };

bool weft__pages_begin(struct weft__pages *pages)
{
	size_t bytes;

	weft__arena_used(&bytes);
	pages->count = bytes / WEFT__PAGE;
	pages->low = pages->count;
	pages->high = 0;
	pages->free = pages->count ? weft__os_alloc(pages->count * sizeof *pages->free) : NULL;
	return pages->free;
}

static size_t page_of(const void *address)
{
	size_t bytes;

	return (size_t)((const char *)address - weft__arena_used(&bytes)) / WEFT__PAGE;
}

void weft__pages_add(struct weft__pages *pages, const void *start, size_t bytes, bool hollow)
{
	size_t page = page_of(start), offset = (uintptr_t)start % WEFT__PAGE, here;

	if (page < pages->low)
		pages->low = page;
	for (; bytes; bytes -= here, offset = 0, page++) {
		here = WEFT__PAGE - offset < bytes ? WEFT__PAGE - offset : bytes;
		pages->free[page] = (uint16_t)(pages->free[page] + here);
		if (!hollow)
			pages->free[page] |= HAS_MEMORY;
	}
	if (page > pages->high)
		pages->high = page;
}

static bool drops(const struct weft__pages *pages, size_t page)
{
	return pages->free[page] == (WEFT__PAGE | HAS_MEMORY);
}

bool weft__pages_hollow(const struct weft__pages *pages, const void *start, size_t bytes)
{
	for (size_t page = page_of(start); page <= page_of((const char *)start + bytes - 1); page++)
		if (drops(pages, page))
			return true;
	return false;
}

void weft__pages_spare(struct weft__pages *pages, const void *start, size_t bytes)
{
	for (size_t page = page_of(start); page <= page_of((const char *)start + bytes - 1); page++)
		pages->free[page] |= SPARED;
}

size_t weft__pages_drop(struct weft__pages *pages)
{
	size_t bytes = 0, first, unused;
	char *base = weft__arena_used(&unused);

	for (size_t page = pages->low; page < pages->high; page++) {
		first = page;
		while (page < pages->high && drops(pages, page))
			page++;
		if (page == first)
			continue;
		bytes += (page - first) * WEFT__PAGE;
		weft__os_drop(base + first * WEFT__PAGE, (page - first) * WEFT__PAGE);
	}
	weft__os_free(pages->free, pages->count * sizeof *pages->free);
	return bytes;
}

bool weft__hollows_reserve(struct weft__hollows *hollows, size_t more)
{
	size_t room = hollows->room ? 2 * hollows->room : WEFT__PAGE / sizeof *hollows->piece;
	void **piece;

	if (hollows->count + more <= hollows->room)
		return true;
	while (room < hollows->count + more)
		room *= 2;
	piece = weft__os_alloc(room * sizeof *piece);
	if (!piece)
		return false;
	if (hollows->room) {
		memcpy(piece, hollows->piece, hollows->count * sizeof *piece);
		weft__os_free(hollows->piece, hollows->room * sizeof *piece);
	}
	hollows->piece = piece;
	hollows->room = room;
	return true;
}
