/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Coroutines that are made with attributes, or in the caller's storage. */
#define WEFT__PART_CALLERS
#define WEFT__PART_SAVING
#include "coro/copying.h"
#include "internal/valgrind.h"

#include <errno.h>
#include <string.h>

static const weft_attr_t no_attr;

enum {
#ifdef WEFT_FREESTANDING /* no unwinder */
	PLAIN = WEFT_SAVE_FPU | WEFT_SAVE_EXCEPTIONS,
#else
	PLAIN = WEFT_SAVE_FPU | WEFT_SAVE_EXCEPTIONS | WEFT_UNWIND, /* do not affect the stack */
#endif
	KNOWN = PLAIN | WEFT_NO_GUARD | WEFT_MEMORY_ONLY,
};

/* True if the attributes contradict each other, sizes aside. */
static bool are_wrong(const weft_attr_t *attr)
{
	return (unsigned)attr->policy >= WEFT_POLICY_COUNT || attr->flags & ~(unsigned)KNOWN ||
	       (attr->guard_size && attr->flags & WEFT_NO_GUARD);
}

static struct weft__callers_wish wish_of(const weft_attr_t *attr)
{
	return (struct weft__callers_wish){.policy = attr->policy,
					   .memory = attr->memory,
					   .bytes = attr->memory_size,
					   .guard = attr->guard_size,
					   .watched = !(attr->flags & WEFT_NO_GUARD),
					   .only = attr->flags & WEFT_MEMORY_ONLY};
}

/* A size without memory is the size of an allocation that failed. */
static WEFT__COLD struct weft__slot *take_in_memory(const weft_attr_t *attr, int *error)
{
	struct weft__callers_wish wish = wish_of(attr);
	struct weft__slot *slot = attr->memory ? weft__callers_take(&wish, error) : NULL;

	if (slot && weft__callers_of(slot)->is_watched)
		((weft_coro_t *)slot->object)->flags = WEFT__WATCHED;
	return slot;
}

size_t weft_memory_size(const weft_attr_t *attr, size_t stack_bytes)
{
	struct weft__callers_wish wish = wish_of(attr ? attr : &no_attr);

	return attr && are_wrong(attr) ? 0 : weft__callers_size(&wish, stack_bytes);
}

const char *weft_memory_unfit(const weft_attr_t *attr, char *text, size_t size)
{
	struct weft__callers_wish wish;
	struct weft__line line = {.length = 0};

	if (!attr || !attr->memory)
		weft__line_text(&line, "there is no memory: weft_attr.memory is NULL");
	else if (are_wrong(attr))
		weft__line_text(&line, "attributes that are unknown, or guard_size together with WEFT_NO_GUARD");
	else if (wish = wish_of(attr), !weft__callers_unfit(&wish, &line))
		return NULL;
	if (size) {
		if (line.length > size - 1)
			line.length = size - 1;
		memcpy(text, line.text, line.length);
		text[line.length] = 0;
	}
	return text;
}

/* Take a slot when the thread has no record, or for a guard of another size, or in memory of the caller's. */
static WEFT__COLD struct weft__slot *take_unusual(const weft_attr_t *attr, struct weft__thread *thread, int *error)
{
	weft_policy_t policy = attr->policy ? attr->policy : weft_default_policy();
	unsigned class;

	*error = -EINVAL;
	if (are_wrong(attr))
		return NULL;
	*error = -ENOMEM;
	if (!thread)
		return NULL;
	*error = -EINVAL;
	if (attr->memory || attr->memory_size)
		return take_in_memory(attr, error);
	if (attr->flags & WEFT_MEMORY_ONLY)
		return NULL;
	class = weft__class_with_guard(policy, attr->stack_size, attr->guard_size);
	return class == WEFT__CLASSES ? NULL : weft__slot_take(weft__bin_of(thread, policy, class), error);
}

