/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/sanitizer.h: tell AddressSanitizer and ThreadSanitizer which stack runs. Included by coro.h in code
 * that is built with one of them, and only there; the library may be built with or without.
 *
 * Design
 *  1. Only the resuming side announces a switch, just before it jumps and just after control is back. Between an
 *     announcement and the switch there is only the inline assembly, so the sanitizer checks no instruction there.
 *     Hence a coroutine may be left in any way (yield, return, exit, exception, failure, from code built without the
 *     sanitizer) without an announcement of its own.
 *  2. When control is back, the thread's current coroutine is still the one that executed last. Its stack was left, not
 *     the stack of the coroutine that suspended (which may be an outer one).
 *  3. A sanitizer's data for the frames of a coroutine (ASan: its fake stack; TSan: its fiber, with a shadow call
 *     stack) are freed with the frames: at the return, or when the coroutine, or its memory, is started anew. Until
 *     then the payload of an exception, which may lie there, can be read.
 *
 * AddressSanitizer: __sanitizer_start_switch_fiber names the next stack, __sanitizer_finish_switch_fiber passes its
 * fake stack and returns the bounds of the previous stack; here both are called in a row.
 * ThreadSanitizer: a fiber for each coroutine, made at its first resume. A switch orders the code before it and the
 * code after it, as program order does; nothing else that the library does orders threads (src/internal/tsan_hidden.h),
 * unless the library is built with TSan. About 8000 coroutines can exist at once: a limit of TSan's. Nothing here
 * may be called in a signal handler. Neither lets a thread end (pthread_exit, cancellation) while it runs a coroutine.
 */
#ifndef WEFT_SANITIZER_H
#define WEFT_SANITIZER_H

#ifndef WEFT_CORO_H
#error "include weft/coro.h, not this"
#endif

#if WEFT__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if WEFT__TSAN
#include <sanitizer/tsan_interface.h>
#endif

#if WEFT__ASAN

/* For functions that run while the fake stack changes: their own variables must not lie on it. */
#define WEFT__BETWEEN static __attribute__((noinline, unused, no_sanitize_address))

/* The bounds of a stack, as the sanitizer knows it. */
struct weft__bounds {
	const void *low;
	size_t size;
};

WEFT__BETWEEN struct weft__bounds weft__bounds(const weft_coro_t *k)
{
	struct weft__bounds bounds;

	bounds.size = weft_stack_usable(k);
	bounds.low = (const char *)k->slot - bounds.size;
	return bounds;
}

/* Stores the current stack's fake stack in *keep (NULL: frees it), and makes `next` current, with `fake`. Returns the
 * bounds of the previous stack. */
WEFT__BETWEEN struct weft__bounds weft__asan_switch(void **keep, struct weft__bounds next, void *fake)
{
	struct weft__bounds last;

	__sanitizer_start_switch_fiber(keep, next.low, next.size);
	__sanitizer_finish_switch_fiber(fake, &last.low, &last.size);
	return last;
}

/* Abandoned frames left a fake stack, and red zones that no code will clear. The sanitizer destroys only the fake stack
 * that is current, so this fake stack becomes current for a moment. The bounds passed with it do not matter. */
WEFT__BETWEEN void weft__asan_forget_frames(weft_coro_t *k)
{
	struct weft__bounds own = weft__bounds(k), mine;
	void *fake = NULL;

	if (k->asan_fake) {
		mine = weft__asan_switch(&fake, own, k->asan_fake);
		(void)weft__asan_switch(NULL, mine, fake);
		k->asan_fake = NULL;
	}
	__asan_unpoison_memory_region(own.low, own.size);
}

WEFT__INLINE weft_request_t weft__run_hooked(struct weft_link **link, void *value)
{
	weft_coro_t *k = (weft_coro_t *)*link, *self = k->parent, *next = k->innermost, *last;
	struct weft__bounds mine;
	weft_request_t request;

	weft__set_limit(k->innermost->link.limit);
	if (weft_state(k) != WEFT_SUSPENDED)
		return weft_arch_resume(link, value); /* reports the misuse */
	if (weft__is_fresh(k))
		weft__asan_forget_frames(k);
	mine = weft__asan_switch(&self->asan_fake, weft__bounds(next), next->asan_fake);
	next->asan_fake = NULL;
	k->asan_parent_stack = mine.low;
	k->asan_parent_size = mine.size;
	request = weft_arch_resume(link, value);
	last = weft__self();
	(void)weft__asan_switch(request.effect ? &last->asan_fake : NULL, mine, self->asan_fake);
	self->asan_fake = NULL;
	weft__become(((weft_coro_t *)*link)->parent);
	return request;
}

WEFT__INLINE void weft__announce_transfer(weft_coro_t *from, weft_coro_t *to)
{
	weft_coro_t *next = to->innermost;

	if (weft_state(to) != WEFT_SUSPENDED)
		return;
	if (weft__is_fresh(to))
		weft__asan_forget_frames(to);
	to->asan_parent_stack = from->asan_parent_stack;
	to->asan_parent_size = from->asan_parent_size;
	(void)weft__asan_switch(&from->asan_fake, weft__bounds(next), next->asan_fake);
	next->asan_fake = NULL;
}

#else /* WEFT__TSAN */

/* The code before a switch is ordered before the code after it, under an address in the frame that announces it.
 * (ThreadSanitizer's own order is kept under the fiber's address, and would order a later fiber at the same
 * address.) */
WEFT__INLINE void weft__tsan_switch(void *fiber, void *address)
{
	__tsan_release(address);
	__tsan_switch_to_fiber(fiber, __tsan_switch_to_fiber_no_sync);
	__tsan_acquire(address);
}

/* The fiber of the coroutine that executes when k is resumed. */
WEFT__HELPER void *weft__tsan_fiber(weft_coro_t *k)
{
	weft_coro_t *innermost = k->innermost;

	/* The shadow call stack of abandoned frames is of no use to the next frames. */
	if (weft__is_fresh(k) && k->tsan_fiber) {
		__tsan_destroy_fiber(k->tsan_fiber);
		k->tsan_fiber = NULL;
	}
	if (!innermost->tsan_fiber) {
		innermost->tsan_fiber = __tsan_create_fiber(0);
		if (innermost->name)
			__tsan_set_fiber_name(innermost->tsan_fiber, innermost->name);
	}
	return innermost->tsan_fiber;
}

WEFT__INLINE weft_request_t weft__run_hooked(struct weft_link **link, void *value)
{
	weft_coro_t *k = (weft_coro_t *)*link;
	void *mine = __tsan_get_current_fiber();
	weft_request_t request;

	weft__set_limit(k->innermost->link.limit);
	if (weft_state(k) != WEFT_SUSPENDED)
		return weft_arch_resume(link, value); /* reports the misuse */
	weft__tsan_switch(weft__tsan_fiber(k), &mine);
	request = weft_arch_resume(link, value);
	weft__tsan_switch(mine, &mine);
	weft__become(((weft_coro_t *)*link)->parent);
	return request;
}

WEFT__INLINE void weft__announce_transfer(weft_coro_t *from, weft_coro_t *to)
{
	if (weft_state(to) == WEFT_SUSPENDED)
		weft__tsan_switch(weft__tsan_fiber(to), &from);
}

#endif

WEFT__INLINE void *weft__transfer_hooked(struct weft_link *from, struct weft_link **to, void *value)
{
	weft__announce_transfer((weft_coro_t *)from, (weft_coro_t *)*to);
	return weft_arch_transfer(from, to, value);
}

#endif /* WEFT_SANITIZER_H */
