/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Leaving coroutines without coming back: to a resumer further out, and because the run time ends one. */
#include <weft/defer.h>

#include "coro/copying.h"
#include "coro/ends.h"

/* ---- what was running inside ------------------------------------------------------------------------------------ */

static bool is_among(uint64_t id, const weft_coro_t *from, const weft_coro_t *to)
{
	for (;; from = from->parent) {
		if (from->id == id)
			return true;
		if (from == to)
			return false;
	}
}

/* Its resumers come first: usually one of them made it. */
static bool made_within(const weft_coro_t *c, const weft_coro_t *leaf, const weft_coro_t *k)
{
	return c->creator && (is_among(c->creator, c->parent, k) ||
			      (is_among(c->creator, leaf, c) && WEFT_NO_CANARY(made_further_inside_is_nobodys)));
}

void weft__note_owned(weft_coro_t *k, weft_coro_t *leaf)
{
	for (weft_coro_t *c = leaf; c != k; c = c->parent)
		if (made_within(c, leaf, k))
			c->flags |= WEFT__OWNED;
}

bool weft__take_owned(weft_coro_t *c)
{
	bool owned = c->flags & WEFT__OWNED;

	c->flags &= ~(uint32_t)WEFT__OWNED;
	return owned;
}

/*
 * Coroutines that were running inside k will not run again. They all become FINISHED. Those made by the frames that are
 * lost belong to nobody any more. They are kept until k is reset or deleted, because the payload of a request may lie
 * on their stacks, in a list: k->leaf is the first, `parent` the next, and k the last one's next; `handled`, which a
 * finished coroutine has no use for, marks them, and `leaf` leads to the word that names them.
 */
void weft__orphan(weft_coro_t *c, weft_coro_t **list, weft_coro_t *k)
{
	c->handled = WEFT__ORPHAN;
	c->parent = *list;
	c->leaf = (weft_coro_t *)list;
	weft__name_orphan(&c->parent, k);
	*list = c;
}

/*
 * The bodies that frames of weft_run had on coroutines that fail: nobody else will delete them. k keeps them, as it
 * keeps the others, because this is no moment for what they have deferred. Those that wait come first in the list, and
 * their `leaf` is their own.
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

/* What frames of a failing coroutine hold at `at`. NULL: it cannot be read. */
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
	const struct weft__deferred *d = c->deferred;
	const void *charge;
	weft_coro_t *body;

	for (; d && (d = in_frames(c, d)); d = d->next) {
		if (!weft__is_charge(d) || !(charge = in_frames(c, d->arg)))
			continue;
		body = weft__charged(charge);
		if (!body || weft_state(body) == WEFT_RUNNING)
			continue;
		body->parent = *bodies;
		*bodies = body;
	}
}

void weft__adopt_orphans(weft_coro_t *k, weft_coro_t *list)
{
	k->leaf = list;
	weft__name_orphan(&k->leaf, k);
}

void weft__hand_on_orphans(const struct weft__ending *e, weft_coro_t **list, const weft_coro_t *k)
{
	weft_coro_t *last = e->orphans;

	if (last == e->target)
		return;
	while (last->parent != e->target)
		last = last->parent;
	last->parent = *list;
	weft__name_orphan(&last->parent, k);

	*list = e->orphans;
	weft__name_orphan(list, k);
}

void weft__abandon_inside(weft_coro_t *k, weft_coro_t *leaf, weft_coro_t **orphans, weft_coro_t *home)
{
	weft_coro_t *c = leaf, *up;

	k->flags &= ~(uint32_t)WEFT__THROUGH;
	weft__note_owned(k, leaf);
	for (; c != k; c = up) {
		up = c->parent;
		if (weft__unlikely(c->flags & WEFT__COPYING))
			weft__abandon_copied(c);
		weft__drop_all_thens(c);
		c->link.pc = (void *)weft__in_finished;
		c->deferred = NULL;
		c->leaf = c;
		if (weft__take_owned(c))
			weft__orphan(c, orphans, home);
	}
}

void weft__abandon(weft_coro_t *k, weft_coro_t *leaf)
{
	weft_coro_t *orphans = k;

	weft__abandon_inside(k, leaf, &orphans, k);
	weft__adopt_orphans(k, orphans);
}

/* ---- leaving ---------------------------------------------------------------------------------------------------- */

WEFT__LEAVES_STACK void weft__leave_to(weft_coro_t *k, const void *effect, void *payload)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(weft__leaves_something(k, self)))
		weft__end_up_to(k, self, effect, payload);
	weft__abandon(k, self);
	weft__leave(k, effect, payload);
}

/* The same at a moment when nothing of the coroutines can be called: their stacks are full, or were interrupted in the
 * middle of anything. */
