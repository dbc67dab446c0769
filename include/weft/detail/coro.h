/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/coro.h: the private part of weft/coro.h: the structure of a coroutine, and the functions that compilers
 * inline. weft/coro.h includes it at its end.
 */
#ifndef WEFT_DETAIL_CORO_H
#define WEFT_DETAIL_CORO_H

#include <weft/coro.h>
#include <weft/detail/arch.h>
#include <weft/detail/handler_cache.h>

WEFT_EXTERN_C_BEGIN

/* Flags that may not be used in attributes. */
enum {
	WEFT__COPYING = 1u << 16, /* its frames are moved in and out of a region */
	WEFT__THROUGH = 1u << 17, /* it was suspended from below, and a coroutine inside it is WEFT__COPYING */
	WEFT__ENDING = 1u << 18,  /* it is running deferred calls; `ending` holds the reason */
	WEFT__KEEPING = 1u << 19, /* it has ended, and `ending` holds its last request's payload */
	/* It has the policy "copy", but a region of its own: it is not WEFT__COPYING. */
	WEFT__SECLUDED = 1u << 20,
	WEFT__SLOWLY = 1u << 21,  /* the fast paths to checkpoints are off */
	WEFT__THENS = 1u << 22,	  /* tail clauses left it calls to make with an answer: they are in `thens` */
	WEFT__OWNED = 1u << 23,	  /* its chain is ending, and a coroutine of that chain made it: its owner ends, too */
	WEFT__WATCHED = 1u << 24, /* its stack is checked whenever it is left: see src/stack/caller_memory.c */
	WEFT__HOOKED = WEFT_SAVE_FPU | WEFT_SAVE_EXCEPTIONS | WEFT__WATCHED | WEFT__COPYING,
};

struct weft__slot;

/* Every field is private to the library and to inline functions. */
struct __attribute__((aligned(16))) weft_coro {
	/* Two cache lines: everything that a resume and a suspension access. */
	struct weft_link link;
	uintptr_t group;	/* weft_switch between two coroutines with equal values takes the fast path */
	weft_coro_t *parent;	/* its resumer; unchanged when it suspends, and when it starts over */
	uintptr_t handled;	/* the effects that its resumer handles: see weft_handles_t */
	weft_coro_t *innermost; /* itself, or if it was suspended from below, the coroutine to execute next */
	__extension__ union {
		uint64_t tags; /* if `handled` is WEFT__HANDLES_TAGS: a set of effects that are small numbers */
		void *state;   /* if `handled` is a handler: the state that its clauses get */
	};
	const struct weft__view *view; /* see weft/detail/handler_cache.h; in no union, or any store might alias it */

	struct weft__deferred *deferred; /* calls to make if its frames are left early, innermost first */
	/* Eight bytes: all zero in a coroutine with nothing unusual about it. */
	uint32_t flags;
	uint8_t failure;	/* weft_failure_t */
	uint8_t marks;		/* WEFT__SEEN, WEFT__PASSED, WEFT__APART */
	uint16_t owner_changes; /* how often weft_keep changed its owner */
	uint64_t id;		/* unique in the process, never reused; 0 in an object not in use */
	const char *name;
	struct weft__slot *slot;
	void *user_data;
	/* WEFT_SAVE_…: the coroutine's state while it is suspended, its resumer's while it runs. */
	uint64_t fpu;
	void *caught;
	uint32_t uncaught;
	uint32_t resume_serial;	   /* how many resumptions of it were used up: see src/effect/handler.c */
	void *inner_pc, *outer_pc; /* the real link.pc and link.parent_pc, if saving or copying replaces these */

	/* Only code built with a sanitizer uses these, except `arrays`. */
	void *asan_fake;
	__extension__ union {
		const void *asan_parent_stack;
		uintptr_t arrays; /* for linked stacks, which sanitizers do not support: see src/stack/linked.c */
	};
	__extension__ union {
		size_t asan_parent_size;
		void *tsan_fiber; /* a program has at most one of the two sanitizers */
	};

