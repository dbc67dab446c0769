/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Coroutines that the runtime ends because their stacks cannot grow. Only policies whose stacks grow, and ends without
 * memory (ends.c), need this: it is a part (stack/policies.c).
 */
#define WEFT__PART_FAILING
#include <weft/defer.h>

#include "coro/copying.h"
#include "coro/ends.h"

/*
 * Frames of weft_run on failing coroutines own bodies that no other code will delete. k keeps them, like its orphans,
 * because their cleanups must not be called now. The suspended bodies come first in the list, and their `innermost`
 * keeps its usual meaning.
 */
void weft__keep_bodies(weft_coro_t *bodies, weft_coro_t **list, weft_coro_t *k)
{
	weft_coro_t *next;

	for (; bodies; bodies = next) {
		next = bodies->parent;
		if (bodies->link.pc == (void *)weft__in_finished) {
			weft__orphan(bodies, list, k);
			continue;
		}
		bodies->parent = *list;
		weft__name_orphan(&bodies->parent, k);
		*list = bodies;
	}
}

/* Returns the current place of the bytes that belong at `at` in the frames of a failing coroutine. NULL if they cannot
 * be read. */
static const void *in_frames(const weft_coro_t *c, const void *at)
{
	const struct weft__copied *copied = weft__copied_of(c);

	if (!weft_on_stack(c, at) || (uintptr_t)at % sizeof(void *))
		return NULL;
	if (!(c->flags & WEFT__COPYING) || copied->region->occupant == copied)
		return at;
	return copied->image ? copied->image->frames + copied->image->bytes -
				   (weft__region_top(copied->region) - (const char *)at)
			     : NULL;
}

static void collect_bodies(const weft_coro_t *c, weft_coro_t **bodies)
{
	const struct weft__deferred *d = weft__deferred_of(c->deferred);
	const void *run_frame;
	weft_coro_t *body;

	for (; d && (d = in_frames(c, d)); d = weft__deferred_of(d->next)) {
		if (!weft__is_run_frame(d) || !(run_frame = in_frames(c, d->arg)))
			continue;
		body = weft__run_frame_coro(run_frame);
		if (!body || weft_state(body) == WEFT_RUNNING)
			continue;
		body->parent = *bodies;
		*bodies = body;
	}
}

static struct weft__ending *ending_of(const weft_coro_t *k)
{
	return weft__ending_of ? weft__ending_of(k) : NULL;
}

/* Leave for the resumer of k without calling any function of the coroutines: their stacks are full, or were interrupted
 * at an arbitrary point. */
static WEFT__LEAVES_STACK _Noreturn void fail(weft_coro_t *k)
{
	struct weft__ending *ending = ending_of(k);
	weft_coro_t *self = weft__self(), *home = ending ? ending->target : k, *orphans = home, *bodies = NULL, *up;

	for (weft_coro_t *c = self;; c = c->parent) {
		weft__drop_thens(c, NULL);
		if (weft__unlikely(c->flags & WEFT__ENDING) && c != k) {
			weft__hand_on_orphans(c->ending, &orphans, home);
			weft__forget_ending(c);
		}
		collect_bodies(c, &bodies);
		if (c == k)
			break;
	}
	if (ending)
		weft__give_up_ending(k, ending, orphans, bodies);
	weft__abandon(k, self);
	for (; orphans != k; orphans = up) {
		up = orphans->parent;
		weft__orphan(orphans, &k->innermost, k);
	}
	weft__keep_bodies(bodies, &k->innermost, k);

	k->deferred = NULL;
	weft__leave(k, &weft_failed, k);
}

static weft_failure_hook_t *_Atomic failure_hook;

weft_failure_hook_t *weft_set_failure_hook(weft_failure_hook_t *hook)
{
	return atomic_exchange(&failure_hook, hook);
}

static const weft_failure_t failures[] = {[WEFT__SPENT_BUDGET] = WEFT_BUDGET_SPENT,
					  [WEFT__SPENT_RESERVATION] = WEFT_RESERVATION_SPENT,
					  [WEFT__SPENT_MEMORY] = WEFT_MEMORY_SPENT};
_Static_assert(sizeof failures / sizeof *failures == WEFT__SPENT_REASONS, "each reason is a failure");

bool weft__owner_ends(const void *owner)
{
	return ending_of(owner) != NULL;
}

void *weft__owner_choose(void *owner, const char *address, enum weft__spent why, char **sp, void **fp)
{
	weft_coro_t *self = weft__runner_at(*sp), *victim = owner;

	if (!self)
		return NULL;
	weft__set_self(self); /* a coroutine that it was about to resume, or has resumed, stays suspended */
	/* Normally the thread runs on the stack that cannot grow, or on that of a coroutine inside. Else the running
	 * coroutine fails. */
	if (!weft__is_ancestor(victim, self))
		victim = self;
	victim->failure = (uint8_t)failures[why];
	(void)address;
	*sp = victim->link.parent_sp;
	*fp = victim->link.parent_fp;
	return victim;
}

/* Call the hook on a contiguous stack, which has room for it. Failures that the hook causes do not call it again. */
WEFT__LEAVES_STACK static void *call_hook(void *victim)
{
	weft_failure_hook_t *hook = atomic_load(&failure_hook);
	weft_coro_t *k = victim;

	weft__tls_thread->in_hook = true;
	if (hook)
		hook(k, (weft_failure_t)k->failure);
	weft__tls_thread->in_hook = false;
	fail(k);
}

/* Called on the thread's small stack, if it has one. */
WEFT__LEAVES_STACK void weft__owner_fail(void *victim)
{
	struct weft__thread *thread = weft__tls_thread;
	weft_coro_t *k = victim;

	if (weft__throw_no_more)
		weft__throw_no_more();
	if (atomic_load(&failure_hook) && thread && !thread->in_hook) {
		weft__set_limit(NULL);
		weft__self()->link.limit = NULL; /* its frames are lost */
		weft__enter_chunk(call_hook, k, thread->small_stack + WEFT_HOOK_STACK);
	}
	fail(k);
}

WEFT__LAST_WORDS(static, die_in_thread, (enum weft__spent why), why)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "stack overflow in a thread: ");
	weft__line_text(&line,
			why == WEFT__SPENT_RESERVATION
			    ? "its memory is full; raise weft_attr.memory_size"
			    : "no memory for another chunk; free some, or raise the limit on memory (ulimit -v)");
	weft__line_die(&line);
}

/* Called on the thread's small stack, and does not return to it. */
WEFT__LEAVES_STACK void weft__owner_spent(struct weft_link *self, const char *address, enum weft__spent why)
{
	weft_coro_t *k = (weft_coro_t *)(void *)self;

	(void)address;
	if (!k->parent)
		die_in_thread(why);
	k->failure = (uint8_t)failures[why];
	weft__owner_fail(k);
	__builtin_unreachable();
}