static WEFT__LEAVES_STACK _Noreturn void fail(weft_coro_t *k)
{
	struct weft__ending *ending = weft__ending_of(k);
	weft_coro_t *self = weft__self(), *home = ending ? ending->target : k, *orphans = home, *bodies = NULL, *up;

	for (weft_coro_t *c = self;; c = c->parent) {
		weft__drop_all_thens(c);
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
		weft__orphan(orphans, &k->leaf, k);
	}
	weft__keep_bodies(bodies, &k->leaf, k);

	k->deferred = NULL;
	weft__leave(k, &weft_failed, k);
}

/* Suspend k from `self` below it. Out of line: whoever suspends more than itself has paid for a search. `leaf` tells
 * others who will land; here the frame knows. */
void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	void *value;

	k->leaf = self;
	/* Relaxed: the chain is this thread's. */
	if (weft__unlikely(__atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) & WEFT__COPYING_USED))
		weft__before_through(k, self);
	value = weft_arch_yield(&k->link, effect, payload);
	k->leaf = k;
	weft__become(self);
	return value;
}

bool weft__is_ancestor(const weft_coro_t *k, const weft_coro_t *of)
{
	for (; of && of->parent; of = of->parent)
		if (of == k)
			return true;
	return false;
}

static weft_failure_hook_t *_Atomic failure_hook;

weft_failure_hook_t *weft_set_failure_hook(weft_failure_hook_t *hook)
{
	return atomic_exchange(&failure_hook, hook);
}

/* The coroutine that runs. Just before and just after a switch that is not yet, or no more, the current one. */
static weft_coro_t *runner_at(const char *sp)
{
	for (weft_coro_t *c = weft__self(); c && c->parent; c = c->parent)
		if (weft_on_stack(c, sp))
			return c;
	return NULL;
}

const void *weft__owner_running(const char *sp, const struct weft__slot **slot)
{
	const weft_coro_t *runner = runner_at(sp), *self = runner ? runner : weft__self();
	const struct weft__chunk *chunk = self ? self->link.chunk : NULL;

	*slot = NULL;
	if (chunk)
		*slot = chunk->limit == WEFT__HEAP_LIMIT
			    ? NULL
			    : (const struct weft__slot *)((const char *)chunk - WEFT_CHUNK_TOP);
	else if (self && self->parent)
		*slot = weft__stack_of(self);
	else if (self && weft__tls_thread)
		*slot = weft__tls_thread->root;
	return self && (self->parent || *slot) ? self : NULL;
}

static const weft_failure_t failures[] = {[WEFT__SPENT_BUDGET] = WEFT_BUDGET_SPENT,
					  [WEFT__SPENT_RESERVATION] = WEFT_RESERVATION_SPENT,
					  [WEFT__SPENT_MEMORY] = WEFT_MEMORY_SPENT};

bool weft__owner_ends(const void *owner)
{
	return weft__ending_of(owner) != NULL;
}

void *weft__owner_choose(void *owner, const char *address, enum weft__spent why, char **sp, void **fp)
{
	weft_coro_t *self = runner_at(*sp), *victim = owner;

	if (!self)
		return NULL;
	weft__set_self(self); /* what it was about to resume, or has resumed, stays suspended */
	/* Normally the thread runs on the stack that cannot grow, or on one further in; else it is the one to go. */
	if (!weft__is_ancestor(victim, self))
		victim = self;
	victim->failure = (uint8_t)failures[why];
	(void)address;
	*sp = victim->link.parent_sp;
	*fp = victim->link.parent_fp;
	return victim;
}

/* On a contiguous stack for whatever it does. Not for failures that it causes itself. */
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

/* On the thread's small stack if it has one. */
WEFT__LEAVES_STACK void weft__owner_fail(void *victim)
{
	struct weft__thread *thread = weft__tls_thread;
	weft_coro_t *k = victim;

	weft__throw_no_more();
	if (atomic_load(&failure_hook) && thread && !thread->in_hook) {
		weft__set_limit(NULL);
		weft__self()->link.limit = NULL; /* its frames are lost */
		weft__enter_chunk(call_hook, k, thread->small_stack + WEFT_HOOK_STACK);
	}
	fail(k);
}

/* Called on the thread's small stack, which is left here. */
WEFT__LEAVES_STACK void weft__owner_spent(struct weft_link *self, const char *address)
{
	weft_coro_t *k = (weft_coro_t *)(void *)self;

	(void)address;
	if (!k->parent) {
		struct weft__line line;

		weft__line_begin(&line);
		weft__line_text(&line, "stack overflow in a thread: no memory for another chunk; ");
		weft__line_text(&line, "free some, or raise the limit on memory (ulimit -v)");
		weft__line_die(&line);
	}
	k->failure = WEFT_MEMORY_SPENT;
	weft__owner_fail(k);
	__builtin_unreachable();
}
