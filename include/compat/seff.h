/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * seff.h: the interface of libseff (effect handlers by coroutines, OOPSLA 2024) on top of Weft's. Programs written for
 * it compile unchanged, with gcc and clang, as C and as C++, and run on any stack policy.
 *
 * Design
 *  1. Macros and inline functions only; the one object, the table of default handlers, is weak and merged by the
 *     linker, as effects are.
 *  2. Effects keep their numbers 0…63, which the core handles as the bits of `tags`. Inside, effect n is the pointer
 *     n + 1, because NULL means "returned"; back outside, subtracting 1 makes that the all-ones number.
 *  3. ~0 catches effects of weft/effect.h too (their number is then their address - 1); 0 catches none. A search begins
 *     where a search of weft/effect.h does: in a tail clause of weft/handler.h, outside of its handler.
 *  4. The result of a search is cached, as for effects of weft/effect.h (weft/detail/handler_cache.h): a perform costs
 *     the same under any number of handlers of other effects. A resume with a set that differs from the last set
 *     forgets it.
 *  5. Sizes of stacks are hints: real code fits, whatever a program asks for. If stacks can be tiny and grow, a
 *     stack of at most 1 KiB begins tiny; a stack without a size begins tiny, with room for a few calls.
 *  6. PERFORM is inlined, so under gcc a recursive function that performs saves every register at each level.
 *     Rejected: a call of a function that performs. libseff's product_early then took 0.8 of the time with gcc, but
 *     resume_nontail 2.6 times as long, and countdown, iterator and parsing_dollars 1.2 times.
 *  7. seff_yield is inlined, too, except in code that is compiled for linked stacks (WEFT_SMALL_FRAMES): there it is a
 *     call, 1.3 ns, so that frames stay small. Without it libseff's memory_bench with 16
 *     calls takes 80 bytes a call and 6.4 KB a coroutine, with it 5 and 1.3 KB: compilers inline the recursion then.
 *
 * Differences that are improvements: effects 31…63 work; an unhandled effect, resuming a finished coroutine and running
 * out of stack are reported in one line; coroutines abandoned inside another are reclaimed with it; initialising an
 * object anew releases its resources; running out of memory is an error (NULL or false, and errno), not an exit.
 * A coroutine whose stack cannot grow (policy commit) ends the process with a line, as an overflow does elsewhere:
 * programs of this kind ask for no such request, and would resume it for ever.
 *
 * Thread-safety and signal handlers as in weft/coro.h. Source of the interface: libseff; none of its code.
 */
#ifndef SEFF_H
#define SEFF_H

/* Programs rely on these coming along. */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "seff_types.h"

WEFT_EXTERN_C_BEGIN

/* Through void *: the core asks for its own alignment, and does not need it. */
WEFT__INLINE weft_coro_t *seff__core(seff_coroutine_t *k)
{
	return (weft_coro_t *)(void *)k;
}

