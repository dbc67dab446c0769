/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Making and ending coroutines. Switching is inline (weft/coro.h); this is what surrounds it.
 *
 * A thread's outermost code runs in a root: a coroutine object without a stack of ours, whose parent is NULL and which
 * handles nothing, so that a search for a handler ends there without a special case.
 */
#include "coro/copying.h"
#include "coro/ends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(weft_coro_t) <= WEFT__OBJECT_BYTES, "the slot's room for a coroutine");

static struct weft__found found_nothing[WEFT__FOUND_ENTRIES]; /* stays so: neither views nor keys are zero */

/* Used: by inline assembly only, which link-time optimization does not see. */
__attribute__((used, visibility("default"), tls_model("initial-exec"))) __thread struct {
	weft_coro_t *self;
	struct weft__found *found;
} weft__tls_self = {NULL, found_nothing};
static __thread weft_coro_t root __attribute__((tls_model("initial-exec")));

weft_coro_t *weft__attach_thread(void)
{
	(void)weft__thread(); /* alternate signal stack; without memory it is tried again at the next creation */
	root.link.pc = (void *)weft__in_running;
	root.leaf = &root;
	root.view = (const struct weft__view *)WEFT__ROOT;
	weft__set_self(&root);
	return &root;
}

/* ---- what searches found -------------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct weft__found) * WEFT__FOUND_ENTRIES <= WEFT__OWNER_BYTES,
	       "the thread's room for the table");

static atomic_uint tables;

struct weft__found *weft__found_table(void)
{
	struct weft__thread *thread;

	if (weft__likely(weft__tls_self.found != found_nothing))
		return weft__tls_self.found;
	thread = weft__thread();
	if (!thread)
		return NULL;
	atomic_fetch_add_explicit(&tables, 1, memory_order_relaxed);
	return weft__tls_self.found = (struct weft__found *)thread->owner;
}

bool weft__only_table(void)
{
	/* Relaxed: entries that pass a coroutine were made by threads that had it before this one. */
	return atomic_load_explicit(&tables, memory_order_relaxed) == (weft__tls_self.found != found_nothing);
}

void weft__forget_found(void)
{
	if (weft__tls_self.found != found_nothing && weft__tls_thread->owner_used) {
		memset(weft__tls_self.found, 0, WEFT__FOUND_ENTRIES * sizeof(struct weft__found));
		weft__tls_thread->owner_used = false;
	}
}

void weft__owner_detach(void)
{
	if (weft__tls_self.found != found_nothing)
		atomic_fetch_sub_explicit(&tables, 1, memory_order_relaxed);
	weft__tls_self.found = found_nothing;
}

/* ---- the stack layer's questions ---------------------------------------------------------------------------- */

void weft__object_clear(void *object)
{
	weft_coro_t *k = object;

	k->link.pc = (void *)weft__in_deleted;
	k->marks = WEFT__PASSED; /* an earlier object here may have been */
}

void weft__owner_describe(const void *owner, const char **name, uint64_t *id)
{
	const weft_coro_t *k = owner;

	*name = weft_name(k);
	*id = k->id;
}

/* ---- making --------------------------------------------------------------------------------------------------- */

#ifdef WEFT_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_DEFINED(start, bytes) ((void)0)
#define VALGRIND_MAKE_MEM_NOACCESS(start, bytes) ((void)0)
#define VALGRIND_MAKE_MEM_UNDEFINED(start, bytes) ((void)0)
#endif

