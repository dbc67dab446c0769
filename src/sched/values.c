/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Values that tasks inherit: weft_bind and weft_bound.
 *
 * A binding is in the frame of its block, and is found through the function that the block defers, which has
 * weft__unbind as its function and the binding as its argument. So the list of deferred functions of each coroutine is
 * also its list of bindings: a binding ends however the block is left, a suspended coroutine keeps its bindings, and
 * neither a coroutine nor a task needs a word for them.
 *
 *   task:   coroutine that runs  ->  its resumer  ->  ...  ->  the task's first coroutine  ->  its scope's `values`
 *   scope:  `values`, the innermost binding when it was opened  ->  `outer`  ->  `outer`  ->  ...
 *
 * The first chain follows the coroutines as they are resumed now. Only the task itself reads it. Tasks of a scope read
 * the second chain while the scope's owner runs, so it must not change: `outer` is the binding that was visible when
 * the binding was made. The two chains differ only if a coroutine was suspended in a block of its own and then resumed
 * under other bindings; it must not open a scope there. A binding must outlive the scopes that it is visible in: the
 * end of a block checks the scopes that its task has open.
 *
 * Rejected: a pointer in each task that a spawn copies. It costs each spawn two instructions and the task a word. If a
 * task gets the pointer but belongs to a scope that was opened outside of the block, it outlives the binding. Java and
 * Swift refuse such a spawn at run time; then a function that starts a task in a scope of its own could not be called
 * with anything bound. The scope's own bindings, as in Kotlin, are always valid.
 */
#include "sched/sched.h"

/* Atomic. 0: nothing has been bound in this process, and opening a scope need not look. */
unsigned char weft__values_used;

/* The first deferred function that ends a binding, from d outwards. */
static struct weft__deferred *first_binding(const struct weft__deferred *d)
{
	struct weft__deferred *at = weft__deferred_of(d);

	while (at && at->fn != weft__unbind)
		at = weft__deferred_of(at->next);
	return at;
}

/* The resumer of a coroutine in the same task, or thread; NULL: there is none. */
static weft_coro_t *further_out(const struct weft__task *task, weft_coro_t *k)
{
	return task && k == task->k ? NULL : k->parent;
}

static const struct weft__binding *inherited(const struct weft__task *task)
{
	return task && task->scope ? task->scope->values : NULL;
}

static const struct weft__binding *innermost(const struct weft__task *task)
{
	const struct weft__deferred *d;
	weft_coro_t *k;

	for (k = weft__self(); k; k = further_out(task, k)) {
		d = first_binding(k->deferred);
		if (d)
			return d->arg;
	}
	return inherited(task);
}

/* Does the chain by `outer` from `b` on have the same bindings as the coroutines? */
static bool is_as_bound(const struct weft__task *task, const struct weft__binding *b)
{
	const struct weft__deferred *d;
	weft_coro_t *k;

	for (k = weft__self(); k; k = further_out(task, k))
		for (d = first_binding(k->deferred); d; d = first_binding(d->next)) {
			if (d->arg != b)
				return false;
			b = b->outer;
		}
	return b == inherited(task);
}

const struct weft__binding *weft__values_of_scope(const struct weft__task *owner)
{
	const struct weft__binding *b = innermost(owner);

	/* The bindings of the task's first coroutine are always made under the same outer bindings. */
	if (weft__self() != owner->k && !is_as_bound(owner, b))
		weft__misused("weft_scope_open", "was called in a block of weft_bind that its coroutine was suspended "
						 "in, and resumed where other values are bound: open the scope outside "
						 "of the block");
	return b;
}

void weft__bind(struct weft__binding *b, const void *key, void *value)
{
	__atomic_store_n(&weft__values_used, 1, __ATOMIC_RELAXED);
	b->key = key;
	b->value = value;
	b->outer = innermost(weft__task());
	b->depth = b->outer ? b->outer->depth + 1 : 1;
}

static bool is_visible_in(const weft_scope_t *s, const struct weft__binding *b)
{
	const struct weft__binding *v = s->values;

	while (v && v->depth > b->depth)
		v = v->outer;
	return v == b;
}

void weft__unbind(void *binding)
{
	const struct weft__task *task = weft__task();
	const weft_scope_t *s;

	for (s = task ? task->open : NULL; s; s = s->outer)
		if (is_visible_in(s, binding))
			weft__misused("weft_bind", "was called in a block that ends before a scope that was opened in "
						   "it: close the scope first, by weft_scope_wait");
}

void *weft_bound(const void *key)
{
	const struct weft__task *task = weft__task();
	const struct weft__binding *b;
	const struct weft__deferred *d;
	weft_coro_t *k;

	for (k = weft__self(); k; k = further_out(task, k))
		for (d = first_binding(k->deferred); d; d = first_binding(d->next)) {
			b = d->arg;
			if (b->key == key)
				return b->value;
		}
	for (b = inherited(task); b; b = b->outer)
		if (b->key == key)
			return b->value;
	return NULL;
}
