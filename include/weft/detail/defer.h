/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/defer.h: the private part of weft/defer.h: the record of a deferred call, and the ends of scopes.
 * weft/defer.h includes it at its end.
 */
#ifndef WEFT_DETAIL_DEFER_H
#define WEFT_DETAIL_DEFER_H

#include <weft/defer.h>

WEFT_EXTERN_C_BEGIN

/* Like weft_defer, for functions that never wait in a task. */
#define weft__defer_quick(fn, arg)                                                                                     \
	WEFT__COUNTER_BEGIN WEFT__DEFER(weft__quick_scope_ends, fn, arg, __COUNTER__)                                  \
	WEFT__COUNTER_END

/* A deferred call. It lies in the frame of its scope, and is in the list of the coroutine that runs. */
struct weft__deferred {
	struct weft__deferred *next; /* the next outer record */
	void (*fn)(void *arg);
	void *arg;
	const struct weft__view *view; /* the coroutine's view at the time of weft_defer */
	/* Only if exceptions do not run the frame's cleanups: the address that unwinders call the frame by, and a check
	 * value that shows whether this record is intact. */
	void *frame;
	uintptr_t check;
};

#define WEFT__DEFER(...) WEFT__DEFER_(__VA_ARGS__)
#define WEFT__DEFER_(ends, fn_, arg_, number)                                                                          \
	struct weft__deferred weft__deferred_##number __attribute__((cleanup(ends))),                                  \
	    *weft__pushed_##number __attribute__((unused)) =                                                           \
		weft__defer(&weft__deferred_##number,                                                                  \
			    (void (*)(void *))(void (*)(void))(0 ? ((void)sizeof((fn_)(arg_), 0), (fn_)) : (fn_)),     \
			    (void *)(arg_))

#ifdef __EXCEPTIONS
#define WEFT__FRAME_IS(d) ((d)->check = 0)
#else
#define WEFT__FRAME_IS(d) ((d)->frame = __builtin_dwarf_cfa(), (d)->check = weft__deferred_check(d))
#endif

/* An inner scope was left without making its deferred call: reports that. */
WEFT_API WEFT__COLD void weft__scope_skipped(weft_coro_t *self, struct weft__deferred *d);

/* The check value of an intact record. */
WEFT__INLINE uintptr_t weft__deferred_check(const struct weft__deferred *d)
{
	return (uintptr_t)d + (uintptr_t)d->fn + (uintptr_t)d->arg + (uintptr_t)d->next;
}

WEFT__INLINE struct weft__deferred *weft__defer(struct weft__deferred *d, void (*fn)(void *), void *arg)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(!self))
		self = weft__attach_thread();
	d->next = self->deferred;
	d->fn = fn;
	d->arg = arg;
	d->view = self->view;
	WEFT__FRAME_IS(d);
	/* The runtime reads the list of a coroutine that fails, which can happen at any instruction. */
	__atomic_signal_fence(__ATOMIC_RELEASE);
	self->deferred = d;
	return d;
}

/*
 * While a cleanup runs at the ordinary end of its scope, bit 0 is set in the list that the cleanup began with: in
 * `deferred` of its coroutine, or, if the cleanup defers a call itself, in `next` of that record. A cancellation finds
 * the bit there. A cleanup that is left by longjmp leaves the bit set; the end of the next scope clears it.
 */
enum { WEFT__CLEANING = 1 };

WEFT__INLINE struct weft__deferred *weft__deferred_of(const struct weft__deferred *list)
{
	return (struct weft__deferred *)((uintptr_t)list & ~(uintptr_t)WEFT__CLEANING);
}

WEFT__INLINE struct weft__deferred *weft__cleaning(const struct weft__deferred *list)
{
	return (struct weft__deferred *)((uintptr_t)list | WEFT__CLEANING);
}

/* The cleanup has returned, or an exception leaves it. */
WEFT__INLINE void weft__cleanup_ends(struct weft__deferred **d)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(self->deferred != weft__cleaning((*d)->next)))
		weft__scope_skipped(self, weft__cleaning((*d)->next));
	self->deferred = (*d)->next;
}

WEFT__INLINE void weft__quick_scope_ends(struct weft__deferred *d)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(self->deferred != d))
		weft__scope_skipped(self, d);
	self->deferred = d->next;
	d->fn(d->arg);
}

WEFT__INLINE void weft__scope_ends(struct weft__deferred *d)
{
	struct weft__deferred *running __attribute__((unused, cleanup(weft__cleanup_ends))) = d;
	weft_coro_t *self = weft__self();

	if (weft__unlikely(self->deferred != d))
		weft__scope_skipped(self, d);
	self->deferred = weft__cleaning(d->next);
	d->fn(d->arg);
}

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_DEFER_H */