/* Where the frames start: just below the slot's own record. */
static void arm(weft_coro_t *k, weft_fn_t *fn, void *arg)
{
	struct weft__slot *slot = k->slot;

	k->link.pc = (void *)weft__entry;
	k->link.sp = slot;
	if (weft__unlikely(weft__slot_is_record(slot))) {
		weft__arm_copying(k);
	} else {
		/* Memcheck follows the stack pointer from here down, its red zone ahead. */
		VALGRIND_MAKE_MEM_NOACCESS(slot->chunk.low, (char *)slot - slot->chunk.low);
		VALGRIND_MAKE_MEM_UNDEFINED((char *)slot - 128, 128);
	}
	if (weft__unlikely(slot->chunk.limit)) /* a linked stack */
		weft__chunks_begin(&k->link, slot);
	k->link.parent_pc = NULL;
	k->parent = NULL;
	k->leaf = k;
	k->fn = fn;
	k->arg = arg;
	k->failure = WEFT_NO_FAILURE;
}

static inline void set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread, weft_fn_t *fn,
			  void *arg)
{
	const weft_coro_t *creator = weft__self();

	k->slot = slot;
	k->marks &= WEFT__PASSED;
	arm(k, fn, arg);
	k->id = weft__new_id(thread);
	k->creator = creator ? creator->id : 0;
	/* Release: the fault handler reads the name and number of an owner that it sees. */
	atomic_store_explicit(&slot->owner, k, memory_order_release);
}

void weft__set_up(weft_coro_t *k, struct weft__slot *slot, struct weft__thread *thread, weft_fn_t *fn, void *arg)
{
	set_up(k, slot, thread, fn, arg);
}

weft_coro_t *weft_create(weft_fn_t *fn, void *arg)
{
	struct weft__thread *thread = weft__thread();
	struct weft__slot *slot;
	int error = -ENOMEM;
	weft_coro_t *k;

	slot = thread ? weft__slot_take(thread->default_bin, &error) : NULL;
	if (weft__unlikely(!slot)) {
		errno = -error;
		return NULL;
	}
	k = (weft_coro_t *)slot->object;
	k->name = NULL;
	k->user_data = NULL;
	k->flags = 0;
	set_up(k, slot, thread, fn, arg);
	if (weft__unlikely(weft__notes_sites))
		weft__note_site(k);
	return k;
}

static const weft_attr_t no_attr;

struct weft__slot *weft__take_slot(const weft_attr_t *attr, int *error)
{
	struct weft__thread *thread = weft__thread();
	weft_policy_t policy = attr->policy ? attr->policy : weft_default_policy();
	unsigned class;

	*error = -EINVAL;
	if ((unsigned)policy >= WEFT_POLICY_COUNT ||
	    attr->flags & ~(unsigned)(WEFT__SAVING | WEFT_NO_GUARD | WEFT_UNWIND))
		return NULL;
	class = weft__class(policy, attr->stack_size, !(attr->flags & WEFT_NO_GUARD));
	if (class == WEFT__CLASSES)
		return NULL;
	*error = -ENOMEM;
	if (!thread)
		return NULL;
	return weft__slot_take(&thread->bins[policy][class], error);
}

static void apply(weft_coro_t *k, const weft_attr_t *attr)
{
	k->name = attr->name;
	k->user_data = attr->user_data;
	k->flags |= attr->flags;
	if (k->flags & WEFT__SAVING)
		weft__arm_saving(k);
}

weft_coro_t *weft_create_with(weft_fn_t *fn, void *arg, const weft_attr_t *attr)
{
	struct weft__slot *slot;
	weft_coro_t *k;
	int error;

	if (!attr)
		attr = &no_attr;
	slot = weft__take_slot(attr, &error);
	if (!slot) {
		errno = -error;
		return NULL;
	}
	k = (weft_coro_t *)slot->object;
	k->flags = 0;
	set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	if (weft__unlikely(weft__notes_sites))
		weft__note_site(k);
	return k;
}

/* ---- ending --------------------------------------------------------------------------------------------------- */

/* Present if the program is built with a sanitizer, whether or not the library is. */
void __tsan_destroy_fiber(void *fiber) __attribute__((weak));
void __sanitizer_start_switch_fiber(void **keep, const void *low, size_t bytes) __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *bytes) __attribute__((weak));

