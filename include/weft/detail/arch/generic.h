/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This header provides, in C, the parts of ../arch.h besides the switch. An architecture's own header includes it
 * after it has provided weft__self_place: the address of the calling thread's weft__tls_self. Compilers must not know
 * that address: they would keep it across a switch, and after a migration write into another thread's variable. So an
 * asm statement computes it each time, and it is not kept.
 */
#ifndef WEFT_ARCH_GENERIC_H
#define WEFT_ARCH_GENERIC_H

struct weft_coro;
struct weft__found;
struct weft__view;
typedef uintptr_t __attribute__((may_alias)) weft__word_t;
typedef int32_t __attribute__((may_alias)) weft__half_t;

#define WEFT__WORD(object, offset) (*(volatile weft__word_t *)((uintptr_t)(object) + (offset)))
#define WEFT__COMPILER_BARRIER() __asm__ volatile("" : : : "memory")

WEFT__INLINE struct weft_coro *weft__self(void)
{
	struct weft_coro *self = (struct weft_coro *)WEFT__WORD(weft__self_place(), 0);

	WEFT__COMPILER_BARRIER();
	return self;
}

/* Like weft__self, for performs, without a barrier: if the clause is called in place, values that were read before may
 * stay in registers. */
WEFT__INLINE struct weft_coro *weft__performer(void)
{
	return (struct weft_coro *)WEFT__WORD(weft__self_place(), 0);
}

WEFT__INLINE void weft__set_self(struct weft_coro *self)
{
	WEFT__WORD(weft__self_place(), 0) = (uintptr_t)self;
	WEFT__COMPILER_BARRIER();
}

WEFT__INLINE volatile weft__half_t *weft__operations(void)
{
	return (volatile weft__half_t *)(weft__self_place() + WEFT_TLS_OPERATIONS);
}

/* Count an operation of the thread's task. True: the thread has made more operations than were set. */
WEFT__INLINE bool weft__spend_operation(void)
{
	volatile weft__half_t *operations = weft__operations();
	int32_t left = *operations - 1;

	*operations = left;
	return left < 0;
}

/*
 * weft__spend_operation in two steps, for a lock: the check before its atomic instruction, which would wait for the
 * store, and the store after it.
 */
WEFT__INLINE bool weft__operations_are_spent(void)
{
	return *weft__operations() <= 0;
}

WEFT__INLINE void weft__count_operation(void)
{
	(void)weft__spend_operation();
}

WEFT__INLINE void weft__set_operations_left(int32_t operations)
{
	*weft__operations() = operations;
}

/* The thread's table of found handlers lies after weft__tls_self, as do the newest entries (../handler_cache.h). */
WEFT__INLINE struct weft__found *weft__found_here(void)
{
	return (struct weft__found *)WEFT__WORD(weft__self_place(), WEFT_TLS_FOUND);
}

WEFT__INLINE bool weft__is_newest(unsigned offset, const struct weft__view *view, const void *key, uintptr_t *newest)
{
	uintptr_t at = weft__self_place() + offset;

	*newest = at;
	return WEFT__WORD(at, WEFT_NEWEST_VIEW) == (uintptr_t)view && WEFT__WORD(at, WEFT_NEWEST_KEY) == (uintptr_t)key;
}

WEFT__INLINE uintptr_t weft__newest_who(uintptr_t newest)
{
	return WEFT__WORD(newest, WEFT_NEWEST_WHO);
}

WEFT__INLINE void (*weft__newest_enter(uintptr_t newest))(void)
{
	return (void (*)(void))WEFT__WORD(newest, WEFT_NEWEST_ENTER);
}

/* Is `k` the current coroutine? The compiler must not learn from the answer that both are equal: it would switch
 * through `k`, which may lie in the frame (see x86_64.h). */
WEFT__INLINE bool weft__is_self(const struct weft_coro *k, const struct weft_coro *self)
{
	__asm__("" : "+r"(k));
	return k == self;
}

/* The address of an object on the stack, computed here. Compilers tend to compute it once and keep it on the stack, and
 * loading it costs more. */
WEFT__INLINE void *weft__address_of(void *object)
{
	void *address = object;

	/* The statement reads the object. clang takes no array of unknown size; for clang the first byte is enough. */
#ifdef __clang__
	__asm__ volatile("" : "+r"(address) : "m"(*(char *)object));
#else
	__asm__ volatile("" : "+r"(address) : "m"(*(char(*)[])object));
#endif
	return address;
}

WEFT__INLINE void weft__set_limit(char *limit)
{
	(void)limit;
}

/* If `k` is resumed by the same coroutine as the last time, which executes no tail clause, and with the same set: make
 * k's innermost coroutine the current one. Else return false, and change nothing. Words that seldom change are
 * compared, not stored. */
WEFT__INLINE bool weft__enter(struct weft_link *k, uintptr_t handled)
{
	uintptr_t place = weft__self_place(), self = WEFT__WORD(place, 0);

	if (weft__unlikely(!self || WEFT__WORD(k, WEFT_CORO_PARENT) != self ||
			   WEFT__WORD(k, WEFT_CORO_HANDLED) != handled || WEFT__WORD(self, WEFT_CORO_VIEW) & 1))
		return false;
	if (WEFT_NO_CANARY(resumed_coroutine_stays_in_its_group))
		WEFT__WORD(k, WEFT_CORO_GROUP) = (uintptr_t)k;
	WEFT__WORD(place, 0) = WEFT__WORD(k, WEFT_CORO_INNERMOST);
	WEFT__COMPILER_BARRIER();
	return true;
}

/* Like weft__enter, for a set of tags. */
WEFT__INLINE bool weft__enter_tagged(struct weft_link *k, uint64_t tags)
{
	return WEFT__WORD(k, WEFT_CORO_TAGS) == tags && weft__enter(k, WEFT_HANDLES_TAGS);
}

#endif /* WEFT_ARCH_GENERIC_H */
