/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends of coroutines other than by returning, when cleanups must be called first: the functions that weft_defer put on
 * their lists, and, with WEFT_UNWIND, destructors.
 *
 * Design
 *  1. Each coroutine of a chain calls its own cleanups, on its own stack, in its current frame: where it resumed the
 *     next coroutine, or where it is suspended. So the cleanups see the handlers and parents that the frame always saw.
 *     The innermost coroutine begins, then leaves to its resumer with a request that announces the end; weft__rethrow
 *     continues the end in the resumer, as it does exceptions, so that a resume needs no further check.
 *  2. A suspended coroutine has no code left to execute that could notice the end. Its landing pad has a twin,
 *     WEFT_LEFT_BYTES before it, that calls weft__end_here in the same frame: to delete the coroutine is to resume it
 *     there. So a resume does everything that a resume must do (frames copied in, floating-point state, limits).
 *  3. The same landing pad serves weft_continue_throw and weft_resume_throw: weft__end_here then calls a function that
 *     performs or throws an exception, and so leaves the suspended frame.
 *  4. The state of an end, struct weft__ending, is in the frame of the function that deletes. When a coroutine leaves,
 *     the state is on the heap, with the request's arguments, if the frames or coroutines that leave may be gone before
 *     the request arrives.
 * If there are no cleanups, none of this happens: coro.c checks the lists and flags only.
 */
#define WEFT__PART_ENDS
#include "coro/ends.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <weft/defer.h>

#include "coro/copying.h"

/* ---- storage ---------------------------------------------------------------------------------------------------- */

/* Used when there is no memory: this many ends may be in progress then, nested or suspended in a cleanup. A further end
 * makes its target fail. They are in the reserve, which exists from the first coroutine on. */
enum { SPARES = WEFT__SPARE_ENDS, IN_A_WORD = 64 };
struct spares {
	struct weft__ending ending[SPARES];
	_Atomic uint64_t used[SPARES / IN_A_WORD];
};
_Static_assert(sizeof(struct spares) <= WEFT__OWNER_RESERVE, "the reserve has room");

/* Take a free place in the word; -1 if there is none. */
static int take_place(_Atomic uint64_t *word)
{
	uint64_t used = atomic_load(word);

	while (~used)
		if (atomic_compare_exchange_weak(word, &used, used | (used + 1)))
			return __builtin_ctzll(~used);
	return -1;
}

static struct weft__ending *take_spare(void)
{
	struct spares *spares = weft__owner_reserve();
	struct weft__ending *e;
	int place;

	for (size_t i = 0; i < SPARES / IN_A_WORD; i++) {
		place = take_place(&spares->used[i]);
		if (place < 0)
			continue;
		e = &spares->ending[i * IN_A_WORD + (size_t)place];
		e->storage = WEFT__ENDING_SPARE;
		return e;
	}
	return NULL;
}

static void give(struct weft__ending *e)
{
	struct spares *spares;
	size_t i;

	if (e->storage == WEFT__ENDING_SPARE) {
		spares = weft__owner_reserve();
		i = (size_t)(e - spares->ending);
		atomic_fetch_and(&spares->used[i / IN_A_WORD], ~((uint64_t)1 << i % IN_A_WORD));
	} else if (e->storage == WEFT__ENDING_ALLOCATED) {
		free(e);
	}
}

void weft__give_payload(weft_coro_t *k)
{
	k->flags &= ~(uint32_t)WEFT__KEEPING;
	give(k->ending);
}

void weft__forget_ending(weft_coro_t *c)
{
	c->flags &= ~(uint32_t)WEFT__ENDING;
	weft__superseded(c->ending);
	give(c->ending);
}

/* Present if the program is built with ThreadSanitizer. */
void *__tsan_get_current_fiber(void) __attribute__((weak));
/* Present if the program is built with AddressSanitizer, which may keep variables in a fake stack: heap memory that is
 * part of a coroutine as its stack is. */
