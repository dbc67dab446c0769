/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that are made with attributes, or in the caller's storage. */
#define WEFT__PART_SAVING
#include "coro/copying.h"
#include "internal/valgrind.h"

#include <errno.h>
#include <string.h>

static const weft_attr_t no_attr;

static WEFT__COLD unsigned class_with_guard(weft_policy_t policy, const weft_attr_t *attr)
{
	if (attr->flags & WEFT_NO_GUARD)
		return WEFT__CLASSES;
	return weft__class_with_guard(policy, attr->stack_size, attr->guard_size);
}

struct weft__slot *weft__take_slot(const weft_attr_t *attr, int *error)
{
	struct weft__thread *thread = weft__thread();
	weft_policy_t policy = attr->policy;
	unsigned class;

	weft__check_no_handler();
	*error = -EINVAL;
	if ((unsigned)policy >= WEFT_POLICY_COUNT ||
	    attr->flags & ~(unsigned)(WEFT__SAVING | WEFT_NO_GUARD | WEFT_UNWIND))
		return NULL;
	/* One question about four fields. */
	if (weft__likely(thread) &&
	    weft__likely(!(policy | attr->stack_size | attr->guard_size | (attr->flags & WEFT_NO_GUARD)))) {
		*error = -ENOMEM;
		return weft__take_usual(thread, error);
	}
	if (!policy)
		policy = weft_default_policy();
	if (weft__unlikely(attr->guard_size))
		class = class_with_guard(policy, attr);
	else
		class = weft__class(policy, attr->stack_size, !(attr->flags & WEFT_NO_GUARD));
	if (class == WEFT__CLASSES)
		return NULL;
	*error = -ENOMEM;
	if (!thread)
		return NULL;
	return weft__slot_take(&thread->bins[policy][class], error);
}

static void apply(weft_coro_t *k, const weft_attr_t *attr)
{
	k->name = attr->name;
	k->user_data = attr->user_data;
	k->flags |= attr->flags;
	if (k->flags & WEFT__SAVING)
		weft__arm_saving(k);
}

weft_coro_t *weft_create_with(weft_fn_t *fn, void *arg, const weft_attr_t *attr)
{
	struct weft__slot *slot;
	weft_coro_t *k;
	int error;

	if (!attr)
		attr = &no_attr;
	slot = weft__take_slot(attr, &error);
	if (!slot) {
		errno = -error;
		return NULL;
	}
	k = (weft_coro_t *)slot->object;
	k->flags = 0;
	weft__set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	if (weft__unlikely(weft__notes_sites))
		weft__note_site(k);
	return k;
}

/* Does the storage hold a coroutine made by weft_init? It may hold anything; the arena knows what it gave out. */
static bool in_use(weft_coro_t *k)
{
	struct weft__slot *slot;

	if (!weft__thread() && weft__arena_open())
		return false;
	if (weft__unlikely(weft__on_memcheck))
		VALGRIND_MAKE_MEM_DEFINED(k, sizeof *k);
	slot = weft__arena_find(k->slot);
	return slot && slot == k->slot && atomic_load_explicit(&slot->owner, memory_order_relaxed) == k;
}

/* As memset does; but compilers make of that one instruction which takes longer than all the rest of weft_init. */
static inline void clear(weft_coro_t *k)
{
	typedef long long word_t __attribute__((vector_size(16), may_alias));

	for (word_t *to = (word_t *)k; to < (word_t *)(k + 1); to++) {
		*to = (word_t){0};
		__asm__ volatile("" : : : "memory");
	}
}

int weft_init(weft_coro_t *k, weft_fn_t *fn, void *arg, const weft_attr_t *attr)
{
	struct weft__slot *slot;
	int error;

	weft__require(k, "weft_init");
	if (in_use(k))
		weft_release(k);
	clear(k);
	weft__object_clear(k);
	if (!attr)
		attr = &no_attr;
	slot = weft__take_slot(attr, &error);
	if (!slot)
		return error;
	weft__set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	return 0;
}
