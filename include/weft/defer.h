/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/defer.h: cleanups that run however a scope is left.
 *
 *   static void *body(void *unused)
 *   {
 *           FILE *file = fopen("log", "a");
 *
 *           weft_defer(fclose, file);
 *           for (;;)
 *                   fprintf(file, "%s\n", read_line());
 *   }
 *
 * What was deferred runs exactly once, innermost first:
 *  - when the scope is left as usual: at its end, by return, break, goto;
 *  - when the coroutine is deleted, released or reset while it is suspended: it is continued one last time, where it
 *    waits, to run what is deferred there. If it is suspended from below, those inside it come first;
 *  - when it is left by weft_exit, an exception effect or an abort clause, through however many coroutines, before the
 *    request arrives;
 *  - when a C++ exception, pthread_exit or cancellation unwinds it.
 * It runs on the coroutine's own stack and may do what any code may, perform effects for example. A task that waits in
 * a cleanup is not cancelled there, but at its next wait after the cleanup. A cleanup must get to its end: one that
 * suspends the coroutine to a resumer that does not resume it is reported, and so is an exit to somewhere further in
 * than where the coroutine was leaving to.
 *
 * Handlers that a cleanup sees:
 *    the scope ends                 those that the scope sees
 *    exit, exception effect, abort  the same; the handler that the coroutine leaves for, too, if it is further out than
 *    clause, C++ exception          the scope. Handlers further in have been left already
 *    the coroutine is deleted       the same up to the coroutine that is deleted; then not the handlers which that was
 *                                   resumed under, but those that the deleter sees
 *
 *   static void *in_one(void *unused)
 *   {
 *           weft_defer(log, "in one");
 *           return wait_for_it(), unused;
 *   }
 *   static void *in_two(void *unused)
 *   {
 *           weft_defer(log, "in two");
 *           return weft_run(&one, NULL, in_one, unused);
 *   }
 *   …        weft_run(&two, NULL, in_two, NULL);
 *
 * `one` and `two` handle what `log` performs. If wait_for_it returns, or performs an exception that `two` handles, "in
 * one" is logged by `one` and "in two" by `two`. If it suspends them both and `two` keeps them, and they are dropped in
 * the body of a weft_run under `three`, "in one" is logged by `one` and "in two" by `three`.
 *
 * C++ destructors and cleanup attributes run in the first and the last of these cases. In the two between they do if
 * the coroutine has the flag WEFT_UNWIND: then its frames are unwound as by pthread_exit, and what is deferred in
 * frames that know nothing of exceptions runs when they are left, so that the order is innermost first throughout. A
 * catch (...) that does not rethrow is reported; a noexcept function in between ends in std::terminate. An exception
 * effect's arguments are kept where they stay valid. Without the flag C++ frames are forgotten, as they always are
 * when the runtime ends a coroutine whose stack is full (weft_failed), which may be in the middle of anything: then
 * nothing is called. Only the bodies of its weft_run are given back: they end, with what they have deferred, when the
 * failed coroutine is deleted or reset.
 *
 * Exceptions and C. If they pass through C code that uses weft_defer, compile it with -fexceptions. Where that was not
 * done, an exception that leaves the coroutine runs everything in order, too; pthread_exit and cancellation run what is
 * deferred in such frames last, if it can still be read then, and else report it. An exception that is caught further
 * out in the same coroutine, and longjmp, leave such scopes unnoticed: the next scope to end reports it.
 *
 * Lack of memory does not end the process here. A coroutine that ends may take 64 KiB of stack beyond a spent budget
 * (weft_set_budget), and all together 512 KiB. If that is not enough, if its reservation is used up, or if there is no
 * memory for a chunk, a block or copied frames, then the coroutine's other cleanups are given up: the failure hook is
 * told, once for each such coroutine, and the end goes on. Cleanups of the coroutines around it are called.
 *
 * Coroutines that a coroutine made and holds are like memory that it allocated: weft_defer(weft_delete, inner).
 * Clones of a coroutine under "copy" run what was deferred before the cloning each for itself.
 *
 * Cost (tests/ends/cost.c): a scope, with the call of what is deferred, 2 ns; where nothing is deferred, none. Deleting
 * a suspended coroutine that deferred something takes 40 ns more than forgetting it; leaving one 4 ns, leaving ten
 * that each deferred something 7 ns each.
 * Thread-safe, on any stack and outside of any coroutine, but not in signal handlers. Source of the idea: Go and Zig.
 */
#ifndef WEFT_DEFER_H
#define WEFT_DEFER_H

#include <weft/coro.h>

WEFT_EXTERN_C_BEGIN

/**
 * weft_defer(fn, arg): when the enclosing scope is left from here on, call fn(arg).
 * A statement; several in a scope run in reverse order.
 * @param fn   a function with one parameter, a pointer; its result is ignored
 * @param arg  a pointer that fits, evaluated now
 */
#define weft_defer(fn, arg) WEFT__COUNTER_BEGIN WEFT__DEFER(weft__scope_ends, fn, arg, __COUNTER__) WEFT__COUNTER_END
/* For functions that never wait in a task. */
#define weft__defer_quick(fn, arg)                                                                                     \
	WEFT__COUNTER_BEGIN WEFT__DEFER(weft__quick_scope_ends, fn, arg, __COUNTER__)                                  \
	WEFT__COUNTER_END

/* In the frame that it belongs to, on the list of the coroutine that runs. */
struct weft__deferred {
	struct weft__deferred *next; /* further out */
	void (*fn)(void *arg);
	void *arg;
	const struct weft__view *view; /* the coroutine's, then */
	/* If the frame will not be told of exceptions: what an unwinder calls it, and whether this is intact. */
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

/* The scope of an inner one was left without a word. */
WEFT_API WEFT__COLD void weft__scope_skipped(weft_coro_t *self, struct weft__deferred *d);

/* Whether memory holds one still. */
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
	/* The runtime reads the list of a coroutine that fails, which may be at any instruction. */
	__atomic_signal_fence(__ATOMIC_RELEASE);
	self->deferred = d;
	return d;
}

/*
 * While a cleanup runs at the ordinary end of its scope, bit 0 is set in the list that the cleanup began with: in
 * `deferred` of its coroutine, or, if the cleanup defers something itself, in `next` of that. A cancellation finds it
 * there. A cleanup that is left by longjmp leaves the bit behind; the end of the next scope clears it.
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

#endif /* WEFT_DEFER_H */