/* AddressSanitizer destroys only the fake stack that is current, so the coroutine's becomes current for a moment. */
static WEFT__COLD __attribute__((no_sanitize_address)) void forget_fake_stack(weft_coro_t *k)
{
	const void *low;
	size_t bytes;
	void *fake;

	__sanitizer_start_switch_fiber(&fake, k, 1);
	__sanitizer_finish_switch_fiber(k->asan_fake, &low, &bytes);
	__sanitizer_start_switch_fiber(NULL, low, bytes);
	__sanitizer_finish_switch_fiber(fake, &low, &bytes);
	k->asan_fake = NULL;
}

static WEFT__COLD void forget_sanitizers(weft_coro_t *k)
{
	if (k->tsan_fiber && __tsan_destroy_fiber)
		__tsan_destroy_fiber(k->tsan_fiber);
	if (k->asan_fake && __sanitizer_start_switch_fiber)
		forget_fake_stack(k);
	k->tsan_fiber = k->asan_fake = NULL;
}

/* The slot goes back; the object stays readable and says that it is dead. */
static void bury(weft_coro_t *k)
{
	struct weft__slot *slot = k->slot;

	if (weft__unlikely((uintptr_t)k->tsan_fiber | (uintptr_t)k->asan_fake))
		forget_sanitizers(k);
	if (weft__unlikely(k->flags & WEFT__KEEPING))
		weft__give_payload(k);
	if (weft__unlikely(k->link.chunk))
		weft__chunks_end(&k->link, slot);
	if (weft__unlikely(weft__slot_is_record(slot)))
		weft__forget_copied(k);
	k->link.pc = (void *)weft__in_deleted;
	k->id = 0;
	k->slot = NULL;
	/* Relaxed: the handler may still see the old owner, whose object can be read. */
	atomic_store_explicit(&slot->owner, NULL, memory_order_relaxed);
	weft__slot_give(slot);
}

static bool embedded(const weft_coro_t *k)
{
	return (const char *)k == k->slot->object;
}

bool weft__made_within(const weft_coro_t *k, const weft_coro_t *outer)
{
	for (const weft_coro_t *c = k->parent;; c = c->parent) {
		if (c->id == k->creator)
			return true;
		if (c == outer)
			return false;
	}
}

/*
 * Coroutines that were running inside k will not run again. They all become FINISHED. Those made by the frames that are
 * lost belong to nobody any more. They are kept until k is reset or deleted, because the payload of a request may lie
 * on their stacks, in a list: k->leaf is the first, `parent` the next, and k the last one's next; `handled`, which a
 * finished coroutine has no use for, marks them, and `leaf` leads to the word that names them.
 */
enum { ORPHAN = 4 };

void weft__orphan(weft_coro_t *c, weft_coro_t **list, weft_coro_t *k)
{
	c->handled = ORPHAN;
	c->parent = *list;
	c->leaf = (weft_coro_t *)list;
	if (*list != k)
		(*list)->leaf = (weft_coro_t *)&c->parent;
	*list = c;
}

void weft__adopt_orphans(weft_coro_t *k, weft_coro_t *list)
{
	k->leaf = list;
	if (list != k)
		list->leaf = (weft_coro_t *)&k->leaf;
}

/* Nothing of k's chain from `leaf` up is to be called any more. */
static void abandon(weft_coro_t *k, weft_coro_t *leaf)
{
	weft_coro_t *orphans = k, *c = leaf, *up;

	k->flags &= ~(uint32_t)WEFT__THROUGH;
	for (; c != k; c = up) {
		up = c->parent;
		if (weft__unlikely(c->flags & WEFT__COPYING))
			weft__abandon_copied(c);
		c->link.pc = (void *)weft__in_finished;
		c->deferred = NULL;
		c->leaf = c;
		if (weft__made_within(c, k))
			weft__orphan(c, &orphans, k);
	}
	weft__adopt_orphans(k, orphans);
}