	uint64_t creator; /* id of the coroutine that made this one, 0 if made outside of any */
	__extension__ union {
		struct weft__ending *ending; /* only if flags have WEFT__ENDING or WEFT__KEEPING */
		struct weft__thens *thens;   /* only if flags have WEFT__THENS; the oldest piece then keeps `ending` */
	};
};

WEFT__OFFSET_IS(struct weft_coro, group, WEFT_CORO_GROUP);
WEFT__OFFSET_IS(struct weft_coro, parent, WEFT_CORO_PARENT);
WEFT__OFFSET_IS(struct weft_coro, handled, WEFT_CORO_HANDLED);
WEFT__OFFSET_IS(struct weft_coro, innermost, WEFT_CORO_INNERMOST);
WEFT__OFFSET_IS(struct weft_coro, tags, WEFT_CORO_TAGS);
WEFT__OFFSET_IS(struct weft_coro, view, WEFT_CORO_VIEW);
WEFT__OFFSET_IS(struct weft_coro, slot, WEFT_CORO_SLOT);
WEFT__OFFSET_IS(struct weft_coro, arrays, WEFT_CORO_ARRAYS);
WEFT__OFFSET_IS(struct weft_coro, flags, WEFT_CORO_FLAGS);
WEFT__OFFSET_IS(struct weft_coro, inner_pc, WEFT_CORO_INNER_PC);
WEFT__OFFSET_IS(struct weft_coro, outer_pc, WEFT_CORO_OUTER_PC);

/* A piece of memory for records of weft_on_answer: functions that tail clauses want called with an answer. The records
 * lie one behind the other. */
struct weft__thens {
	char *top, *end;	   /* the end of the records, and the end of the piece */
	struct weft__thens *below; /* the next older piece */
	size_t bytes;
	struct weft__ending *ending; /* in the oldest piece: the coroutine's `ending` */
};

/* Before its first resume a coroutine keeps its function and the function's argument where registers are saved
 * later. */
WEFT__INLINE void weft__set_argument(weft_coro_t *k, void *argument)
{
	k->link.bx = argument;
}

/* Marks of a coroutine. The first two are explained in weft/detail/handler_cache.h. */
enum {
	WEFT__SEEN = 1,
	WEFT__PASSED = 2,
	WEFT__APART = 4, /* not as weft_create makes them: another kind of stack, or an object outside its slot */
};

enum {
	WEFT__HANDLES_TAGS = WEFT_HANDLES_TAGS, /* for compatibility headers: see `tags` of the coroutine */
	WEFT__HANDLES_TABLE = 4,		/* added to the address of a weft_handler_t */
	WEFT__HANDLES_RUN = 5,			/* added to it if weft_run or weft_continue resumes */
};

/* For compatibility headers, whose effects are numbers from 0 to 63: does k's resumer handle this effect? */
WEFT__INLINE bool weft__handles_tag(const weft_coro_t *k, unsigned number)
{
	if (weft__likely(k->handled == WEFT__HANDLES_TAGS))
		return k->tags >> number & 1;
	return k->handled == ~(uintptr_t)0;
}

/* The key of a numbered effect in the table of weft/detail/handler_cache.h. No effect lies at so low an address. */
WEFT__INLINE const void *weft__key_of_tag(unsigned number)
{
	return (const void *)(uintptr_t)(number + 1);
}

WEFT__INLINE unsigned weft__place_of_tag(unsigned number)
{
	return number % WEFT__FOUND_PLACES;
}

/* The innermost coroutine, starting at the running one, whose resumer handles this effect. NULL: none. */
WEFT_API weft_coro_t *weft__find_tag(unsigned number);

/* Is `address` in the same shared object as `place`? False in the program, which is never unloaded. */
WEFT_API bool weft__is_unloaded_with(const void *place, const void *address);

WEFT__INLINE bool weft__handles_table(uintptr_t handled)
{
	return (handled & 6) == WEFT__HANDLES_TABLE;
}

