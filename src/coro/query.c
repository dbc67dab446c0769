/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queries about coroutines. */
#include <errno.h>
#include <string.h>

#include "coro/copying.h"

weft_coro_t *weft_current(void)
{
	weft_coro_t *self = weft__self();

	return self && self->parent ? self : NULL;
}

int weft_errno(void)
{
	return errno;
}

weft_coro_t *weft_parent(const weft_coro_t *k)
{
	weft__require(k, "weft_parent");
	return weft__was_resumed(k) && k->parent->parent ? k->parent : NULL;
}

const char *weft_name(const weft_coro_t *k)
{
	weft__require(k, "weft_name");
	return k->name ? k->name : "";
}

/* The stack pointer does not show this, because there may be room above the first frame (reserve.c). */
bool weft__is_fresh(const weft_coro_t *k)
{
	return !weft__has_started(k);
}

weft_policy_t weft_policy(const weft_coro_t *k)
{
	weft__require(k, "weft_policy");
	return k->slot ? (weft_policy_t)k->slot->policy : WEFT_DEFAULT_POLICY;
}

const struct weft__slot *weft__stack_of(const weft_coro_t *k)
{
	if (!(k->flags & WEFT__COPIED))
		return k->slot;
	return weft__copied_of(k)->region ? weft__region_slot(weft__copied_of(k)->region) : NULL;
}

size_t weft_stack_usable(const weft_coro_t *k)
{
	const struct weft__slot *slot;

	weft__require(k, "weft_stack_usable");
	slot = weft__stack_of(k);
	if (slot)
		return (size_t)((char *)slot - slot->chunk.low);
	/* At least: the coroutine has no region yet. */
	return k->slot ? weft__class_bytes(k->slot->class) - weft__guard_size(k->slot->class) - WEFT__PAGE : 0;
}

bool weft_on_stack(const weft_coro_t *k, const void *address)
{
	const struct weft__slot *slot;
	const char *at = address;

	weft__require(k, "weft_on_stack");
	slot = weft__stack_of(k);
	if (slot && at < (const char *)slot && at >= weft__slot_start(slot))
		return true;
	return k->link.chunk && weft__chunks_have(&k->link, at);
}

/* If no coroutine is copied, all frames are in place. */
static int move(weft_coro_t *k, char *at, void *here, size_t bytes, bool writes)
{
	if (weft__move_copied)
		return weft__move_copied(k, at, here, bytes, writes);
	if (weft_state(k) != WEFT_SUSPENDED)
		return -EINVAL;
	memcpy(writes ? at : here, writes ? here : at, bytes);
	return 0;
}

int weft_peek(weft_coro_t *k, const void *at, void *to, size_t bytes)
{
	weft__require(k, "weft_peek");
	return move(k, (char *)at, to, bytes, false);
}

int weft_poke(weft_coro_t *k, void *at, const void *from, size_t bytes)
{
	weft__require(k, "weft_poke");
	return move(k, at, (void *)from, bytes, true);
}

bool weft_coro_is_valid(const weft_coro_t *k)
{
	if (!k)
		return false;
	switch (weft_state(k)) {
	case WEFT_DELETED:
		return !k->id;
	case WEFT_SUSPENDED:
		return k->id && k->slot && k->innermost &&
		       (k->innermost->flags & WEFT__COPYING || weft_on_stack(k->innermost, (char *)k->link.sp - 1));
	case WEFT_RUNNING:
	case WEFT_FINISHED:
		return k->id && k->slot && k->innermost;
	}
	return false;
}
