/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/handler_cache.h: each thread's cache of results of searches for handlers.
 *
 * Design
 *  1. Each thread has a table: (view, effect) -> clause and coroutine. A view is a coroutine's number, which is never
 *     reused, shifted so that its low bits are the place in the table: a perform that hits costs two compares, at any
 *     depth.
 *  2. Inside a tail clause a coroutine sees only the handlers outside of the handler that the clause belongs to. Its
 *     view is then the address of that handler's coroutine, plus 1, and is in no table.
 *  3. An entry is valid as long as nothing changes between the performer and its handler. The possible changes, and the
 *     functions that detect them, all on branches that a switch takes seldom or has anyway:
 *      - a coroutine is resumed by another coroutine than the last time, or by the root of another thread: weft__adopt;
 *      - it is resumed with another set, and an entry's path starts at, passes or ends at it (SEEN): weft__rehandle;
 *      - a child is resumed inside a tail clause, whose mask hides handlers that the child could see: weft__resume;
 *      - a coroutine dies or is reset, and another coroutine at its address resumes a coroutine that the dead one had
 *        resumed. An object therefore remembers after its death that it resumed coroutines, or that entries' paths
 *        passed it (PASSED), and its next first resume counts as a change. That resume clears the mark, unless other
 *        threads have tables: coroutines below its children may have been there, and come back by a resume that looks
 *        like the last.
 *     Each change empties the table of the thread that it happens on. That is enough although coroutines migrate: a
 *     change elsewhere reaches this thread by a resume that weft__adopt detects, because the topmost coroutine that was
 *     elsewhere had a parent there.
 *     Unloading (dlclose) frees addresses of effects, labels, tables and code, which may be reused. So unloading an
 *     object that includes weft/effect.h empties the tables of all threads: weft__forget_found_everywhere.
 *  4. The place of an entry depends on the view, except for the newest entry of each place, which is looked at first:
 *     then the processor can continue before it knows the performer, and verifies the guess later. These entries lie
 *     beside the current coroutine, in thread-local storage, and a yield loads three words of one of them: a perform
 *     and a resume together are limited by the processor's four memory accesses per cycle.
 *  5. Only performs at unmasked coroutines use the table, and no entry is made for a path through a masked coroutine.
 * Nothing here may be called in a signal handler.
 * To reach: a tail operation in 2.0 ns and a yield to a loop in 3.2 ns at any depth (`./weft lab --only B1`).
 *
 * Rejected: a cache in each coroutine (the object would grow, and every change need a stamp that all compare); a stamp
 * for the whole process (threads would empty each other's tables); a vector of handlers per coroutine (resuming a deep
 * chain would rewrite it).
 */
#ifndef WEFT_HANDLER_CACHE_H
#define WEFT_HANDLER_CACHE_H

#include <weft/detail/arch.h>

WEFT_EXTERN_C_BEGIN

struct weft_coro;

/* The type of a view. No other pointer has this type, so that compilers know that a store through another pointer
 * cannot change a view, and an inlined clause needs no mask. */
struct weft__view;

struct weft__found {
	const struct weft__view *view;
	const void *key; /* the effect; for a labelled perform an address in the label */
	void (*enter)(
	    void); /* the function that the performer calls in place; its real type is the effect's. NULL: it yields */
	struct weft_coro *k; /* the coroutine whose resumer is the handler */
};

/* The newest entry of a place. */
struct weft__newest {
	const struct weft__view *view;
	const void *key;
	uintptr_t who; /* k, plus 1 if there is something to enter */
	void (*enter)(void);
};

WEFT__OFFSET_IS(struct weft__newest, view, WEFT_NEWEST_VIEW);
WEFT__OFFSET_IS(struct weft__newest, key, WEFT_NEWEST_KEY);
WEFT__OFFSET_IS(struct weft__newest, who, WEFT_NEWEST_WHO);
WEFT__OFFSET_IS(struct weft__newest, enter, WEFT_NEWEST_ENTER);

enum {
	WEFT__VIEW_SHIFT = 5, /* a coroutine's view is its number, shifted left by this */
	WEFT__FOUND_BYTES = 64 * sizeof(struct weft__found),
	WEFT__FOUND_PLACES = 8, /* effects of a family lie side by side */
	WEFT__FOUND_ENTRIES = 64 + WEFT__FOUND_PLACES - 1,
	WEFT__FOUND_MASK = WEFT__FOUND_BYTES - sizeof(struct weft__found),
};
WEFT__STATIC_ASSERT(sizeof(struct weft__found) == 1 << WEFT__VIEW_SHIFT, "a view's low bits are the place of an entry");