WEFT__HOT weft_handles_t weft__handles(uintptr_t word)
{
	weft_handles_t handles = {word};

	return handles;
}

/* For functions that many kinds of coroutines share (trampolines): k, which runs, was made to run `function`. The stack
 * layer learns for each function how much stack its coroutines need. */
WEFT_API void weft__stands_for(weft_coro_t *k, const void *function);

/* For weft.hpp: if k is suspended, make the deferred calls of its frames and, with WEFT_UNWIND, unwind them; k is then
 * FINISHED. Room from weft_reserve stays until weft_delete, so that objects which the frames used can be destroyed. */
WEFT_API void weft__end_frames(weft_coro_t *k);

/* Has k been resumed since it was made or reset? `parent` may be older than that. */
WEFT__INLINE bool weft__was_resumed(const weft_coro_t *k)
{
	return k->link.parent_pc != NULL;
}

/* ---- inspecting a coroutine -------------------------------------------------------------------------------------- */

WEFT__INLINE weft_state_t weft_state(const weft_coro_t *k)
{
	uintptr_t pc = (uintptr_t)k->link.pc;

	if (pc == (uintptr_t)weft__in_running)
		return WEFT_RUNNING;
	if (pc == (uintptr_t)weft__in_finished)
		return WEFT_FINISHED;
	return pc == (uintptr_t)weft__in_deleted || !pc ? WEFT_DELETED : WEFT_SUSPENDED;
}

WEFT__INLINE uint64_t weft_id(const weft_coro_t *k)
{
	return k->id;
}

WEFT__INLINE void *weft_user_data(const weft_coro_t *k)
{
	return k->user_data;
}

WEFT__INLINE void weft_set_user_data(weft_coro_t *k, void *user_data)
{
	k->user_data = user_data;
}

WEFT__INLINE weft_failure_t weft_failure(const weft_coro_t *k)
{
	return (weft_failure_t)k->failure;
}

WEFT__INLINE weft_ref_t weft_ref(weft_coro_t *k)
{
	weft_ref_t ref = {k, k->id};

	return ref;
}

WEFT__INLINE weft_coro_t *weft_deref(weft_ref_t ref)
{
	return weft__likely(ref.k && ref.k->id == ref.id) ? ref.k : NULL;
}

/* ---- switching --------------------------------------------------------------------------------------------------- */

WEFT_API weft_coro_t *weft__attach_thread(void);
/* Make the per-thread data that stacks need to grow, if the calling thread has none. False: no memory. */
WEFT_API bool weft__prepare_thread(void);
/* The values passed to weft__prepare_switch, returned in registers, so that the caller need not save them. */
struct weft__switch {
	weft_coro_t *to;
	void *value;
};
WEFT_API struct weft__switch weft__prepare_switch(weft_coro_t *to, void *value);
WEFT_API WEFT__NORETURN void weft__leave_to(weft_coro_t *k, const void *effect, void *payload);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_not_ancestor(const weft_coro_t *k);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_no_coroutine(const char *what);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_null(const char *what);
/* Writes "weft: ", the three texts and a newline to standard error, then calls abort(). Needs no stack. */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_saying(const char *what, const char *more, const char *why);
WEFT_API WEFT__COLD void weft__owner_report_null(void); /* writes a line about weft_resume(NULL) */
/* `self` is NULL, or its view is bound. Returns if it may be suspended nevertheless, else reports and ends the
 * process. */