WEFT__LAST_WORDS(static, die_overflowed, (const weft_coro_t *k, const struct weft__slot *slot), k, slot)
{
	struct weft__line line;

	weft__line_coro(&line, "stack overflow in", k);
	weft__line_text(&line, ": ");
	weft__line_text(&line, weft__policies[slot->policy]->name);
	weft__line_text(&line, ", ");
	weft__line_bytes(&line, weft__slot_bytes(slot));
	weft__line_text(&line,
			" of the caller's memory; it was noticed when the coroutine was left, so that memory below "
			"may have been written to; raise it with weft_attr.memory_size: ");
	weft__line_number(&line, 2 * weft__slot_bytes(slot) / 1024);
	weft__line_text(&line, "K, or ask for a guard by weft_attr.guard_size");
	weft__line_die(&line);
}

/* The frames of a suspended coroutine end at link.sp, unless it is suspended from below. */
void weft__watch(const weft_coro_t *k, const struct weft__slot *slot)
{
	bool ends_there = k->slot == slot && k->innermost == k && k->link.pc != (void *)weft__in_finished;

	if (weft__callers_overflowed(slot, ends_there ? k->link.sp : (void *)slot))
		die_overflowed(k, slot);
}

static WEFT__COLD struct weft__slot *take_none(int *error)
{
	*error = -EINVAL;
	return NULL;
}

/* Take a slot with another policy, size, or flag. */
static __attribute__((noinline)) struct weft__slot *take_other(const weft_attr_t *attr, struct weft__thread *thread,
							       int *error)
{
	weft_policy_t policy = attr->policy;
	unsigned class;

	if (weft__unlikely((unsigned)policy >= WEFT_POLICY_COUNT) ||
	    weft__unlikely(attr->flags & ~(unsigned)(PLAIN | WEFT_NO_GUARD)))
		return take_none(error);
	if (!policy)
		policy = weft_default_policy();
	class = weft__class(policy, attr->stack_size, !(attr->flags & WEFT_NO_GUARD));
	if (weft__unlikely(class == WEFT__CLASSES))
		return take_none(error);
	return weft__slot_take(weft__bin_of(thread, policy, class), error);
}

static inline __attribute__((always_inline)) struct weft__slot *take(const weft_attr_t *attr, int *error)
{
	size_t unusual = attr->guard_size | (uintptr_t)attr->memory | attr->memory_size;
	struct weft__thread *thread = weft__thread();

	weft__check_no_handler();
	if (weft__unlikely(!thread))
		return take_unusual(attr, thread, error);
	/* One test for six fields. */
	if (weft__likely(!(attr->policy | attr->stack_size | unusual | (attr->flags & ~(unsigned)PLAIN)))) {
		*error = -ENOMEM;
		return weft__take_usual(thread, error);
	}
	if (weft__unlikely(unusual))
		return take_unusual(attr, thread, error);
	return take_other(attr, thread, error);
}

struct weft__slot *weft__take_slot(const weft_attr_t *attr, int *error)
{
	return take(attr, error);
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
	slot = take(attr, &error);
	if (!slot) {
		errno = -error;
		return NULL;
	}
	k = (weft_coro_t *)slot->object;
	k->flags &= WEFT__WATCHED; /* keep no other flag of an earlier life; only the caller's memory has this one */
	weft__set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	if (weft__unlikely(weft__notes_sites))
		weft__note_site(k);
	return k;
}

/* True if the storage contains a coroutine made by weft_init. Its content may be arbitrary; the arena knows the slots
 * that it handed out. */
static bool in_use(weft_coro_t *k)
{
	struct weft__slot *slot;

	if (!weft__thread() && weft__arena_open())
		return false;
	if (weft__unlikely(weft__on_memcheck))
		VALGRIND_MAKE_MEM_DEFINED(k, sizeof *k);
	if (!k->slot)
		return false;
	slot = weft__arena_find(k->slot);
	if (weft__unlikely(!slot))
		return !weft__arena_has(k->slot) && weft__callers_has(k->slot, k);
	return slot == k->slot && atomic_load_explicit(&slot->owner, memory_order_relaxed) == k;
}

/* Like memset, which compilers replace by one instruction that takes longer than all the rest of weft_init. */
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
	slot = take(attr, &error);
	if (!slot)
		return error;
	if (weft__unlikely(attr->memory_size))
		k->flags = ((weft_coro_t *)slot->object)->flags & WEFT__WATCHED;
	weft__set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	return 0;
}
