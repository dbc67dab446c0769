/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stack/contiguous.h"

static size_t usable(const struct weft__slot *slot)
{
	return (size_t)(weft__slot_end(slot) - slot->chunk.low);
}

int weft__contiguous_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low)
{
	int error = low > start ? weft__guard(start, (size_t)(low - start)) : 0;

	if (error)
		return error;
	slot->chunk.low = low;
	slot->chunk.limit = NULL;
	/* Relaxed, both: no other thread knows the slot yet; the counter is a statistic. */
	atomic_store_explicit(&slot->open, low, memory_order_relaxed);
	atomic_fetch_add_explicit(self->committed, usable(slot), memory_order_relaxed);
	return 0;
}

size_t weft__contiguous_discard(const struct weft__policy *self, struct weft__slot *slot)
{
	size_t bytes = usable(slot);

	weft__os_drop(slot->chunk.low, bytes);
	atomic_fetch_sub_explicit(self->committed, bytes, memory_order_relaxed); /* a statistic */
	return bytes;
}

enum weft__fault weft__contiguous_fault(struct weft__slot *slot, char *address)
{
	return address < slot->chunk.low ? WEFT__FAULT_OVERFLOW : WEFT__FAULT_FOREIGN;
}

size_t weft__contiguous_trim(struct weft__slot *slot, char *to)
{
	size_t bytes = (size_t)(to - slot->chunk.low);

	weft__os_drop(slot->chunk.low, bytes);
	return bytes;
}