WEFT__INLINE seff_coroutine_t *seff__of(weft_coro_t *k)
{
	return (seff_coroutine_t *)(void *)k;
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

/* Bytes a program asks for are bytes it wants to use: add guard and object; tiny numbers mean "as little as works".
 * Where stacks can be tiny and grow, they need no more than that. */
WEFT__HELPER weft_attr_t seff__attr(size_t size)
{
	weft_attr_t attr = {NULL, WEFT_DEFAULT_POLICY, 0, 0, NULL, 0, NULL, 0};

	attr.stack_size = weft__size_if_tiny(size);
	if (size && !attr.stack_size)
		attr.stack_size = size <= 16 * 1024 ? 64 * 1024 : size + 8 * 1024;
	return attr;
}

/* The function and the argument for a restart are in words that only coroutines with WEFT_SAVE_… flags use. */
WEFT__INLINE void seff__made(seff_coroutine_t *k, seff_start_fun_t *fn, void *arg)
{
	weft_coro_t *coro = seff__core(k);

	coro->fpu = (uintptr_t)fn;
	coro->caught = arg;
	k->state = PAUSED;
}

/* Not inlined: the attributes would enlarge the frame of each function that creates, and a recursion of coroutines that
 * create touches one more cache line per level, or needs a second chunk. */
#define SEFF__APART __attribute__((unused, noinline)) static

/** A coroutine on the heap; NULL and errno if that fails. `size` is a hint, in bytes; 0: the policy's default. */
SEFF__APART seff_coroutine_t *seff_coroutine_new_sized(seff_start_fun_t *fn, void *arg, size_t size)
{
	weft_attr_t attr = seff__attr(size);
	seff_coroutine_t *k = seff__of(weft_create_with(fn, arg, &attr));

	if (k)
		seff__made(k, fn, arg);
	return k;
}

WEFT__HELPER seff_coroutine_t *seff_coroutine_new(seff_start_fun_t *fn, void *arg)
{
	return seff_coroutine_new_sized(fn, arg, 0);
}

/** Frees object and stack; not while the coroutine runs. */
WEFT__HELPER void seff_coroutine_delete(seff_coroutine_t *k)
{
	weft_delete(seff__core(k));
}

/** A coroutine in the caller's storage, initialised before or not; false and errno if that fails. */
SEFF__APART bool seff_coroutine_init_sized(seff_coroutine_t *k, seff_start_fun_t *fn, void *arg, size_t size)
{
	weft_attr_t attr = seff__attr(size);
	int error = weft_init(seff__core(k), fn, arg, &attr);

	if (error) {
		errno = -error;
		return false;
	}
	seff__made(k, fn, arg);
	return true;
}

WEFT__HELPER bool seff_coroutine_init(seff_coroutine_t *k, seff_start_fun_t *fn, void *arg)
{
	return seff_coroutine_init_sized(k, fn, arg, 0);
}

/** Releases the resources of init. If a coroutine around it was ended first, they have been released already. */
WEFT__HELPER void seff_coroutine_release(seff_coroutine_t *k)
{
	if (weft_state(seff__core(k)) != WEFT_DELETED)
		weft_release(seff__core(k));
	k->state = FINISHED;
}

/** Makes it start over, with the function and argument it was made with. */
WEFT__HELPER void seff_coroutine_reset(seff_coroutine_t *k)
{
	weft_coro_t *coro = seff__core(k);

	weft_reset(coro, (seff_start_fun_t *)(uintptr_t)coro->fpu, coro->caught);
	k->state = PAUSED;
}

/** The coroutine that executes this call, or NULL outside of any. */
WEFT__HELPER seff_coroutine_t *seff_current_coroutine(void)
{
	return seff__of(weft_current());
}

/* ---- resuming -------------------------------------------------------------------------------------------------- */

__attribute__((unused, cold, noreturn)) static void seff__die_failed(const weft_coro_t *k)
{
	const char *why = "a coroutine's stack cannot grow: the system has no memory; free some, or raise "
			  "its limits (ulimit -v)";

	if (weft_failure(k) == WEFT_BUDGET_SPENT)
		why = "a coroutine's stack cannot grow: the budget for stacks is spent; raise WEFT_BUDGET";
	else if (weft_failure(k) == WEFT_RESERVATION_SPENT)
		why = "stack overflow in a coroutine: ask for a larger stack by seff_coroutine_new_sized or "
		      "WEFT_STACK=policy:size";
	weft__die_saying(why, "", "");
}

/* The request of `k` is in no set: an exception that left it, its failure, or an effect of weft/effect.h. */
__attribute__((unused, cold, noinline)) static void seff__ended(seff_coroutine_t *k, const struct weft_effect *effect,
								void *payload)
{
	if (seff__core(k)->link.pc == __extension__(void *) weft__in_finished)
		k->state = FINISHED;
	if (effect == WEFT__THROWN)
		weft__rethrow(payload);
	if (effect == &weft_failed)
		seff__die_failed((weft_coro_t *)payload);
}

__attribute__((unused, cold, noinline)) static void seff__enter_anew(weft_coro_t *k, effect_set handled)
{
	weft__retag(k, handled);
	weft__enter_anew(k, handled == ~(effect_set)0 ? ~(uintptr_t)0 : (uintptr_t)WEFT__HANDLES_TAGS);
}

WEFT__INLINE void seff__enter(weft_coro_t *k, effect_set handled)
{
	bool all = handled == ~(effect_set)0;
	bool entered = all ? weft__enter(&k->link, ~(uintptr_t)0) : weft__enter_tagged(&k->link, handled);

	if (weft__unlikely(!entered)) {
		seff__enter_anew(k, handled);
		weft__set_self(k->innermost);
	}
}

/**
 * Starts or continues `k`, handling the effects of the set for this run. The first resume ignores `arg`; for later
 * resumes it is the result of the pending perform.
 */
WEFT__HOT seff_request_t seff_resume(seff_coroutine_t *k, void *arg, effect_set handled)
{
	weft_coro_t *coro = seff__core(k);
	weft_request_t r;
	seff_request_t request;

	seff__enter(coro, handled);
	r = weft__resume_entered(&coro, arg);
	request.effect = (effect_id)(uintptr_t)r.effect - 1;
	/* One question for all that is no effect in a set. */
	if (weft__unlikely(request.effect >= MAX_EFFECTS)) {
		if (!r.effect)
			k->state = FINISHED;
		else
			seff__ended(k, r.effect, r.payload);
	}
	request.payload = r.payload;
	return request;
}

WEFT__INLINE seff_request_t seff_resume_handling_all(seff_coroutine_t *k, void *arg)
{
	return seff_resume(k, arg, ~(effect_set)0);
}

/** The old spelling of seff_resume. */
WEFT__INLINE seff_request_t seff_handle(seff_coroutine_t *k, void *arg, effect_set handled)
{
	return seff_resume(k, arg, handled);
}

WEFT__HOT bool seff_finished(seff_request_t request)
{
	return request.effect == RETURN_EFFECT_ID;
}

/* ---- performing ------------------------------------------------------------------------------------------------ */

/* Default handlers by effect. Every file that includes this defines the table; the linker keeps one. Atomic. */
extern WEFT_API default_handler_t *seff__default_handlers[MAX_EFFECTS];
__attribute__((weak)) default_handler_t *seff__default_handlers[MAX_EFFECTS];

/* A shared object is being unloaded: the default handlers whose code is in it are removed. */
__attribute__((weak, destructor(101), visibility("hidden"))) void seff__forget_defaults_here(void);
__attribute__((weak, destructor(101), visibility("hidden"))) void seff__forget_defaults_here(void)
{
	const void *here = (const void *)(uintptr_t)seff__forget_defaults_here;
	int i;

	for (i = 0; i < MAX_EFFECTS; i++) {
		default_handler_t *handler = __atomic_load_n(&seff__default_handlers[i], __ATOMIC_ACQUIRE);

		if (handler && weft__is_unloaded_with(here, (const void *)(uintptr_t)handler))
			(void)__atomic_compare_exchange_n(&seff__default_handlers[i], &handler, NULL, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	}
}

WEFT__HELPER char *seff__append(char *end, const char *limit, const char *text)
{
	while (end < limit && *text)
		*end++ = *text++;
	return end;
}

/* One line, allocating nothing. `name` is NULL where a program performs by number. */
__attribute__((unused, cold, noreturn)) static void seff__die(const char *what, effect_id effect, const char *name)
{
	weft_coro_t *self = weft__self();
	char line[256], number[24], *digit = number + sizeof(number), *end = line;
	const char *limit = line + sizeof(line) - 1;

	*--digit = '\0';
	do
		*--digit = (char)('0' + effect % 10);
	while (effect /= 10);
	end = seff__append(end, limit, name ? " \"" : " ");
	end = seff__append(end, limit, name ? name : "");
	end = seff__append(end, limit, name ? "\" (#" : "#");
	end = seff__append(end, limit, digit);
	end = seff__append(end, limit, name ? ")" : "");
	if (!self || !self->parent) {
		end = seff__append(end, limit, " outside of any coroutine");
	} else if (!*weft_name(self)) {
		end = seff__append(end, limit, " in a coroutine");
	} else {
		end = seff__append(end, limit, " in coroutine \"");
		end = seff__append(end, limit, weft_name(self));
		end = seff__append(end, limit, "\"");
	}
	*end = '\0';
	weft__die_saying(what, line, "");
}

WEFT__HELPER default_handler_t *seff_get_default_handler(effect_id effect)
{
	return effect < MAX_EFFECTS ? __atomic_load_n(&seff__default_handlers[effect], __ATOMIC_ACQUIRE) : NULL;
}

/** Sets the function that runs in place of a missing handler, for the whole process; returns the previous function. A
 * handler that is part of a shared object is removed when the object is unloaded. */
WEFT__HELPER default_handler_t *seff_set_default_handler(effect_id effect, default_handler_t *handler)
{
	if (effect >= MAX_EFFECTS)
		seff__die("no default handler is possible for effect", effect, NULL);
	return __atomic_exchange_n(&seff__default_handlers[effect], handler, __ATOMIC_ACQ_REL);
}

/* Numbers beyond the bits of a set are caught by ~0 alone. */
__attribute__((unused, cold)) static seff_coroutine_t *seff__locate_large(void)
{
	weft_coro_t *k = weft__self();

	for (; k; k = k->parent) {
		k = weft__unmasked(k);
		/* The thread's root, without a parent, is nobody's coroutine. */
		if (k->parent && k->handled == ~(uintptr_t)0)
			return seff__of(k);
	}
	return NULL;
}

/** The coroutine whose suspension hands the effect to its handler; NULL if nobody handles it. */
WEFT__HOT seff_coroutine_t *seff_locate_handler(effect_id effect)
{
	return effect < MAX_EFFECTS ? seff__of(weft__find_tag((unsigned)effect)) : seff__locate_large();
}

WEFT__HOT void *seff__yield(seff_coroutine_t *k, effect_id effect, void *payload)
{
	return weft_yield(seff__core(k), (const struct weft_effect *)(uintptr_t)(effect + 1), payload);
}

/** Suspends `k`, the current coroutine or an ancestor, without a search. Returns the argument of the next resume. */
#ifdef WEFT_SMALL_FRAMES
SEFF__APART void *seff_yield(seff_coroutine_t *k, effect_id effect, void *payload)
#else
WEFT__INLINE void *seff_yield(seff_coroutine_t *k, effect_id effect, void *payload)
#endif
{
	return seff__yield(k, effect, payload);
}

/** Like seff_yield, but `k` is finished: nothing is saved. `state` is FINISHED while its deferred functions run. */
WEFT__HOT WEFT__NORETURN void seff_exit(seff_coroutine_t *k, effect_id effect, void *payload)
{
	k->state = FINISHED;
	weft_exit(seff__core(k), (const struct weft_effect *)(uintptr_t)(effect + 1), payload);
}

/* The coroutine whose resumer handles the effect, from an earlier search; NULL if a search is needed. */
WEFT__HOT weft_coro_t *seff__found(weft_coro_t *self, effect_id effect)
{
	unsigned number = (unsigned)effect;
	struct weft__found found;

	if (weft__unlikely(!self || effect >= MAX_EFFECTS))
		return NULL;
	if (weft__likely(weft__handles_tag(self, number)) && weft__likely(!weft__masked(self->view)))
		return self;
	return weft__likely(weft__look_up(self->view, weft__key_of_tag(number), weft__place_of_tag(number), &found))
		   ? found.k
		   : NULL;
}

__attribute__((unused, cold, noinline)) static void *seff__perform_far(effect_id effect, void *payload,
								       const char *name)
{
	seff_coroutine_t *k = seff_locate_handler(effect);
	default_handler_t *in_place;

	if (weft__likely(k))
		return seff__yield(k, effect, payload);
	in_place = seff_get_default_handler(effect);
	if (!in_place)
		seff__die("unhandled effect", effect, name);
	return in_place(payload);
}

WEFT__HOT void *seff__perform(effect_id effect, void *payload, const char *name)
{
	weft_coro_t *self = weft__self(), *k = seff__found(self, effect);

#if WEFT_DEBUG
	if (k)
		weft__check_yield(k, self);
#endif
	if (weft__likely(k))
		return weft__yield_near(k, self, (const struct weft_effect *)(uintptr_t)(effect + 1), payload);
	return seff__perform_far(effect, payload, name);
}

WEFT__HELPER WEFT__NORETURN void seff__throw(effect_id effect, void *payload, const char *name)
{
	seff_coroutine_t *k = seff_locate_handler(effect);
	default_handler_t *in_place;

	if (k)
		seff_exit(k, effect, payload);
	in_place = seff_get_default_handler(effect);
	if (!in_place)
		seff__die("unhandled effect", effect, name);
	(void)in_place(payload);
	seff__die("default handler returned from a throw of effect", effect, name);
}

/** Hands the effect to its innermost handler, else to its default handler, else ends the process with a message. */
WEFT__HOT void *seff_perform(effect_id effect, void *payload)
{
	return seff__perform(effect, payload, NULL);
}

/** An exception: the coroutine that the handler resumed is finished. The default handler must not return. */
WEFT__HELPER WEFT__NORETURN void seff_throw(effect_id effect, void *payload)
{
	seff__throw(effect, payload, NULL);
}

WEFT_EXTERN_C_END

/* ---- typed effects ---------------------------------------------------------------------------------------------- */

/* Names are pasted where they are written, never expanded first: an effect may be called like any macro. */
#define EFF_ID(name) seff__id_##name
#define EFF_PAYLOAD_T(name) seff__payload_of_##name
#define EFF_RET_T(name) seff__result_of_##name

/** The set {name}; sets combine with |. */
#define HANDLES(name) ((effect_set)1 << seff__id_##name)

/* An enumerator, because that is an integer constant in C too: `case EFF_ID(x):`, static initialisers. */
#ifdef __cplusplus
#define SEFF__ID_TYPE : effect_id
#else
#define SEFF__ID_TYPE
#endif
#define SEFF__DEFINE_ID(name, id) __extension__ enum SEFF__ID_TYPE { seff__id_##name = (id) }

/** DEFINE_EFFECT(name, id, result type, { fields; }); the fields are the arguments of PERFORM, in order. */
#define DEFINE_EFFECT(name, id, result, ...)                                                                           \
	SEFF__DEFINE_ID(name, id);                                                                                     \
	WEFT__STATIC_ASSERT((id) >= 0 && (id) < MAX_EFFECTS, "an effect's number is 0 to 63");                         \
	typedef result seff__result_of_##name;                                                                         \
	__extension__ typedef struct __VA_ARGS__ seff__payload_of_##name

SEFF__DEFINE_ID(return, RETURN_EFFECT_ID);
typedef void seff__result_of_return;
typedef void seff__payload_of_return;

/** Performs an effect; its value is the handler's reply. Without arguments: PERFORM(name). */
#define PERFORM(name, ...)                                                                                             \
	(__extension__({                                                                                               \
		seff__payload_of_##name seff__payload = {__VA_ARGS__};                                                 \
		(seff__result_of_##name)(uintptr_t) seff__perform(seff__id_##name, &seff__payload, #name);             \
	}))

/** Performs at a coroutine found by seff_locate_handler. */
#define YIELD(coroutine, name, ...)                                                                                    \
	(__extension__({                                                                                               \
		seff__payload_of_##name seff__payload = {__VA_ARGS__};                                                 \
		(seff__result_of_##name)(uintptr_t) seff__yield((coroutine), seff__id_##name, &seff__payload);         \
	}))

/** Finishes the coroutine that the effect's handler resumed. Does not return. */
#define THROW(name, ...)                                                                                               \
	(__extension__({                                                                                               \
		seff__payload_of_##name seff__payload = {__VA_ARGS__};                                                 \
		seff__throw(seff__id_##name, &seff__payload, #name);                                                   \
	}))

/** Finishes a coroutine found by seff_locate_handler. Does not return. */
#define EXIT(coroutine, name, ...)                                                                                     \
	(__extension__({                                                                                               \
		seff__payload_of_##name seff__payload = {__VA_ARGS__};                                                 \
		seff_exit((coroutine), seff__id_##name, &seff__payload);                                               \
	}))

/** In `switch (request.effect)`: the block sees the arguments as `payload`; it may break, continue and return. */
#define CASE_EFFECT(request, name, ...)                                                                                \
	case seff__id_##name: {                                                                                        \
		seff__payload_of_##name payload = *(seff__payload_of_##name *)(request).payload;                       \
		(void)payload;                                                                                         \
		__VA_ARGS__                                                                                            \
	}

/** Like CASE_EFFECT, for the end of the coroutine: `payload.result` is its function's result. */
#define CASE_RETURN(request, ...)                                                                                      \
	case seff__id_return: {                                                                                        \
		struct {                                                                                               \
			void *result;                                                                                  \
		} payload = {(request).payload};                                                                       \
		(void)payload;                                                                                         \
		__VA_ARGS__                                                                                            \
	}

/**
 * MAKE_SYSCALL_WRAPPER(result, function, parameter types…) declares `function_syscall_wrapper`, to call code that was
 * not compiled for growing stacks. On contiguous stacks the wrapper is the function itself.
 * In C the linker finds the function by its name: no declaration is needed, and a declaration may have other types. So
 * accept4 can be wrapped without _GNU_SOURCE. A static function cannot be wrapped. In C++ the function must be known.
 */
#ifdef __cplusplus
#define MAKE_SYSCALL_WRAPPER(result, function, ...)                                                                    \
	__attribute__((unused)) static result (*const function##_syscall_wrapper)(__VA_ARGS__) =                       \
	    (result(*)(__VA_ARGS__))function
#else
#define MAKE_SYSCALL_WRAPPER(result, function, ...)                                                                    \
	extern result seff__wrapped_##function(__VA_ARGS__) __asm__(#function);                                        \
	__attribute__((unused)) static result (*const function##_syscall_wrapper)(__VA_ARGS__) =                       \
	    SEFF__PICK(SEFF__INLINE_##function, seff__wrapped_##function, )
/* The linker knows no inline function: for those of this header, a macro puts the function itself in second place. */
#define SEFF__PICK(...) SEFF__SECOND(__VA_ARGS__)
#define SEFF__SECOND(first, second, ...) second
#define SEFF__INLINE_seff_coroutine_new , seff_coroutine_new
#define SEFF__INLINE_seff_coroutine_new_sized , seff_coroutine_new_sized
#define SEFF__INLINE_seff_coroutine_init , seff_coroutine_init
#define SEFF__INLINE_seff_coroutine_init_sized , seff_coroutine_init_sized
#define SEFF__INLINE_seff_coroutine_release , seff_coroutine_release
#define SEFF__INLINE_seff_coroutine_reset , seff_coroutine_reset
#define SEFF__INLINE_seff_coroutine_delete , seff_coroutine_delete
#endif

#endif /* SEFF_H */
