/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/handler_cache.h: what earlier searches for handlers found.
 *
 * Design
 *  1. Each thread has a table: (view, effect) -> clause and coroutine. A view is a coroutine's number, unique for ever,
 *     shifted so that its low bits are the place in the table: a perform that hits costs two compares, at any depth.
 *  2. Inside a tail clause a coroutine sees only the handlers outside of the one that the clause belongs to. Its view
 *     is then that handler's coroutine, plus 1, and in no table.
 *  3. An entry is right as long as nothing changes between the performer and its handler. What can change, and who
 *     notices, all of it on branches that a switch takes seldom or has anyway:
 *      - a coroutine is resumed by another one than the last time, or by the root of another thread: weft__adopt;
 *      - it is resumed with another set, and an entry's path starts at, passes or ends at it (SEEN): weft__rehandle;
 *      - a child is resumed inside a tail clause, whose mask hides handlers that the child could see: weft__resume;
 *      - a coroutine dies or is reset, and another one at its address resumes what the dead one had resumed: an object
 *        remembers beyond death that it resumed others or entries' paths passed it (PASSED), and its next first resume
 *        counts as a change. It may forget that then, unless other threads have tables: what is below its children may
 *        have been there, and come back by a resume that looks like the last one.
 *     Each empties the table of the thread that it happens on. That is enough although coroutines migrate: whatever
 *     changed elsewhere comes here by a resume that weft__adopt notices, because the topmost coroutine that was
 *     elsewhere had a parent there.
 *     Effects, labels, tables and code that are unloaded (dlclose) leave addresses that others may get. So unloading an
 *     object that includes weft/effect.h clears the tables of all threads: weft__forget_found_everywhere.
 *  4. Where an entry lies depends on the view, but for the newest of each place, which are looked at first: then the
 *     processor need not know who performs to go on, it only has to find out later that it guessed right. They lie
 *     beside the current coroutine, in thread-local storage, and who yields loads three words of one: what a perform
 *     and a resume wait for together is the processor's four accesses to memory per cycle.
 *  5. Only performs at unmasked coroutines use the table, and no entry is made for a path through a masked one.
 * Nothing here may be called in a signal handler.
 * To reach: a tail operation in 2.0 ns and a yield to a loop in 3.2 ns at any depth (`./weft lab --only B1`).
 *
 * Rejected: a cache in each coroutine (the object would grow, and every change need a stamp that all compare); a stamp
 * for the whole process (threads would empty each other's tables); a vector of handlers per coroutine (resuming a deep
 * chain would rewrite it).
 */
#ifndef WEFT_HANDLER_CACHE_H
#define WEFT_HANDLER_CACHE_H

#include <weft/arch.h>

WEFT_EXTERN_C_BEGIN

struct weft_coro;

/* As type of a view: nothing else is of type pointer to this, so that no store through another pointer can be one to a
 * view, and a clause that is inlined needs no mask. */
struct weft__view;

struct weft__found {
	const struct weft__view *view;
	const void *key; /* the effect; of a labelled perform an address in the label */
	void (*enter)(
	    void); /* what the performer calls, in place; really of the effect's clause type. NULL: it yields */
	struct weft_coro *k; /* whose handler it is */
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
	WEFT__VIEW_SHIFT = 5, /* a coroutine's number, so far up, is its view */
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

/* Bits of a view. Of one inside a tail clause: */
enum {
	WEFT__FORWARDED = 2, /* the clause has asked for the handler further out */
	WEFT__LABELLED = 4,  /* the effect was performed on a label */
	WEFT__MOVED = 8,     /* since the clause began, the handler's coroutine was resumed under another handler */
};
/* Of no other view, but of a root's. */
enum { WEFT__ROOT = 4 };

/* Must weft_suspend look closer? */
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

/* The view inside a tail clause of k's handler, and back. A compiler that knows that k is aligned sees that a clause
 * which it inlines has not asked for the handler further out; then nobody reads the view, and it is not stored. */
WEFT__INLINE const struct weft__view *weft__inner_view(const struct weft_coro *k)
{
	return (const struct weft__view *)((uintptr_t)__builtin_assume_aligned(k, 16) | 1);
}

/* The same, with what else is known of the effect that the clause is for. */
WEFT__INLINE const struct weft__view *weft__inside_as(const struct weft_coro *k, const struct weft__view *view)
{
	return (const struct weft__view *)((uintptr_t)weft__inner_view(k) | ((uintptr_t)view & WEFT__LABELLED));
}

/* The same for an effect that was performed on a label, or on none (NULL). */
WEFT__INLINE const struct weft__view *weft__inside_for(const struct weft_coro *k, const void *label)
{
	return (const struct weft__view *)((uintptr_t)weft__inner_view(k) | (label ? WEFT__LABELLED : 0));
}

WEFT__INLINE struct weft_coro *weft__owner_of(const struct weft__view *view)
{
	return (struct weft_coro *)((uintptr_t)view & ~(uintptr_t)15);
}

/* The entry of a view in the table, if it is about this effect; else NULL. */
WEFT__INLINE struct weft__found *weft__probe(struct weft__found *table, const struct weft__view *view, const void *key,
					     unsigned place)
{
	struct weft__found *f = (struct weft__found *)((char *)table + ((uintptr_t)view & WEFT__FOUND_MASK)) + place;

	return weft__likely(f->view == view && f->key == key) ? f : NULL;
}

/* What the calling thread has found for a view and an effect: `enter` and `k`. False if nothing. */
WEFT__INLINE bool weft__look_up(const struct weft__view *view, const void *key, unsigned place,
				struct weft__found *result)
{
	const struct weft__found *f;
	uintptr_t newest, who;

	if (weft__likely(
		weft__is_newest((unsigned)sizeof(struct weft__newest) * place + WEFT_TLS_NEWEST, view, key, &newest))) {
		who = weft__newest_who(newest);
		result->enter = NULL;
		if (weft__likely(who & 1)) { /* else nothing follows but a jump to code that is elsewhere anyway */
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
/* Has no other thread one? */
WEFT_API bool weft__only_table(void);

WEFT_EXTERN_C_END

#endif /* WEFT_HANDLER_CACHE_H */