void __sanitizer_start_switch_fiber(void **keep, const void *low, size_t bytes) __attribute__((weak));
void *__asan_get_current_fake_stack(void) __attribute__((weak));
void *__asan_addr_is_in_fake_stack(void *fake, void *address, void **begin, void **end) __attribute__((weak));

enum { UNKNOWN_BYTES = 512 };

/* The end of the variable in c's fake stack that holds `payload`; NULL if no such variable does. */
static WEFT__COLD const char *end_of_fake(const weft_coro_t *c, const weft_coro_t *self, const char *payload)
{
	void *fake = c == self ? __asan_get_current_fake_stack() : c->asan_fake, *begin, *end;

	return fake && __asan_addr_is_in_fake_stack(fake, (void *)(uintptr_t)payload, &begin, &end) ? end : NULL;
}

/* The bytes of the payload on the stack of c; at most `size`. */
static size_t bytes_on(const weft_coro_t *c, const weft_coro_t *self, const char *payload, size_t size)
{
	const char *end;

	if (weft_on_stack(c, payload)) {
		while (size && !weft_on_stack(c, payload + size - 1))
			size--;
		return size;
	}
	if (weft__likely(!__asan_get_current_fake_stack))
		return 0;
	end = end_of_fake(c, self, payload);
	if (end && size > (size_t)(end - payload))
		size = (size_t)(end - payload);
	return end ? size : 0;
}

/* The bytes of the payload on a stack that will be left; at most UNKNOWN_BYTES if its size is unknown. */
static size_t bytes_at_risk(const weft_coro_t *k, const weft_coro_t *self, const struct weft_effect *effect,
			    const char *payload)
{
	size_t size = weft__effect_size(effect), lost;

	if (!size)
		size = UNKNOWN_BYTES;
	for (const weft_coro_t *c = self;; c = c->parent) {
		lost = bytes_on(c, self, payload, size);
		if (lost || c == k)
			return lost;
	}
}

/* Copy without checks by sanitizers. The loop must not become a memcpy, which they check. */
static WEFT__COLD __attribute__((no_sanitize_address, no_sanitize("thread"))) void copy_unseen(char *to,
											       const char *from,
											       size_t bytes)
{
	for (; bytes--; to++, from++) {
		*to = *from;
		__asm__ volatile("" : : : "memory");
	}
}

/* A payload of unknown size may end before these bytes do: sanitizers report reads of the bytes behind it. */
static void *keep(struct weft__ending *e, const struct weft_effect *effect, const void *payload, size_t bytes)
{
	if (weft__unlikely(__asan_get_current_fake_stack || __tsan_get_current_fiber) && !weft__effect_size(effect))
		copy_unseen(e->kept, payload, bytes);
	else
		memcpy(e->kept, payload, bytes);
	return e->kept;
}

static struct weft__ending *allocate(size_t kept)
{
	struct weft__ending *e = malloc(sizeof *e + kept);

	if (!e)
		return NULL;
	e->storage = WEFT__ENDING_ALLOCATED;
	e->keeps = kept != 0;
	return e;
}

/* Make an end that outlives the frame which requests it. */
static struct weft__ending *make(weft_coro_t *k, weft_coro_t *self, const struct weft_effect *effect, void *payload)
{
	size_t size = bytes_at_risk(k, self, effect, payload);
	struct weft__ending *e = allocate(size);

	if (weft__likely(e)) {
		if (size)
			payload = keep(e, effect, payload, size);
	} else {
		e = take_spare();
		if (!e)
			return NULL;
		e->keeps = false;
		if (size) {
			k->failure = WEFT_MEMORY_SPENT;
			effect = &weft_failed;
			payload = k;
		}
	}
	e->effect = effect;
	e->payload = payload;
	return e;
}

/* ---- one coroutine ---------------------------------------------------------------------------------------------- */