static bool is_orphan(const weft_coro_t *k)
{
	return k->handled == ORPHAN && k->link.pc == (void *)weft__in_finished;
}

/* Its owner was not lost after all, and gives it back or uses it again. */
static void leave_orphans(weft_coro_t *c)
{
	weft_coro_t **place = (weft_coro_t **)c->leaf;

	*place = c->parent;
	if (is_orphan(c->parent))
		c->parent->leaf = (weft_coro_t *)place;
	c->handled = 0;
	c->leaf = c;
}

static void bury_orphans(weft_coro_t *k)
{
	weft_coro_t *c = k->leaf, *next;

	for (; c != k; c = next) {
		next = c->parent;
		c->handled = 0;
		bury(c);
	}
	k->leaf = k;
}

static WEFT__COLD void drop_others(weft_coro_t *k)
{
	if (is_orphan(k)) {
		leave_orphans(k);
		return;
	}
	if (k->link.pc != (void *)weft__in_finished) /* suspended from below */
		abandon(k, k->leaf);
	bury_orphans(k);
}

/* Is there anything to call before the frames of k are given up? */
static inline bool must_end(const weft_coro_t *k)
{
	return k->link.pc != (void *)weft__in_finished && weft__must_end(k);
}

static inline void drop_frames(weft_coro_t *k)
{
	if (weft__unlikely(k->leaf != k))
		drop_others(k);
}

void weft__drop_inside(weft_coro_t *k)
{
	if (k->leaf != k)
		drop_others(k);
	if (weft__unlikely(k->flags & WEFT__KEEPING))
		weft__give_payload(k);
	if (weft__unlikely(k->flags & WEFT__ENDING))
		weft__forget_ending(k);
}

static WEFT__COLD _Noreturn void die_ending(const weft_coro_t *k, const char *what, const char *why)
{
	struct weft__line line;

	weft__line_coro(&line, what, k);
	weft__line_text(&line, why);
	weft__line_die(&line);
}

static inline void check_ending(const weft_coro_t *k, const char *what)
{
	weft_state_t state = weft_state(k);

	if (weft__unlikely(state == WEFT_RUNNING))
		die_ending(k, what, ": it is running; let it yield or exit first");
	if (weft__unlikely(state == WEFT_DELETED))
		die_ending(k, what, ": it was deleted before, or never made");
}

static WEFT__COLD void end_and_bury(weft_coro_t *k)
{
	void *thrown = weft__end_suspended(k);

	drop_frames(k);
	bury(k);
	if (thrown)
		weft__rethrow(thrown);
}

static inline void drop_and_bury(weft_coro_t *k)
{
	if (weft__unlikely(must_end(k))) {
		end_and_bury(k);
		return;
	}
	drop_frames(k);
	bury(k);
}

void weft_delete(weft_coro_t *k)
{
	if (!k)
		return;
	check_ending(k, "cannot delete");
	if (weft__unlikely(!embedded(k)))
		die_ending(k, "cannot delete", ": it was made by weft_init; use weft_release");
	drop_and_bury(k);
}

static WEFT__COLD void end_suspended(weft_coro_t *k)
{
	void *thrown = weft__end_suspended(k);

	if (thrown)
		weft__rethrow(thrown);
}

void weft_reset(weft_coro_t *k, weft_fn_t *fn, void *arg)
{
	check_ending(k, "cannot reset");
	if (weft__unlikely(must_end(k)))
		end_suspended(k);
	drop_frames(k);
	if (weft__unlikely(k->flags & WEFT__KEEPING))
		weft__give_payload(k);
	if (weft__unlikely(k->link.chunk))
		weft__chunks_end(&k->link, k->slot);
	if (weft__unlikely(weft__slot_is_record(k->slot)))
		weft__forget_copied(k);
	if (k->marks & WEFT__SEEN)
		k->marks |= WEFT__PASSED; /* entries of it are not true any more */
	arm(k, fn, arg);
	if (k->flags & WEFT__SAVING)
		weft__arm_saving(k);
}

