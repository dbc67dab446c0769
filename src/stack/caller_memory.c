/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stacks in memory of the caller's (weft_attr.memory). weft/coro.h has a picture of the memory and names the owner of
 * each part.
 *
 * Design
 *  1. The record of such a stack is the record of a slot, with a class of its own, so that all code for stacks finds
 *     the usual fields. Only the functions that free memory check for that class: the pool, in the slow path of a bin
 *     without room; weft_trim; and linked.c, which does not open more of the memory.
 *  2. No list holds these slots: making and ending such a stack takes no lock, except ending a linked stack. So the
 *     fault handler finds a slot only from the coroutine that runs on it. A stray pointer into the guard of another
 *     coroutine ends the process by a bare SIGSEGV.
 *  3. A mark in the record means that the memory is in use. The mark depends on the address and on a number that the
 *     kernel gives each process, so that neither a copy nor a file of an earlier process has a valid mark.
 *  4. Without a guard, PATTERN bytes below the stack reveal an overflow. The coroutine layer checks them whenever the
 *     coroutine suspends or ends: WEFT__WATCHED takes the detour of WEFT_SAVE_FPU, so that other coroutines pay
 *     nothing.
 * Rejected: a check only when the coroutine is deleted, long after another coroutine ran with wrong data; and a check
 * at each resume, which would also find stray writes of other code, and blame the wrong coroutine.
 */
#define WEFT__PART_CALLERS
#include <errno.h>
#include <string.h>

#include "internal/message.h"
#include "internal/valgrind.h"
#include "stack/policy.h"

enum {
	PATTERN = 64,
	ALIGNMENT = 16,
	/* The least stack: enough for weft__touch_stack and the functions that call it; for linked stacks, the frames
	 * and slack of a tiny chunk, because all other code runs on other stacks. */
	LEAST = WEFT__LEAST_STACK,
	LEAST_LINKED = 512,
	SMALL =
	    /* a first chunk below this size has the slack of a tiny chunk, and small chunks may follow it */
	WEFT__PAGE,
	LARGEST_GUARD = 512 << 20,
};

/* Present if the program is built with these sanitizers. */
void __asan_unpoison_memory_region(const volatile void *start, size_t bytes) __attribute__((weak));
void __lsan_register_root_region(const void *start, size_t bytes) __attribute__((weak));
void __lsan_unregister_root_region(const void *start, size_t bytes) __attribute__((weak));

/* ---- geometry --------------------------------------------------------------------------------------------------- */

static uintptr_t round_up(uintptr_t n, size_t to)
{
	return (n + to - 1) & ~(uintptr_t)(to - 1);
}

/* WEFT_STACK is for programs that do not name a policy: if the policy that it names cannot use this memory, overcommit
 * is used. */
static weft_policy_t policy_of(const struct weft__callers_wish *wish)
{
	weft_policy_t usual;

	if (wish->policy)
		return wish->policy;
	usual = weft_default_policy();
	return weft__policies[usual]->callers ? usual : WEFT_OVERCOMMIT;
}

/* Bytes of the guard. */
static size_t guard_of(const struct weft__callers_wish *wish, weft_policy_t policy)
{
	size_t guard = wish->guard;

	if (!guard && weft__policies[policy]->callers == WEFT__CALLERS_CLOSED)
		guard = 1;
	return round_up(guard, WEFT__PAGE);
}

static bool is_watched(const struct weft__callers_wish *wish, weft_policy_t policy)
{
	return wish->watched && !weft__policies[policy]->linked && !guard_of(wish, policy);
}

static size_t least_of(weft_policy_t policy)
{
	return weft__policies[policy]->callers == WEFT__CALLERS_ANY && weft__policies[policy]->linked ? LEAST_LINKED
												      : LEAST;
}

/* Bytes of the memory that are not usable as stack, at the worst alignment. */
static size_t overhead_of(const struct weft__callers_wish *wish, weft_policy_t policy)
{
	size_t guard = guard_of(wish, policy);
	size_t low = guard			? guard + WEFT__PAGE - 1
		     : is_watched(wish, policy) ? PATTERN + ALIGNMENT - 1
						: ALIGNMENT - 1;

	return low + 63 + sizeof(struct weft__callers);
}

_Static_assert(PATTERN + ALIGNMENT - 1 + 63 + sizeof(struct weft__callers) <= WEFT__MEMORY_OVERHEAD,
	       "edit WEFT_MEMORY_BYTES in weft/coro.h");