/* The coroutine was already in an end, and now starts a different one: one of its cleanups does not return. */
static void supersede(weft_coro_t *self, struct weft__ending *e)
{
	struct weft__ending *old = self->ending;

	if (old->deletes && old->target == e->target)
		weft__die_ending(self, "cannot end",
				 ": something deferred in it left it, which is being deleted already", NULL,
				 "; return from there instead");
	if (old->target != e->target && !weft__is_ancestor(e->target, old->target))
		weft__die_ending(self, "cannot stop",
				 " from ending: something deferred in it left for a handler further in", NULL,
				 "; handle that effect inside of what is deferred");
	weft__hand_on_orphans(old, &e->orphans, e->target);
	weft__forget_ending(self);
}

/*
 * `end` is about to continue in the coroutine `in`, which does not know yet: `in` is being resumed for that, or its
 * resume is about to return. `end` is NULL if there is none. `throws` is a pending throw, NULL if there is none. Then
 * `k` is about to be resumed at `moved`, which its word at `pad` holds.
 */
static __thread struct {
	struct weft__ending *end;
	const weft_coro_t *in;
	weft__thrower_t *throws;
	void *argument;
	const weft_coro_t *k;
	void **pad, *moved;
} coming __attribute__((tls_model("initial-exec")));

static void comes(struct weft__ending *e, const weft_coro_t *in)
{
	coming.in = in;
	coming.end = e;
}

struct weft__ending *weft__ending_of(const weft_coro_t *k)
{
	const struct weft__thens *t;

	if (!(k->flags & WEFT__ENDING)) /* under "copy", k may fail before `in` is resumed */
		return coming.end && (coming.in == k || coming.end->target == k) ? coming.end : NULL;
	if (!(k->flags & WEFT__THENS))
		return k->ending;
	for (t = k->thens; t->below; t = t->below)
		;
	return t->ending;
}

static WEFT__LEAVES_STACK _Noreturn void finish(weft_coro_t *self, struct weft__ending *e)
{
	weft__drop_thens(self, NULL);
	if (weft__unlikely(self->flags & WEFT__ENDING))
		supersede(self, e);
	self->flags |= WEFT__ENDING;
	self->ending = e;
	coming.end = NULL;
	e->in_flight = false;
	if (self->flags & WEFT_UNWIND)
		weft__unwind(self, e);
	weft__ended(self, e);
}

WEFT__LEAVES_STACK void weft__ended(weft_coro_t *self, struct weft__ending *e)
{
	const struct weft_effect *effect = WEFT__THROWN;
	void *payload = (char *)e + 1;

	weft__unwound(e);
	while (weft__deferred_of(self->deferred))
		weft__call_first(self);
	self->deferred = NULL;
	self->flags &= ~(uint32_t)(WEFT__ENDING | WEFT__THROUGH);
	self->innermost = self;
	if (self != e->target) {
		e->last = self;
		comes(e, self->parent);
	} else {
		weft__adopt_orphans(self, e->orphans);
		if (!e->deletes) {
			effect = e->effect;
			payload = e->payload;
			if (e->keeps) {
				self->flags |= WEFT__KEEPING;
				self->ending = e;
			} else {
				give(e);
			}
		}
	}
	weft__leave(self, effect, payload);
}

WEFT__LEAVES_STACK void weft__give_up_ending(weft_coro_t *k, struct weft__ending *e, weft_coro_t *orphans,
					     weft_coro_t *bodies)
{
	weft_coro_t *up;

	coming.end = NULL;
	weft__note_owned(e->target, weft__self());
	weft__abandon_inside(k, weft__self(), &e->orphans, e->target);
	for (; orphans != e->target; orphans = up) {
		up = orphans->parent;
		weft__orphan(orphans, &e->orphans, e->target);
	}
	weft__keep_bodies(bodies, &e->orphans, e->target);
	k->deferred = NULL;
	weft__ended(k, e);
}