void weft_release(weft_coro_t *k)
{
	check_ending(k, "cannot release");
	drop_and_bury(k);
}

size_t weft_trim(weft_coro_t *k)
{
	char *sp = k->link.sp;

	if (weft_state(k) != WEFT_SUSPENDED || weft__slot_is_record(k->slot))
		return 0;
	/* Suspended from below: its own frames end where it resumed the next one. */
	for (const weft_coro_t *c = k->leaf; c != k; c = c->parent)
		sp = c->link.parent_sp;
	/* On a system stack, or in a region that others use. */
	if ((k->link.chunk && !k->link.limit) || !weft_on_stack(k, sp - 1))
		return 0;
	return weft__stack_trim(&k->link, k->slot, sp);
}

/* Does the storage hold a coroutine made by weft_init? It may hold anything; the arena knows what it gave out. */
static bool in_use(weft_coro_t *k)
{
	struct weft__slot *slot;

	VALGRIND_MAKE_MEM_DEFINED(k, sizeof *k);
	if (weft__arena_open())
		return false;
	slot = weft__arena_find(k->slot);
	return slot && slot == k->slot && atomic_load_explicit(&slot->owner, memory_order_relaxed) == k;
}

int weft_init(weft_coro_t *k, weft_fn_t *fn, void *arg, const weft_attr_t *attr)
{
	struct weft__slot *slot;
	int error;

	if (in_use(k))
		weft_release(k);
	memset(k, 0, sizeof *k);
	weft__object_clear(k);
	if (!attr)
		attr = &no_attr;
	slot = weft__take_slot(attr, &error);
	if (!slot)
		return error;
	set_up(k, slot, weft__tls_thread, fn, arg);
	apply(k, attr);
	return 0;
}

/* ---- leaving -------------------------------------------------------------------------------------------------- */

/* Where AddressSanitizer believes another stack to be current, it must not hear that a function does not return. */
#define LEAVES_STACK __attribute__((no_sanitize_address))

LEAVES_STACK void weft__leave_to(weft_coro_t *k, const void *effect, void *payload)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(weft__leaves_something(k, self)))
		weft__end_up_to(k, self, effect, payload);
	abandon(k, self);
	weft__leave(k, effect, payload);
}

/* The same at a moment when nothing of the coroutines can be called: their stacks are full, or were interrupted in the
 * middle of anything. */
static LEAVES_STACK _Noreturn void drop_to(weft_coro_t *k, const void *effect, void *payload)
{
	weft_coro_t *self = weft__self();

	for (weft_coro_t *c = self;; c = c->parent) {
		if (weft__unlikely(c->flags & WEFT__ENDING))
			weft__forget_ending(c);
		if (c == k)
			break;
	}
	abandon(k, self);
	k->deferred = NULL;
	weft__leave(k, effect, payload);
}

/* Suspend k from `self` below it. Out of line: whoever suspends more than itself has paid for a search. `leaf` tells
 * others who will land; here the frame knows. */
void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	void *value;

	k->leaf = self;
	/* Relaxed: the chain is this thread's. */
	if (weft__unlikely(__atomic_load_n(&weft__copying_used, __ATOMIC_RELAXED)))
		weft__before_through(k, self);
	value = weft_arch_yield(&k->link, effect, payload);
	k->leaf = k;
	weft__again(self);
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

void *weft__owner_choose(void *owner, const char *address, enum weft__spent why, char **sp, void **fp)
{
	weft_coro_t *self = weft__self(), *victim = owner;

	if (!self || !self->parent || !weft_on_stack(self, *sp))
		return NULL;
	/* Normally the thread runs on the stack that cannot grow, or on one further in; else it is the one to go. */
	if (!weft__is_ancestor(victim, self))
		victim = self;
	victim->failure = why == WEFT__SPENT_BUDGET ? WEFT_BUDGET_SPENT : WEFT_RESERVATION_SPENT;
	(void)address;
	*sp = victim->link.parent_sp;
	*fp = victim->link.parent_fp;
	return victim;
}