static const char *why_wrong(const struct weft__callers_wish *wish, int *error)
{
	weft_policy_t policy = policy_of(wish);
	const struct weft__policy *how = weft__policies[policy];

	*error = -EINVAL;
	if (!how->callers) {
		if (!how->unavailable || !how->unavailable())
			return "keeps no frames in such memory: take another policy, overcommit for one";
		*error = -ENOTSUP;
		return how->unavailable();
	}
	return wish->guard > LARGEST_GUARD ? "has guards of at most 512 MiB" : NULL;
}

size_t weft__callers_size(const struct weft__callers_wish *wish, size_t stack)
{
	weft_policy_t policy = policy_of(wish);
	int error;

	if (why_wrong(wish, &error))
		return 0;
	if (stack < least_of(policy))
		stack = least_of(policy);
	if (stack > SIZE_MAX - overhead_of(wish, policy))
		return SIZE_MAX;
	return stack + overhead_of(wish, policy);
}

/* The parts of the memory. */
struct layout {
	struct weft__callers *record;
	char *guard, *low; /* the guard ends at low */
};

/* False: the memory is too small. */
static bool lay_out(const struct weft__callers_wish *wish, weft_policy_t policy, struct layout *at)
{
	uintptr_t start = (uintptr_t)wish->memory, end = start + wish->bytes, low = round_up(start, ALIGNMENT), record;
	size_t guard = guard_of(wish, policy);

	if (end < start || wish->bytes < sizeof *at->record)
		return false;
	if (guard)
		low = round_up(start, WEFT__PAGE) + guard;
	else if (is_watched(wish, policy))
		low += PATTERN;
	record = WEFT_CANARY_OR(record_lies_beyond_memory, end, (end - sizeof *at->record)) & ~(uintptr_t)63;
	*at = (struct layout){(struct weft__callers *)record, (char *)low - guard, (char *)low};
	return low >= start && record > low && record - low >= least_of(policy);
}

/* ---- marks and patterns ---------------------------------------------------------------------------------------- */

static uint64_t mark_of(const struct weft__callers *record)
{
	static _Atomic uint64_t known; /* relaxed: only a number */
	uint64_t cookie = atomic_load_explicit(&known, memory_order_relaxed);

	if (weft__unlikely(!cookie)) {
		cookie = weft__os_cookie();
		atomic_store_explicit(&known, cookie, memory_order_relaxed);
	}
	return ((uintptr_t)record * 0x9e3779b97f4a7c15u) ^ cookie;
}

static bool is_in_use(const struct weft__callers *record)
{
	if (weft__unlikely(weft__on_memcheck)) /* the memory may have any contents */
		VALGRIND_MAKE_MEM_DEFINED(&record->mark, sizeof record->mark);
	return record->mark == mark_of(record);
}

bool weft__callers_has(const struct weft__slot *slot, const void *owner)
{
	struct weft__callers copy;

	/* The mark comes after the record of a slot, so the copy has both or is too short. */
	return (uintptr_t)slot % 64 == 0 && weft__os_read(&copy, slot, sizeof copy) == sizeof copy &&
	       copy.mark == mark_of(weft__callers_of(slot)) &&
	       atomic_load_explicit(&copy.slot.owner, memory_order_relaxed) == owner;
}

static uint64_t pattern_at(const uint64_t *word)
{
	return (uintptr_t)word ^ 0x6a09e667f3bcc908u;
}

static uint64_t *pattern_of(const struct weft__slot *slot)
{
	return (uint64_t *)(void *)(slot->chunk.low - PATTERN);
}

bool weft__callers_overflowed(const struct weft__slot *slot, const char *sp)
{
	const uint64_t *word = pattern_of(slot);
	uint64_t changed = 0;

	for (int i = 0; i < PATTERN / 8; i++)
		changed |= word[i] ^ pattern_at(&word[i]);
	return sp < slot->chunk.low || (changed && WEFT_NO_CANARY(overflows_in_memory_go_unseen));
}

/* ---- taking and giving ----------------------------------------------------------------------------------------- */

static void begin(struct weft__callers *record, const struct weft__callers_wish *wish, weft_policy_t policy, char *low)
{
	const struct weft__policy *how = weft__policies[policy];
	struct weft__slot *slot = &record->slot;

	memset(record, 0, sizeof *record);
	record->memory = wish->memory;
	record->bytes = wish->bytes;
	record->guard = guard_of(wish, policy);
	record->is_watched = is_watched(wish, policy);
	record->is_all = wish->only;
	weft__object_clear(slot->object);
	slot->policy = (uint8_t)policy;
	slot->class = WEFT__CALLERS_CLASS;
	slot->chunk.low = low;
	if (how->linked)
		slot->chunk.limit = low + (wish->bytes < SMALL ? WEFT_TINY_SLACK : WEFT_SLACK);
	/* Relaxed: no other thread knows the slot yet. */
	atomic_store_explicit(&slot->open, low, memory_order_relaxed);
	atomic_store_explicit(&slot->memory, WEFT__INTACT, memory_order_relaxed);
	if (record->is_watched)
		for (int i = 0; i < PATTERN / 8; i++)
			pattern_of(slot)[i] = pattern_at(&pattern_of(slot)[i]);
	record->mark = mark_of(record);
}