WEFT__LEAVES_STACK void weft__end_next(void *thrown)
{
	struct weft__ending *e = (struct weft__ending *)((char *)thrown - 1);
	weft_coro_t *last = e->last;

	if (last && weft__take_owned(last))
		weft__orphan(last, &e->orphans, e->target);
	finish(weft__self(), e);
}

/* Called in the resumer of a coroutine that was left by an exception or by an end. */
void weft__rethrow(void *exception)
{
	weft__raise(exception);
}

/* ---- leaving ---------------------------------------------------------------------------------------------------- */

/* True if the frames and the coroutine that leave k stay until the request arrives. */
static bool outlives(const weft_coro_t *k, const weft_coro_t *self)
{
	return self == k && !(self->flags & WEFT_UNWIND);
}

static WEFT__LEAVES_STACK _Noreturn void leave(weft_coro_t *k, weft_coro_t *self, struct weft__ending *e)
{
	e->target = k;
	e->deletes = false;
	e->last = NULL;
	e->orphans = k;
	weft__note_owned(k, self);
	finish(self, e);
}

WEFT__LEAVES_STACK void weft__end_up_to(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	struct weft__ending here, *e = &here;

	if (outlives(k, self)) { /* the state can stay in this frame */
		e->storage = WEFT__ENDING_IN_FRAME;
		e->keeps = false;
		e->effect = effect;
		e->payload = payload;
	} else {
		e = make(k, self, effect, payload);
		if (!e) { /* the cleanups are skipped */
			k->failure = WEFT_MEMORY_SPENT;
			weft__owner_fail(k);
		}
	}
	leave(k, self, e);
}

WEFT__LEAVES_STACK void weft__leave_to(weft_coro_t *k, const void *effect, void *payload)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(weft__leaves_something(k, self)))
		weft__end_up_to(k, self, effect, payload);
	weft__abandon(k, self);
	weft__leave(k, effect, payload);
}

/* ---- deleting --------------------------------------------------------------------------------------------------- */

static WEFT__LEAVES_STACK _Noreturn void throw_here(weft__thrower_t *throws)
{
	coming.throws = NULL;
	weft__become(WEFT_CANARY(exception_arrives_further_out) ? (weft_coro_t *)coming.k : coming.k->innermost);
	throws(coming.argument);
	__builtin_unreachable();
}

/* The first call in the suspended frame, at the twin of the landing pad. */
WEFT__LEAVES_STACK void weft__end_where_it_waits(void)
{
	struct weft__ending *e = coming.end;
	weft_coro_t *self;

	if (coming.throws)
		throw_here(coming.throws);
	self = e->target->innermost;
	weft__become(self);
	finish(self, e);
}

/* The work of a resume before and after the switch, in code built with a sanitizer: see weft/detail/sanitizer.h. */
#if !WEFT__SANITIZED
void __sanitizer_finish_switch_fiber(void *fake, const void **low, size_t *bytes) __attribute__((weak));
void __tsan_switch_to_fiber(void *fiber, unsigned flags) __attribute__((weak));
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

struct announced {
	const void *low;
	size_t bytes;
	void *fiber;
};

enum { WITHOUT_ORDER = 1 };

static WEFT__COLD void switch_fiber(void *fiber, struct announced *mine)
{
	__tsan_release(mine);
	__tsan_switch_to_fiber(fiber, WITHOUT_ORDER);
	__tsan_acquire(mine);
}

static inline void announce(const weft_coro_t *k, struct announced *mine)
{
	weft_coro_t *self = weft__self(), *next = k->innermost;
	size_t bytes = weft_stack_usable(next);

	if (weft__unlikely(__sanitizer_start_switch_fiber != NULL)) {
		__sanitizer_start_switch_fiber(&self->asan_fake, (const char *)next->slot - bytes, bytes);
		__sanitizer_finish_switch_fiber(next->asan_fake, &mine->low, &mine->bytes);
		next->asan_fake = NULL;
	}
	if (weft__unlikely(__tsan_get_current_fiber != NULL)) {
		mine->fiber = __tsan_get_current_fiber();
		if (next->tsan_fiber)
			switch_fiber(next->tsan_fiber, mine);
	}
}