/* On a contiguous stack for whatever it does. Not for failures that it causes itself. */
LEAVES_STACK static void *call_hook(void *victim)
{
	weft_failure_hook_t *hook = atomic_load(&failure_hook);
	weft_coro_t *k = victim;

	weft__tls_thread->in_hook = true;
	if (hook)
		hook(k, (weft_failure_t)k->failure);
	weft__tls_thread->in_hook = false;
	drop_to(k, &weft_failed, k);
}

/* On the thread's small stack if it has one. */
LEAVES_STACK void weft__owner_fail(void *victim)
{
	struct weft__thread *thread = weft__tls_thread;
	weft_coro_t *k = victim;

	if (atomic_load(&failure_hook) && thread && !thread->in_hook) {
		weft__set_limit(NULL);
		weft__self()->link.limit = NULL; /* its frames are lost */
		weft__enter_chunk(call_hook, k, thread->small_stack + WEFT_HOOK_STACK);
	}
	drop_to(k, &weft_failed, k);
}

/* Called on the thread's small stack, which is left here. */
LEAVES_STACK void weft__owner_spent(struct weft_link *self, const char *address)
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
	k->failure = WEFT_BUDGET_SPENT;
	weft__owner_fail(k);
	__builtin_unreachable();
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

weft_coro_t *weft_current(void)
{
	weft_coro_t *self = weft__self();

	return self && self->parent ? self : NULL;
}

int weft_errno(void)
{
	return errno;
}

weft_coro_t *weft_parent(const weft_coro_t *k)
{
	return k->parent && k->parent->parent ? k->parent : NULL;
}

const char *weft_name(const weft_coro_t *k)
{
	return k->name ? k->name : "";
}

weft_policy_t weft_policy(const weft_coro_t *k)
{
	return k->slot ? (weft_policy_t)k->slot->policy : WEFT_DEFAULT_POLICY;
}

size_t weft_stack_usable(const weft_coro_t *k)
{
	const struct weft__slot *slot = weft__stack_of(k);

	if (slot)
		return (size_t)((char *)slot - slot->chunk.low);
	/* Of a region that it will belong to: at least. */
	return k->slot ? weft__class_bytes(k->slot->class) - weft__guard_size(k->slot->class) - WEFT__PAGE : 0;
}

bool weft_on_stack(const weft_coro_t *k, const void *address)
{
	const struct weft__slot *slot = weft__stack_of(k);
	const char *at = address;

	if (slot && at < (const char *)slot && at >= weft__slot_start(slot))
		return true;
	return weft__chunks_have(&k->link, at);
}

bool weft_coro_is_valid(const weft_coro_t *k)
{
	switch (weft_state(k)) {
	case WEFT_DELETED:
		return !k->id;
	case WEFT_SUSPENDED:
		return k->id && k->slot && k->leaf &&
		       (k->leaf->flags & WEFT__COPYING || weft_on_stack(k->leaf, (char *)k->link.sp - 1));
	case WEFT_RUNNING:
	case WEFT_FINISHED:
		return k->id && k->slot && k->leaf;
	}
	return false;
}

/* ---- twins ------------------------------------------------------------------------------------------------------ */

weft_request_t weft_ffi_resume(weft_coro_t *k, void *value, weft_handles_t handles)
{
	return weft_resume(k, value, handles);
}

void *weft_ffi_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	return weft_yield(k, effect, payload);
}

void weft_ffi_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	weft_exit(k, effect, payload);
}

void *weft_ffi_switch(weft_coro_t *to, void *value)
{
	return weft_switch(to, value);
}

weft_state_t weft_ffi_state(const weft_coro_t *k)
{
	return weft_state(k);
}