WEFT__INLINE bool weft__masked(const struct weft__view *view)
{
	return (uintptr_t)view & 1;
}

/* Bits of a view inside a tail clause. */
enum {
	WEFT__FORWARDED = 2, /* the clause has asked for the next outer handler */
	WEFT__LABELLED = 4,  /* the effect was performed on a label */
	WEFT__MOVED = 8,     /* since the clause began, the handler's coroutine was resumed under another handler */
};
/* A bit of the view of a thread's root; of no other view outside of a tail clause. */
enum { WEFT__ROOT = 4 };

/* True if weft_suspend must check further: inside a tail clause, or outside of any coroutine. */
WEFT__INLINE bool weft__is_bound(const struct weft__view *view)
{
	return (uintptr_t)view & (1 | WEFT__ROOT);
}

WEFT__INLINE bool weft__was_forwarded(const struct weft__view *view)
{
	return (uintptr_t)view & WEFT__FORWARDED;
}

WEFT__INLINE bool weft__was_moved(const struct weft__view *view)
{
	return (uintptr_t)view & WEFT__MOVED;
}

/* The view inside a tail clause of k's handler; weft__owner_of is the inverse. A compiler that knows that k is aligned
 * sees that an inlined clause has not asked for the outer handler; then the view is never read, and not stored. */
WEFT__INLINE const struct weft__view *weft__inner_view(const struct weft_coro *k)
{
	return (const struct weft__view *)((uintptr_t)__builtin_assume_aligned(k, 16) | 1);
}

/* The view inside a tail clause of k's handler, for a clause that forwards: the bit for labels is that of `view`. */
WEFT__INLINE const struct weft__view *weft__inside_as(const struct weft_coro *k, const struct weft__view *view)
{
	return (const struct weft__view *)((uintptr_t)weft__inner_view(k) | ((uintptr_t)view & WEFT__LABELLED));
}

/* The view inside a tail clause of k's handler, for an effect performed on a label, or on none (NULL). */
WEFT__INLINE const struct weft__view *weft__inside_for(const struct weft_coro *k, const void *label)
{
	return (const struct weft__view *)((uintptr_t)weft__inner_view(k) | (label ? WEFT__LABELLED : 0));
}

WEFT__INLINE struct weft_coro *weft__owner_of(const struct weft__view *view)
{
	return (struct weft_coro *)((uintptr_t)view & ~(uintptr_t)15);
}

/* The entry in the table for this view and effect, else NULL. */
WEFT__INLINE struct weft__found *weft__probe(struct weft__found *table, const struct weft__view *view, const void *key,
					     unsigned place)
{
	struct weft__found *f = (struct weft__found *)((char *)table + ((uintptr_t)view & WEFT__FOUND_MASK)) + place;

	return weft__likely(f->view == view && f->key == key) ? f : NULL;
}

/* Look up a view and an effect in the calling thread's table, and set `enter` and `k`. False: there is no entry. */
WEFT__INLINE bool weft__look_up(const struct weft__view *view, const void *key, unsigned place,
				struct weft__found *result)
{
	const struct weft__found *f;
	uintptr_t newest, who;

	if (weft__likely(
		weft__is_newest((unsigned)sizeof(struct weft__newest) * place + WEFT_TLS_NEWEST, view, key, &newest))) {
		who = weft__newest_who(newest);
		result->enter = NULL;
		if (weft__likely(who & 1)) { /* else only a jump to code elsewhere follows */
			result->enter = weft__newest_enter(newest);
			if (!result->enter)
				__builtin_unreachable();
			who--;
		}
		result->k = (struct weft_coro *)who;
		return true;
	}
	f = weft__probe(weft__found_here(), view, key, place);
	if (weft__unlikely(!f))
		return false;
	result->enter = f->enter;
	result->k = f->k;
	return true;
}

/* Empty the calling thread's table. */
WEFT_API void weft__forget_found(void);
/* True if no other thread has a table. */
WEFT_API bool weft__only_table(void);

WEFT_EXTERN_C_END

#endif /* WEFT_HANDLER_CACHE_H */