WEFT_API WEFT__COLD void weft__check_bound(const weft_coro_t *self, const char *what);
/* For debug builds: returns if `self` may suspend k, else reports. */
WEFT_API WEFT__COLD void weft__check_yield(const weft_coro_t *k, const weft_coro_t *self);
/* `self` is not the current coroutine, or is bound. Returns if it may be suspended nevertheless, else reports. */
WEFT_API WEFT__COLD void weft__check_self(const weft_coro_t *self);
WEFT_API void *weft__yield_through(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__rethrow(void *exception);
/* Prepare `k`, which the very next call resumes: the call in which `k` waits then calls throws(argument), which does
 * not return. */
typedef void weft__thrower_t(void *argument);
WEFT_API void weft__throw_into(weft_coro_t *k, weft__thrower_t *throws, void *argument);
WEFT_API bool weft__is_ancestor(const weft_coro_t *k, const weft_coro_t *of);
/* Bits of weft__unusual, which is atomic. A suspension of an ancestor needs extra checks once there has been a
 * coroutine whose frames are copied, or an effect with several addresses. */
enum { WEFT__COPYING_USED = 1, WEFT__EFFECTS_DOUBLED = 2 };
extern WEFT_API unsigned char weft__unusual;
/* For sanitizers. k is suspended. True if it has not run since it was made or reset: its stack has no frames. */
WEFT_API bool weft__is_fresh(const weft_coro_t *k);

/* Make k the thread's current coroutine, with its limit. The thread executes k's code already, or very soon. */
WEFT__INLINE void weft__become(weft_coro_t *k)
{
	weft__set_self(k);
	weft__set_limit(k->link.limit);
}

#if WEFT__SANITIZED
WEFT_EXTERN_C_END
#include <weft/detail/sanitizer.h>
WEFT_EXTERN_C_BEGIN
#else
#define weft__run_hooked weft_arch_run
#define weft__transfer_hooked weft_arch_transfer
#endif

/* The effect of a request that ends a coroutine because an exception left it uncaught, or because an outer coroutine is
 * being ended (src/coro/ends.c). Not an address, because comparing with a constant is cheaper. */
#define WEFT__THROWN ((const struct weft_effect *)-16)

/* `self` is about to resume `k`, whose last resumer was not `self`. */
WEFT__INLINE void weft__adopt(weft_coro_t *self, weft_coro_t *k)
{
	if (weft__unlikely(k->parent || k->marks & WEFT__PASSED)) {
		if (WEFT_NO_CANARY(adopting_forgets_nothing))
			weft__forget_found();
		if (!k->parent && weft__only_table())
			k->marks &= (uint8_t)~WEFT__PASSED;
	}
	if (weft__unlikely(!k->innermost)) /* all zero, never made: the misuse is reported when k is entered */
		k->innermost = k;
	k->parent = self;
	self->marks |= WEFT__PASSED;
}

/* `k` is about to be resumed with another set than the last time, which was a table. Mark the tail clauses of that
 * table in which `k`, or a coroutine inside it, waits. */
WEFT_API void weft__move_clauses(weft_coro_t *k, uintptr_t handled);

/* `k` is about to be resumed with another set than the last time. */
WEFT__INLINE void weft__rehandle(weft_coro_t *k, uintptr_t handled)
{
	if (weft__unlikely(k->marks & WEFT__SEEN) && WEFT_NO_CANARY(another_set_forgets_nothing))
		weft__forget_found();
	/* Without this, compilers reuse the value that was compared, and reserve a register for it on the usual
	 * path. */
	__asm__("" : "+r"(k));
	if (weft__unlikely(weft__handles_table(k->handled)) &&
	    weft__unlikely(k->innermost != k || weft__masked(k->view)))
		weft__move_clauses(k, handled);

	k->handled = handled;
}

/* Like weft__rehandle, for compatibility headers. Their sets are in `tags`; the word in `handled` may stay the same. */
WEFT__INLINE void weft__retag(weft_coro_t *k, uint64_t tags)
{
	if (weft__likely(k->tags == tags))
		return;
	if (weft__unlikely(k->marks & WEFT__SEEN) && WEFT_NO_CANARY(a_new_set_forgets_nothing))
		weft__forget_found();
	k->tags = tags;
}

/*
 * Called when weft__enter returned false, and has changed nothing. Does the work of weft__enter except its last step:
 * to make the innermost coroutine current. The caller does that step, because a function on linked stacks returns by
 * the current coroutine and its limit. This is a separate function, because otherwise compilers keep values in
 * registers for it, and inline fewer functions that resume.
 */
__attribute__((unused, cold, noinline)) static void weft__enter_anew(weft_coro_t *k, uintptr_t handled)
{
	weft_coro_t *self = weft__self();

	/* If compilers know that the coroutine is NULL, they emit a trap at an address of their own. */
	__asm__("" : "+r"(k));
	/* In the resume itself the library recognizes the fault by the code around it and the field that is read. This
	 * code reads another field; otherwise the library would report the fault a second time. */
	if (weft__unlikely(!k)) {
		weft__owner_report_null();
		__asm__("" : "+r"(k));
		(void)*(const volatile uint64_t *)&k->id;
	}
	if (!self)
		self = weft__attach_thread();
	if (k->parent != self)
		weft__adopt(self, k);
	if (k->handled != handled)
		weft__rehandle(k, handled);
	if (weft__masked(self->view) && WEFT_NO_CANARY(resuming_in_a_clause_forgets_nothing))
		weft__forget_found();
	if (WEFT_NO_CANARY(resumed_coroutine_stays_in_its_group))
		k->group = (uintptr_t)k;
}

/* Resume *k. weft__enter has succeeded for it, or weft__enter_anew has done the work. */
WEFT__INLINE weft_request_t weft__resume_entered(weft_coro_t **k, void *value)
{
	struct weft_link *link = &(*k)->link;
	weft_request_t request = weft__run_hooked(&link, value);

	*k = (weft_coro_t *)link;
	return request;
}

/* Resume *k. On return *k is the coroutine that suspended: not the one resumed, if that switched sideways meanwhile. */
WEFT__INLINE weft_request_t weft__resume_caught(weft_coro_t **k, void *value, uintptr_t handled)
{
	if (weft__unlikely(!weft__enter(&(*k)->link, handled))) {
		weft__enter_anew(*k, handled);
		weft__set_self((*k)->innermost);
	}
	return weft__resume_entered(k, value);
}

/* Like weft__resume_caught. If an exception left the coroutine, rethrows it. If an outer coroutine is being ended,
 * unwinding continues here. */
WEFT__INLINE weft_request_t weft__resume(weft_coro_t **k, void *value, uintptr_t handled)
{
	weft_request_t request = weft__resume_caught(k, value, handled);

	if (weft__unlikely(request.effect == WEFT__THROWN))
		weft__rethrow(request.payload);
	return request;
}

/* Like weft__resume, with the state of a handler. weft__enter comes first, because it notices that *k is NULL. */
WEFT__INLINE weft_request_t weft__resume_stateful(weft_coro_t **k, void *value, uintptr_t handled, void *state)
{
	weft_request_t request;

	if (weft__unlikely(!weft__enter(&(*k)->link, handled))) {
		weft__enter_anew(*k, handled);
		weft__set_self((*k)->innermost);
	}
	(*k)->state = state;
	request = weft__resume_entered(k, value);
	if (weft__unlikely(request.effect == WEFT__THROWN))
		weft__rethrow(request.payload);
	return request;
}

/* Record which coroutine executes when k, about to be suspended, is resumed. The value seldom changes, and the resume
 * does not have to wait for a store that was not made. */
WEFT__INLINE void weft__suspend_by(weft_coro_t *k, weft_coro_t *self)
{
	if (weft__unlikely(k->innermost != self))
		k->innermost = self;
}

/* Suspend k from `self`, which is k or below it. */
WEFT__INLINE void *weft__yield(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	if (weft__likely(weft__is_self(k, self))) {
		weft__suspend_by(self, self);
		return weft_arch_yield(&self->link, effect, payload);
	}
	return weft__yield_through(k, self, effect, payload);
}

/*
 * Like weft__yield, for performs. There k is often a coroutine above `self`, and the search that found k has checked
 * that no frames need moving. Other code reads `innermost` to learn which coroutine executes next; the suspended frame
 * itself knows that.
 */
WEFT__INLINE void *weft__yield_near(weft_coro_t *k, weft_coro_t *self, const void *effect, void *payload)
{
	weft__suspend_by(k, self);
	return weft_arch_yield(&k->link, effect, payload);
}

/* A search that has reached k continues at the result: if k executes a tail clause, outside the clause's handler. */
WEFT__INLINE weft_coro_t *weft__unmasked(weft_coro_t *k)
{
	while (weft__unlikely(weft__masked(k->view)))
		k = WEFT_CANARY_OR(clause_sees_its_own_handler, weft__owner_of(k->view),
				   weft__owner_of(k->view)->parent);
	return k;
}

WEFT__HOT weft_request_t weft_resume(weft_coro_t *k, void *value, weft_handles_t handles)
{
#if WEFT_DEBUG
	if (weft__unlikely(!k))
		weft__die_null("weft_resume");
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_resume(k, value, handles);
#else
	return weft__resume(&k, value, handles.word);
#endif
}

WEFT__HOT weft_request_t weft_resume_any(weft_coro_t **k, void *value, weft_handles_t handles)
{
	return weft__resume(k, value, handles.word);
}

WEFT__HOT void *weft_yield(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
#if WEFT_DEBUG
	weft__check_yield(k, weft__self());
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_yield(k, effect, payload);
#else
	return weft__yield(k, weft__self(), effect, payload);
#endif
}

WEFT__HOT void *weft_suspend(void *payload)
{
#if WEFT__CALLS_TWINS
	return weft_ffi_suspend(payload);
#else
	weft_coro_t *self = weft__self();

	if (weft__unlikely(!self || weft__is_bound(self->view)))
		weft__check_bound(self, "weft_suspend");
	return weft__yield_near(self, self, &weft_suspended, payload);
#endif
}

WEFT__HOT WEFT__NORETURN void weft_exit(weft_coro_t *k, const struct weft_effect *effect, void *payload)
{
	weft__leave_to(k, effect, payload);
}

/* `*self` is the current coroutine, before and after. `simple`: it may be suspended. */
WEFT__INLINE void *weft__switch_by(weft_coro_t **self, weft_coro_t *to, void *value, bool simple)
{
	weft_coro_t *from = *self;
	struct weft_link *link;
	struct weft__switch same;

	/* Coroutines that switch to each other have the same parent, suspended in one place, and the same handled set.
	 * Once these have been handed on, the coroutines are a group. A resume takes its coroutine out of its group. */
	if (weft__likely(simple) && weft__likely(from->group == to->group)) {
		weft__become(to);
	} else {
		same = weft__prepare_switch(to, value);
		from = weft__self();
		to = same.to;
		value = same.value;
		weft__become(to->innermost);
	}
	link = &to->link;
	value = weft__transfer_hooked(&from->link, &link, value);
	*self = (weft_coro_t *)link;
	return value;
}

WEFT__HOT void *weft_switch(weft_coro_t *to, void *value)
{
#if WEFT_DEBUG
	if (weft__unlikely(!to))
		weft__die_null("weft_switch");
#endif
#if WEFT__CALLS_TWINS
	return weft_ffi_switch(to, value);
#else
	weft_coro_t *self = weft__self();

	return weft__switch_by(&self, to, value, weft__likely(self) && weft__likely(!weft__is_bound(self->view)));
#endif
}

WEFT__HOT void *weft_switch_from(weft_coro_t **self, weft_coro_t *to, void *value)
{
#if WEFT_DEBUG
	if (weft__unlikely(!to))
		weft__die_null("weft_switch_from");
	if (*self && weft__unlikely(*self != weft__self() || weft__is_bound((*self)->view)))
		weft__check_self(*self);
#endif
	return weft__switch_by(self, to, value, weft__likely(*self));
}

WEFT_EXTERN_C_END

#endif /* WEFT_DETAIL_CORO_H */