static WEFT__COLD void tell_begin(struct weft__callers *record)
{
	struct weft__slot *slot = &record->slot;

	slot->valgrind_id = VALGRIND_STACK_REGISTER(slot->chunk.low, slot->object);
	if (__lsan_register_root_region)
		__lsan_register_root_region(slot->chunk.low, (size_t)((char *)(record + 1) - slot->chunk.low));
}

struct weft__slot *weft__callers_take(const struct weft__callers_wish *wish, int *error)
{
	weft_policy_t policy = policy_of(wish);
	struct layout at;

	if (why_wrong(wish, error))
		return NULL;
	*error = -ENOSPC;
	if (!lay_out(wish, policy, &at))
		return NULL;
	*error = -EBUSY;
	if (is_in_use(at.record) && WEFT_NO_CANARY(memory_in_use_is_taken))
		return NULL;
	*error = at.low > at.guard ? weft__os_protect(at.guard, (size_t)(at.low - at.guard), false) : 0;
	if (*error)
		return NULL;
	if (weft__policies[policy]->closed)
		weft__fault_ready(weft__tls_thread);
	begin(at.record, wish, policy, at.low);
	tell_begin(at.record);
	/* Relaxed: a statistic. */
	atomic_fetch_add_explicit(&weft__callers_live[policy], 1, memory_order_relaxed);
	return &at.record->slot;
}

void weft__callers_give(struct weft__slot *slot, struct weft__bin *bin)
{
	struct weft__callers *record = (struct weft__callers *)(void *)slot;

	if (bin)
		weft__bin_set_tally(bin, weft__bin_tally(bin) - 1);
	VALGRIND_STACK_DEREGISTER(slot->valgrind_id);
	if (weft__policies[slot->policy]->linked)
		weft__system_forget(slot->object);
	if (__lsan_unregister_root_region)
		__lsan_unregister_root_region(slot->chunk.low, (size_t)((char *)(record + 1) - slot->chunk.low));
	if (record->guard && WEFT_NO_CANARY(guards_stay_in_memory))
		weft__os_reopen(slot->chunk.low - record->guard, record->guard);
	if (__asan_unpoison_memory_region)
		__asan_unpoison_memory_region(record->memory, record->bytes);
	atomic_fetch_sub_explicit(&weft__callers_live[slot->policy], 1, memory_order_relaxed);
	record->mark = 0;
	if (weft__unlikely(weft__on_memcheck)) /* the object stays readable, and is marked as free */
		VALGRIND_MAKE_MEM_UNDEFINED(record->memory, (size_t)((char *)slot - record->memory));
}

/* ---- words ------------------------------------------------------------------------------------------------------ */

static void line_policy(struct weft__line *line, weft_policy_t policy)
{
	weft__line_text(line, "the policy ");
	weft__line_text(line, weft_policy_name(policy));
	weft__line_text(line, " ");
}

static void line_too_small(struct weft__line *line, const struct weft__callers_wish *wish, weft_policy_t policy)
{
	weft__line_text(line, "memory of ");
	weft__line_number(line, wish->bytes);
	weft__line_text(line, " bytes is too small: ");
	line_policy(line, policy);
	weft__line_text(line, "needs ");
	weft__line_number(line, weft__callers_size(wish, 0));
	weft__line_text(line, ", and weft_memory_size says how many a larger stack does");
}

bool weft__callers_unfit(const struct weft__callers_wish *wish, struct weft__line *line)
{
	weft_policy_t policy = policy_of(wish);
	const char *why;
	struct layout at;
	int error;

	line->length = 0;
	why = why_wrong(wish, &error);
	if (why) {
		if (error != -ENOTSUP)
			line_policy(line, policy);
		weft__line_text(line, why);
	} else if (!lay_out(wish, policy, &at)) {
		line_too_small(line, wish, policy);
	} else if (is_in_use(at.record)) {
		weft__line_text(line, "memory in use: a coroutine has its stack there; delete it first, or have a task "
				      "or thread joined");
	}
	return line->length;
}