static inline void announce_back(weft_coro_t *last, weft_coro_t *self, struct announced *mine)
{
	const void *low;
	size_t bytes;

	if (weft__unlikely(__sanitizer_start_switch_fiber != NULL)) {
		__sanitizer_start_switch_fiber(&last->asan_fake, mine->low, mine->bytes);
		__sanitizer_finish_switch_fiber(self->asan_fake, &low, &bytes);
		self->asan_fake = NULL;
	}
	if (weft__unlikely(__tsan_get_current_fiber != NULL))
		switch_fiber(mine->fiber, mine);
}
#else
struct announced {
	char none;
};
#define announce(k, mine) ((void)(mine))
#define announce_back(last, self, mine) ((void)(last), (void)(self), (void)(mine))
#endif

static void **landing_pad_of(weft_coro_t *k)
{
	if (k->link.pc == (void *)weft__land_copying || k->link.pc == (void *)weft__land_parked ||
	    k->link.pc == (void *)weft__land_saving)
		return &k->inner_pc;
	return &k->link.pc;
}

/* Does nothing if k cannot be resumed: the resume reports that. */
void weft__throw_into(weft_coro_t *k, weft__thrower_t *throws, void *argument)
{
	if (!k)
		weft__die_null("weft_resume_throw");
	if (weft_state(k) != WEFT_SUSPENDED)
		return;
	if (!weft__has_started(k))
		weft__die_ending(k, "cannot throw into", ": it has not begun, and waits nowhere yet", NULL,
				 "; resume it first, or delete it");
	coming.k = k;
	coming.argument = argument;
	coming.pad = landing_pad_of(k);
	coming.moved = (char *)*coming.pad - WEFT_LEFT_BYTES;
	/* A signal that the resumer's stack is full may arrive between any two instructions. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	coming.throws = throws;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	*coming.pad = coming.moved;
}

void weft__throw_no_more(void)
{
	if (!coming.throws)
		return;
	coming.throws = NULL;
	if (*coming.pad == coming.moved)
		*coming.pad = (char *)coming.moved + WEFT_LEFT_BYTES;
}

static WEFT__LEAVES_STACK weft_request_t resume_to_end(weft_coro_t **k)
{
	weft_coro_t *self = weft__self();
	struct announced mine;
	weft_request_t request;
	void **pad = landing_pad_of(*k);

	if (!self)
		self = weft__attach_thread();
	*pad = (char *)*pad - WEFT_LEFT_BYTES;
	announce(*k, &mine);
	request = weft__resume_caught(k, NULL, 0);
	announce_back(*k, self, &mine);
	return request;
}

void *weft__end_suspended(weft_coro_t *k)
{
	struct weft__ending e = {.target = k, .orphans = k, .storage = WEFT__ENDING_IN_FRAME, .deletes = true}, *other;
	weft_coro_t *from = k;
	weft_request_t request;

	weft__note_owned(k, k->innermost);
	comes(&e, k->innermost);
	request = resume_to_end(&from);
	coming.end = NULL;
	if (request.effect != WEFT__THROWN)
		weft__die_ending(k, "cannot end", ": something deferred in it suspended it, to who is deleting it:",
				 request.effect ? request.effect : &weft_suspended,
				 "; it must come to its end, or be handled around weft_delete");
	if (request.payload == (char *)&e + 1)
		return NULL;
	if (weft__is_ending(request.payload)) { /* a cleanup left for an outer coroutine: k ended as part of that end */
		other = (struct weft__ending *)((char *)request.payload - 1);
		other->last = NULL;
		comes(other, weft__self());
	}
	return request.payload;
}
