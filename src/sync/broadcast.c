/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Broadcasts. A receiver is a number: the number of the item that it receives next. It waits only if it has seen all
 * items, so a sender copies its item to every waiting receiver, and increments the receiver's number. Every call
 * accesses the broadcast for the last time when it unlocks it, so the last user may free it.
 */
#include "sync/queue.h"

#include <string.h>

static void *item_at(const weft_broadcast_t *b, uint64_t number)
{
	return (char *)b->items + number % b->capacity * b->bytes;
}

uint64_t weft__broadcast_begin(weft_broadcast_t *b)
{
	uint64_t next;

	lock(&b->queue);
	next = b->sent - b->is_watch;
	unlock(&b->queue);
	return next;
}

static void hand_over(struct weft__place *place, const void *item, size_t bytes)
{
	weft_receiver_t *r = place->value;

	memcpy(r->item, item, bytes);
	r->next++;
	place->status = 0;
}

int weft__broadcast_send(weft_broadcast_t *b, const void *item)
{
	struct weft__place *all = NULL, *place;
	bool closed;

	lock(&b->queue);
	closed = b->closed;
	if (!closed) {
		memcpy(item_at(b, b->sent++), item, b->bytes);
		all = claim_all(&b->queue);
		for (place = all; place; place = place->next)
			hand_over(place, item, b->bytes);
	}
	unlock(&b->queue);
	complete_all(all);
	return closed ? -EPIPE : 0;
}

void weft__broadcast_close(weft_broadcast_t *b)
{
	struct weft__place *all, *place;

	lock(&b->queue);
	b->closed = true;
	all = claim_all(&b->queue);
	for (place = all; place; place = place->next)
		place->status = -EPIPE;
	unlock(&b->queue);
	complete_all(all);
}

int weft__broadcast_latest(weft_broadcast_t *b, void *item)
{
	bool known;

	lock(&b->queue);
	known = b->sent;
	if (known)
		memcpy(item, item_at(b, b->sent - 1), b->bytes);
	unlock(&b->queue);
	return known ? 0 : -ENODATA;
}

static int look(weft_receiver_t *r, void *item, struct weft__place *place)
{
	weft_broadcast_t *b = r->from;

	if (r->next < b->sent)
		return 1;
	if (b->closed)
		return -EPIPE;
	if (place) {
		r->item = item;
		r->missed = 0;
		place->value = r;
		add(&b->queue, place);
	}
	return 0;
}

int weft__broadcast_look(weft_receiver_t *r, void *item, struct weft__place *place)
{
	int result;

	lock(&r->from->queue);
	result = look(r, item, place);
	unlock(&r->from->queue);
	return result;
}

int weft__broadcast_receive(weft_receiver_t *r, void *item, struct weft__place *place)
{
	weft_broadcast_t *b = r->from;
	uint64_t oldest;
	int result;

	lock(&b->queue);
	result = look(r, item, place);
	if (result > 0) {
		oldest = b->sent > b->capacity ? b->sent - b->capacity : 0;
		r->missed = r->next < oldest ? oldest - r->next : 0;
		r->next += r->missed;
		memcpy(item, item_at(b, r->next++), b->bytes);
	}
	unlock(&b->queue);
	return result;
}
