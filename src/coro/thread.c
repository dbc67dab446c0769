/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Threads on stacks of Weft. The slot's room for a coroutine contains the function and argument that the thread starts
 * with. */
#define _GNU_SOURCE

#include <weft/thread.h>

#include <errno.h>
#include <string.h>

#include "coro/coro.h"

struct start {
	void *(*fn)(void *);
	void *arg;
	const char *name;
};
_Static_assert(sizeof(struct start) <= WEFT__OBJECT_BYTES, "the slot's room");

/* When a program is linked with -fsplit-stack, its calls of pthread_create go to __wrap_pthread_create, and the
 * original function has this name. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
    __attribute__((weak));

static int create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (__real_pthread_create)
		return __real_pthread_create(thread, attr, fn, arg);
	return pthread_create(thread, attr, fn, arg);
}

static void give(struct weft__slot *slot)
{
	weft__object_clear(memset(slot->object, 0, sizeof slot->object));
	atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed); /* relaxed: no code runs on it */
	weft__slot_give(slot);
}

/* Called at the function's end, and at pthread_exit and cancellation: then the frames on the slot are unwound. */
static void leave(void *argument)
{
	weft_coro_t *root = weft__self();

	if (weft__is_callers(argument) && weft__callers_of(argument)->is_watched)
		weft__watch(root, argument);
	if (root->link.chunk)
		weft__chunks_end(&root->link, argument);
	weft__limit_ends();
	if (weft__tls_thread)
		weft__tls_thread->root = NULL;
	give(argument);
}

/* Without memory for the small stack and the alternate signal stack that a stack of Weft needs, the thread runs on its
 * own stack. */
static void *enter(weft_coro_t *root, struct weft__slot *slot, const struct start *start)
{
	if (!weft__thread())
		return start->fn(start->arg);
	weft__tls_thread->root = slot;
	if (slot->chunk.limit)
		weft__chunks_begin(&root->link, slot);
	weft__set_limit(root->link.limit);
	return weft__enter_chunk(start->fn, start->arg, (char *)slot);
}

static void *run(void *argument)
{
	struct weft__slot *slot = argument;
	struct start start;
	weft_coro_t *root = weft__attach_thread();
	void *result;

	memcpy(&start, slot->object, sizeof start);
	root->name = start.name;
	atomic_store_explicit(&slot->owner, root, memory_order_release);
	pthread_cleanup_push(leave, slot);
	result = enter(root, slot, &start);
	pthread_cleanup_pop(1);
	return result;
}

static int take_filled(const weft_attr_t *attr, struct weft__slot **slot)
{
	int error;

	*slot = weft__take_slot(attr, &error);
	if (!*slot)
		return error;
	error = weft__policies[(*slot)->policy]->fill ? weft__policies[(*slot)->policy]->fill(*slot) : 0;
	if (error)
		give(*slot);
	return error;
}

static int create_on(pthread_t *thread, const pthread_attr_t *how, const weft_attr_t *attr, struct start start)
{
	struct weft__slot *slot;
	int error;

	if (!start.name)
		start.name = "thread";
	error = take_filled(attr, &slot);
	if (error)
		return -error;
	memcpy(slot->object, &start, sizeof start);
	error = create(thread, how, run, slot);
	if (error)
		give(slot);
	return error;
}

int weft_thread_create(pthread_t *thread, const weft_attr_t *attr, void *(*fn)(void *), void *arg)
{
	weft_attr_t wanted = attr ? *attr : (weft_attr_t){0};

	if (!thread || !fn)
		return EINVAL;
	if (wanted.policy || !wanted.memory) /* with memory, the default is a policy that accepts it */
		wanted.policy = weft__policy_for_thread(wanted.policy);
	return create_on(thread, NULL, &wanted, (struct start){fn, arg, wanted.name});
}

int weft_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	if (!weft__policies[weft_default_policy()]->linked)
		return create(thread, attr, fn, arg);
	return create_on(thread, attr, &(weft_attr_t){0}, (struct start){fn, arg, NULL});
}

WEFT_API int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return weft_pthread_create(thread, attr, fn, arg);
}

/* ---- signals ------------------------------------------------------------------------------------------------------
 * */

int weft_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction changed;

	if (!action)
		return weft__fault_sigaction(number, NULL, old);
	changed = *action;
	changed.sa_flags |= SA_ONSTACK;
	sigdelset(&changed.sa_mask, SIGSEGV);
	sigdelset(&changed.sa_mask, SIGBUS);
	return weft__fault_sigaction(number, &changed, old);
}

bool weft_handle_fault(int number, void *info, void *context)
{
	return weft__fault_handle(number, info, context);
}

void (*weft_signal(int number, void (*handler)(int)))(int)
{
	struct sigaction action, old;

	memset(&action, 0, sizeof action);
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART; /* as signal() does */
	sigemptyset(&action.sa_mask);
	if (weft_sigaction(number, &action, &old))
		return SIG_ERR;
	return old.sa_handler;
}

/* ---- calls on a system stack ------------------------------------------------------------------------------------- */

#if !defined(__x86_64__)
void weft__require_function(const void *function)
{
	if (!function)
		weft__die_on_system_stack();
}
#endif

void *weft_ffi_on_system_stack(void *(*fn)(void *), void *arg)
{
	return weft_on_system_stack(fn, arg);
}
