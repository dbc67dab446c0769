/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/handler.h: the private part of weft/handler.h: macros that make tables of clauses, and functions that
 * call clauses and continue resumptions. weft/handler.h includes it at its end.
 */
#ifndef WEFT_DETAIL_HANDLER_H
#define WEFT_DETAIL_HANDLER_H

#ifndef __clang__
#pragma GCC system_header /* see weft/effect.h */
#endif

#include <weft/handler.h>
#include <weft/detail/declared.h>
#include <weft/detail/pp.h>

WEFT_EXTERN_C_BEGIN

/* For a multi clause: can it be continued again, and how does its coroutine return to the state that was captured? */
enum { WEFT__ONCE, WEFT__UNUSED, WEFT__CHECKPOINTED, WEFT__STRANDED };

/* In a table clang stops at the first effect that is not declared (weft/detail/declared.h), and treats a function of
 * another type as an error. */
#if !defined(__clang__)
#define WEFT__KNOW
#define WEFT__KNOW_NO_MORE
#else
#ifdef __cplusplus
#define WEFT__KNOW WEFT__STOP_AT_UNDECLARED
#else
#define WEFT__KNOW                                                                                                     \
	WEFT__STOP_AT_UNDECLARED _Pragma("clang diagnostic error \"-Wincompatible-pointer-types\"")                    \
	    _Pragma("clang diagnostic error \"-Wincompatible-function-pointer-types\"")                                \
		_Pragma("clang diagnostic error \"-Wint-conversion\"")
#endif
#define WEFT__KNOW_NO_MORE _Pragma("clang diagnostic pop")
#endif

enum { WEFT__TAIL, WEFT__ABORT, WEFT__GENERAL, WEFT__MULTI, WEFT__REQUESTED, WEFT__ON_RETURN, WEFT__ON_FAILURE };

#define WEFT__DRIVE(drive, clauses)                                                                                    \
	__attribute__((unused)) static weft_request_t drive(weft_coro_t **k, uintptr_t handled)                        \
	{                                                                                                              \
		return weft__drive(clauses, WEFT__COUNT_OF(clauses), k, handled);                                      \
	}

/*
 * A clause of another type does not compile. In C the message "incompatible types" contains the expected type. These
 * macros use no other macros for `fn`, because clang lists each macro that a mistake lies in.
 */
#ifdef __cplusplus
extern "C++" {
/* With an unknown type this is one error. A cast to "type *" would be a series of syntax errors. */
template <typename Type> using weft__pointer = Type *;
}
#define weft_tail(op, fn)                                                                                              \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op, WEFT__TAIL,                                                     \
		    (void (*)(void)) static_cast<weft__pointer<weft__##op##__tail>>(fn), (void (*)(void))(fn), NULL    \
	}
#define weft_abort(op, fn)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op, WEFT__ABORT,                                                    \
		    (void (*)(void)) static_cast<weft__pointer<weft__##op##__abort>>(fn),                              \
		    (void (*)(void))weft__##op##__leave, weft__##op##__call                                            \
	}
#define weft_general(op, fn)                                                                                           \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op, WEFT__GENERAL,                                                  \
		    (void (*)(void)) static_cast<weft__pointer<weft__##op##__general>>(fn), NULL, weft__##op##__call   \
	}
#define weft_multi(op, fn)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op, WEFT__MULTI,                                                    \
		    (void (*)(void)) static_cast<weft__pointer<weft__##op##__general>>(fn), NULL, weft__##op##__call   \
	}
#define weft_on_return(fn)                                                                                             \
	{                                                                                                              \
		NULL, WEFT__ON_RETURN, (void (*)(void)) static_cast<weft__on_return_t *>(fn), NULL, NULL               \
	}
#define weft_on_failure(fn)                                                                                            \
	{                                                                                                              \
		NULL, WEFT__ON_FAILURE, (void (*)(void)) static_cast<weft__on_failure_t *>(fn), NULL, NULL             \
	}
#else
#define weft_tail(op, fn)                                                                                              \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op,                                                                 \
		    WEFT__TAIL + 0 * sizeof(*(__typeof__(weft__##op##__tail) **)0 =                                    \
						WEFT__CLAUSE(__typeof__(weft__##op##__tail), fn))                      \
					 WEFT__NAMED(__typeof__(weft__##op##__tail), fn),                              \
		    (void (*)(void))(fn), (void (*)(void))(fn), NULL                                                   \
	}
#define weft_abort(op, fn)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op,                                                                 \
		    WEFT__ABORT + 0 * sizeof(*(__typeof__(weft__##op##__abort) **)0 =                                  \
						 WEFT__CLAUSE(__typeof__(weft__##op##__abort), fn))                    \
					  WEFT__NAMED(__typeof__(weft__##op##__abort), fn),                            \
		    (void (*)(void))(fn), (void (*)(void))weft__##op##__leave, weft__##op##__call                      \
	}
#define weft_general(op, fn)                                                                                           \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op,                                                                 \
		    WEFT__GENERAL + 0 * sizeof(*(__typeof__(weft__##op##__general) **)0 =                              \
						   WEFT__CLAUSE(__typeof__(weft__##op##__general), fn))                \
					    WEFT__NAMED(__typeof__(weft__##op##__general), fn),                        \
		    (void (*)(void))(fn), NULL, weft__##op##__call                                                     \
	}
#define weft_multi(op, fn)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op,                                                                 \
		    WEFT__MULTI + 0 * sizeof(*(__typeof__(weft__##op##__general) **)0 =                                \
						 WEFT__CLAUSE(__typeof__(weft__##op##__general), fn))                  \
					  WEFT__NAMED(__typeof__(weft__##op##__general), fn),                          \
		    (void (*)(void))(fn), NULL, weft__##op##__call                                                     \
	}
#define weft_on_return(fn)                                                                                             \
	{                                                                                                              \
		NULL,                                                                                                  \
		    WEFT__ON_RETURN + 0 * sizeof(*(weft__on_return_t **)0 = WEFT__CLAUSE(weft__on_return_t, fn))       \
					      WEFT__NAMED(weft__on_return_t, fn),                                      \
		    (void (*)(void))(fn), NULL, NULL                                                                   \
	}
#define weft_on_failure(fn)                                                                                            \
	{                                                                                                              \
		NULL,                                                                                                  \
		    WEFT__ON_FAILURE + 0 * sizeof(*(weft__on_failure_t **)0 = WEFT__CLAUSE(weft__on_failure_t, fn))    \
					       WEFT__NAMED(weft__on_failure_t, fn),                                    \
		    (void (*)(void))(fn), NULL, NULL                                                                   \
	}
/* The value that is assigned to a pointer to a function of the clause's type. gcc only warns about a function of
 * another type. So an object takes the function's place, and a second error names the function's type. */
#ifdef __clang__
#define WEFT__CLAUSE(type, fn) fn
#define WEFT__NAMED(type, fn)
#else
#define WEFT__CLAUSE(type, fn) _Generic(fn, type *: NULL, default: weft__misfit)
#define WEFT__NAMED(type, fn) +0 * _Generic(fn, type *: 0)
#endif
struct weft__function_of_another_type {
	char none;
};
extern struct weft__function_of_another_type weft__misfit; /* defined nowhere */
#endif
/* weft_requested does not accept the name of a family. */
#ifdef __cplusplus
#define weft_requested(op)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op, WEFT__REQUESTED + 0 * (int)sizeof(struct weft__##op##__frame),  \
		    NULL, NULL, NULL                                                                                   \
	}
#else
#define weft_requested(op)                                                                                             \
	{                                                                                                              \
		WEFT__DECLARED(op) & weft_effect_##op,                                                                 \
		    WEFT__REQUESTED +                                                                                  \
			0 * sizeof(                                                                                    \
				weft__misfit = _Generic((__typeof__(weft__##op##__abort) *)0,                          \
				struct                                                                                 \
				    weft__clauses_are_for_the_effects_of_a_family *: (__typeof__(weft__##op##__abort)  \
											  *)0,                         \
				default: weft__misfit)),                                                               \
		    NULL, NULL, NULL                                                                                   \
	}
struct weft__clauses_are_for_the_effects_of_a_family;
#endif

typedef void *weft__on_return_t(void *state, void *result);
typedef void *weft__on_failure_t(void *state, int error);

#define WEFT__ANY(fn) ((void (*)(void))(fn))
/* clang reports a second error at sizeof if a clause did not compile. */
#ifdef __clang__
#define WEFT__COUNT_OF(array) ((unsigned)(__builtin_object_size(array, 0) / sizeof(weft_clause_t)))
#else
#define WEFT__COUNT_OF(array) ((unsigned)(sizeof(array) / sizeof(weft_clause_t)))
#endif

/* A switch without a case for an enumeration value is an error, also in system headers, where gcc is silent
 * otherwise. */
#ifdef __clang__
#define WEFT__DEMAND_ALL _Pragma("clang diagnostic push") _Pragma("clang diagnostic error \"-Wswitch\"")
#define WEFT__DEMAND_NO_MORE _Pragma("clang diagnostic pop")
#else
#define WEFT__DEMAND_ALL                                                                                               \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic error \"-Wswitch\"")                                    \
	    _Pragma("GCC diagnostic warning \"-Wsystem-headers\"")
#define WEFT__DEMAND_NO_MORE _Pragma("GCC diagnostic ignored \"-Wsystem-headers\"") _Pragma("GCC diagnostic pop")
#endif

/* "case weft__FAMILY__clause_for__OP:" for each clause, made of its text: operands of ## are not expanded, and so
 * weft_tail(op, fn) becomes WEFT__CASE_weft_tail(op, fn). */
#define WEFT__CASE_weft_tail(op, fn) weft__for, op
#define WEFT__CASE_weft_abort(op, fn) weft__for, op
#define WEFT__CASE_weft_general(op, fn) weft__for, op
#define WEFT__CASE_weft_multi(op, fn) weft__for, op
#define WEFT__CASE_weft_requested(op) weft__for, op
#define WEFT__CASE_weft_on_return(fn) weft__none,
#define WEFT__CASE_weft_on_failure(fn) weft__none,
#define WEFT__CASE_weft_also(...) weft__none,
#define WEFT__CASE(...) WEFT__CASE_AS(__VA_ARGS__)
#define WEFT__CASE_AS(family, how, op) WEFT__CASE_##how(family, op)
#define WEFT__CASE_weft__for(family, op) case weft__##family##__clause_for__##op:
#define WEFT__CASE_weft__none(family, op)
#define WEFT__CASES_1(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_2(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_2(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_3(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_3(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_4(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_4(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_5(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_5(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_6(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_6(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_7(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_7(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_8(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_8(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_9(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_9(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_10(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_10(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_11(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_11(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_12(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_12(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_13(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_13(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_14(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_14(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_15(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_15(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_16(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_16(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_17(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_17(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_18(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_18(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_19(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_19(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_20(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_20(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_21(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_21(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_22(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_22(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_23(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_23(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_24(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_24(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_25(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_25(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_26(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_26(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_27(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_27(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_28(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_28(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_29(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_29(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_30(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_30(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_31(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_31(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__CASES_32(f, WEFT__CASE_##__VA_ARGS__))
#define WEFT__CASES_32(f, x, ...) WEFT__CASE(f, x) __VA_OPT__(WEFT__TOO_MANY_CLAUSES)

/* Reports misuse of the resumption. Returns if the only difference is that the effect has another address. */
WEFT_API WEFT__COLD void weft__check_resumption(const weft_resumption_t *k, const struct weft_effect *effect);

/* Debug builds check for NULL. In other builds the library recognizes the code by the fault (src/stack/fault.c), except
 * if the compiler sees that `k` is NULL, and emits other code. */
#define WEFT__REQUIRE_RESUMPTION(k, known)                                                                             \
	do {                                                                                                           \
		if ((WEFT_DEBUG || (known)) && weft__unlikely(!(k)))                                                   \
			weft__check_resumption((k), NULL);                                                             \
	} while (0)

WEFT__HOT weft_request_t weft_resume_under(weft_coro_t *k, void *value, const weft_handler_t *handler, void *state)
{
	return weft__resume_stateful(&k, value, (uintptr_t)handler + WEFT__HANDLES_TABLE, state);
}

WEFT__INLINE bool weft_is_valid(const weft_resumption_t *k)
{
	WEFT__REQUIRE_RESUMPTION(k, false);
	return k->k && k->k->id == k->id && (k->k->resume_serial == k->resume_serial || k->again);
}

WEFT__INLINE weft_coro_t *weft_performer(const weft_resumption_t *k)
{
	if (!k)
		return weft_current();
	return weft_is_valid(k) ? k->k->innermost : NULL;
}

WEFT__INLINE weft_handler_t weft_labelled(const weft_handler_t *handler, const weft_label_t *label)
{
	weft_handler_t labelled = *handler;

	labelled.label = label;
	return labelled;
}

/* `error` is the error of weft__answer. */
WEFT_API void *weft__continue(weft_resumption_t *k, int error);
/* Like weft__continue, if `k` is checked and has no special state. The next general clause gets `next`, and is called
 * as the last step of this function. If next->payload is not `next` itself afterwards, weft__settle must check its
 * state. */
WEFT_API void *weft__continue_plainly(weft_resumption_t *k, weft_resumption_t *next);
WEFT_API void *weft__settle(weft_resumption_t *next, void *answer);
WEFT_API void *weft__tail_continue_specially(weft_resumption_t *k, int error);
/* The function by which weft_run resumes, if it is not the compiled one. Called before main. */
typedef weft_request_t weft__resume_t(weft_coro_t **k, void *value, uintptr_t handled);
WEFT_API void weft__set_resume(weft__resume_t *by);
/* The function that was set, for loops of other libraries; NULL: none. */
WEFT_API weft__resume_t *weft__told_resume(void);
/* Return the coroutine of a multi clause's resumption to the captured state. */
WEFT_API void weft__rewind(weft_resumption_t *k);
/* The coroutine that owns the tail clause which the current coroutine executes; reported if it executes none. */
WEFT_API weft_coro_t *weft__clause_owner(const char *what);

WEFT__INLINE int weft__forward(void)
{
	weft_coro_t *self = weft__self();

	if (weft__unlikely(!self || !weft__masked(self->view)))
		(void)weft__clause_owner("weft_forward");
	self->view = (const struct weft__view *)((uintptr_t)self->view | WEFT__FORWARDED);
	return 0;
}

enum { WEFT__MOST_OF_THEN = 64 * 1024 };
#define WEFT__IS_RECORD(type) (sizeof(type) <= WEFT__MOST_OF_THEN && __alignof__(type) <= 8)
#define WEFT__RECORD_TOO_LARGE                                                                                         \
	"weft_on_answer copies at most 64 KiB, aligned to 8: let the record point to what is larger"
#ifndef __cplusplus
void weft__record_too_large(void) __attribute__((error(WEFT__RECORD_TOO_LARGE)));
#endif

typedef void *weft__then_t(void *state, void *answer, void *record);

/* A call to make with the answer. It lies behind its record. */
struct weft__then {
	weft__then_t *fn;
	size_t bytes; /* bytes of the record, rounded up */
};

/* The general case of weft__then: there is no room, or the call is misuse. */
WEFT_API int weft__then_slowly(weft__then_t *fn, const void *record, size_t bytes);

WEFT__INLINE size_t weft__room_for_record(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

/* Does not check the room. */
WEFT__INLINE void weft__push_then(struct weft__thens *t, weft__then_t *fn, const void *record, size_t bytes)
{
	size_t room = weft__room_for_record(bytes);
	struct weft__then *then = (struct weft__then *)(void *)(t->top + room);

	__builtin_memcpy(t->top, record, bytes);
	then->fn = fn;
	then->bytes = room;
	t->top = (char *)(then + 1);
}

__attribute__((warn_unused_result)) WEFT__INLINE int weft__then(weft__then_t *fn, const void *record, size_t bytes)
{
	const weft_coro_t *self = weft__self(), *k, *runner;
	size_t need = weft__room_for_record(bytes) + sizeof(struct weft__then);

	if (weft__unlikely(!self || ((uintptr_t)self->view & (1 | WEFT__MOVED)) != 1))
		return weft__then_slowly(fn, record, bytes);
	k = weft__owner_of(self->view);
	runner = k->parent;
	if (weft__unlikely((k->handled & 7) != WEFT__HANDLES_RUN || !(runner->flags & WEFT__THENS) ||
			   (size_t)(runner->thens->end - runner->thens->top) < need))
		return weft__then_slowly(fn, record, bytes);
	weft__push_then(runner->thens, fn, record, bytes);
	return 0;
}

#ifdef __cplusplus
extern "C++" {
template <typename Fn, typename Record>
__attribute__((warn_unused_result)) WEFT__INLINE int weft__then_as(Fn *fn, Record *record)
{
	static_assert(WEFT__IS_RECORD(Record), WEFT__RECORD_TOO_LARGE);
	static_assert(__is_trivially_copyable(Record),
		      "weft_on_answer copies the record's bytes: let it point to objects");
	static_assert(sizeof(static_cast<void *>(fn(nullptr, nullptr, record))), "it returns the answer");
	return weft__then((weft__then_t *)WEFT__ANY(fn), record, sizeof *record);
}
}
#endif

/* Like weft__continue, but at the place where the body waits throws(argument) is called, which does not return. */
WEFT_API void *weft__continue_throwing(weft_resumption_t *k, weft__thrower_t *throws, void *argument);

/* The performer's frame, if the resumption can be used and has this effect; else reported. */
WEFT__INLINE void *weft__frame_under(weft_resumption_t *k, const struct weft_effect *effect)
{
	if (weft__unlikely(!weft_is_valid(k) || k->effect != effect))
		weft__check_resumption(k, effect);
	if (weft__unlikely(k->again))
		weft__rewind(k);
	return k->payload;
}

WEFT__INLINE uint64_t weft__use_of(const weft_resumption_t *r)
{
	uint64_t use;

	__builtin_memcpy(&use, (const char *)r + offsetof(weft_resumption_t, resume_serial), sizeof use);
	return use;
}

/* The usual case, recognized with half the loads: the resumption is as a general clause of this effect gets it, and its
 * coroutine's frames are on its own stack. Returns the coroutine. Else NULL. */
WEFT__INLINE weft_coro_t *weft__resumable(const weft_resumption_t *r, const struct weft_effect *effect)
{
	weft_coro_t *k = r->k;

	return k && k->id == r->id && weft__use_of(r) == k->resume_serial && r->effect == effect &&
		       !(k->flags & (WEFT__COPYING | WEFT__THROUGH))
		   ? k
		   : NULL;
}

/* The value that weft_tail_continue returns. Not the resumption's address: compilers keep a resumption in memory if its
 * address escapes. */
#define WEFT__CONTINUED ((void *)-48)

/* The resumption can be used, as weft__frame_under has checked. The clause must return the result: it tells weft_run
 * that the resumption has been continued, and so does the payload, which is NULL now. */
WEFT__INLINE void *weft__tail_continued(weft_resumption_t *r, weft_coro_t *k)
{
	k->resume_serial++;
	r->payload = NULL;
	return WEFT__CONTINUED;
}

WEFT__INLINE void *weft__tail_continue(weft_resumption_t *k, int error)
{
	if (weft__unlikely(error || k->again | k->kept))
		return weft__tail_continue_specially(k, error);
	return weft__tail_continued(k, k->k);
}

/* Like weft_continue; `k` is checked. */
WEFT__INLINE void *weft__continue_checked(weft_resumption_t *k, int error)
{
	weft_resumption_t next;
	void *answer;

	if (weft__unlikely(error || k->again | k->kept))
		return weft__continue(k, error);
	answer = weft__continue_plainly(k, &next);
	return weft__likely(next.payload == &next) ? answer : weft__settle(&next, answer);
}

/* The four fields that weft__use_of loads are stored as one word: a load of separate stores would make the processor
 * wait. */
WEFT__INLINE void weft__capture(weft_resumption_t *resumption, weft_coro_t *k, weft_request_t r)
{
	uint64_t use = k->resume_serial;

	resumption->k = k;
	resumption->id = k->id;
	__builtin_memcpy((char *)resumption + offsetof(weft_resumption_t, resume_serial), &use, sizeof use);
	resumption->effect = r.effect;
	resumption->payload = r.payload;
}

/* Special effects, not requests. WEFT__DECIDED: the payload is the answer of weft_run. */
#define WEFT__UNDRIVEN ((const struct weft_effect *)-32)
#define WEFT__DECIDED ((const struct weft_effect *)-64)

/* Reports that a general clause has not decided, or has continued the body and returned another value. */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_returned(const weft_resumption_t *k, uintptr_t handled);

/* Call a general clause for k's request. False: it did not continue k, and *r is changed. */
WEFT__INLINE bool weft__ask(const weft_clause_t *clause, weft_coro_t *k, uintptr_t handled, weft_request_t *r)
{
	weft_resumption_t resumption, copy;
	void *result;

	weft__capture(&resumption, k, *r);
	result = clause->call(k->state, &resumption, r->payload, clause->clause);
	if (weft__likely(!resumption.payload) && weft__likely(result == WEFT__CONTINUED))
		return true;
	if (weft__unlikely(!resumption.payload || weft_is_valid(&resumption))) {
		copy = resumption; /* see WEFT__CONTINUED */
		weft__die_returned(&copy, handled);
	}
	r->effect = WEFT__DECIDED;
	r->payload = result;
	return false;
}

WEFT__INLINE weft_request_t weft__undriven(void)
{
	weft_request_t r = {WEFT__UNDRIVEN, NULL};

	return r;
}

/*
 * The loop of weft_run, compiled where the table is. There the compiler knows the clauses, and a small clause becomes
 * part of the loop: for gcc -O2 it must be declared inline. The search is no loop, because gcc inlines before it
 * unrolls. Returns the first request that is not for a general clause among the first six clauses of the table.
 * Rejected: a similar function for weft_continue. If gcc did not inline the clause, there would be two return addresses
 * in turns: see weft__continue_plainly.
 *
 * Not used where compilers do not optimize by the table, nor where the library has to resume: see weft__set_resume.
 */
#if defined(__OPTIMIZE__) && !WEFT__SANITIZED
#define WEFT__IS(i, what) (i < count && clauses[i].kind == what)
#define WEFT__ASK(i)                                                                                                   \
	if (i < count && clauses[i].effect && r.effect == clauses[i].effect && !WEFT__IS(i, WEFT__TAIL)) {             \
		if (WEFT__IS(i, WEFT__GENERAL) && weft__ask(&clauses[i], k, handled, &r))                              \
			continue;                                                                                      \
		break;                                                                                                 \
	}
WEFT__INLINE weft_request_t weft__drive(const weft_clause_t *clauses, unsigned count, weft_coro_t **at,
					uintptr_t handled)
{
	weft_request_t r = weft__undriven();
	weft_coro_t *k = *at;

	if (!(WEFT__IS(0, WEFT__GENERAL) || WEFT__IS(1, WEFT__GENERAL) || WEFT__IS(2, WEFT__GENERAL) ||
	      WEFT__IS(3, WEFT__GENERAL) || WEFT__IS(4, WEFT__GENERAL) || WEFT__IS(5, WEFT__GENERAL)))
		return r;
	for (;;) {
		r = weft__resume_caught(&k, NULL, handled);
		WEFT__ASK(0)
		WEFT__ASK(1)
		WEFT__ASK(2)
		WEFT__ASK(3)
		WEFT__ASK(4)
		WEFT__ASK(5)
		break;
	}
	*at = k;
	return r;
}
#undef WEFT__ASK
#undef WEFT__IS
#else
#define weft__drive(clauses, count, at, handled) ((void)(clauses), (void)(at), (void)(handled), weft__undriven())
#endif

/* `value`: in C, where the result lies and its place in the performer's frame; in C++ the value itself. */
#ifdef __cplusplus
#define WEFT__AS(type, value) static_cast<type>(value)
#define WEFT__TEMPORARY(type, value) (weft__temporary(value))
#define WEFT__ANSWERED(what, op, k, value) what<struct weft__##op##__frame>((k), &weft_effect_##op, value)
#define WEFT__GIVEN(op, ...)                                                                                           \
	WEFT__FIRST(__VA_OPT__((weft__##op##__value)(__VA_ARGS__), )((weft__##op##__value)(), weft__nothing()), )

extern "C++" {
template <typename T> WEFT__INLINE T *weft__temporary(T &&value)
{
	return &value;
}

struct weft__nothing {
};

template <typename Frame>
WEFT__HELPER int weft__answer(weft_resumption_t *k, const struct weft_effect *effect, weft__nothing)
{
	(void)weft__frame_under(k, effect);
	return 0;
}

template <typename Frame, typename R>
WEFT__HELPER int weft__answer(weft_resumption_t *k, const struct weft_effect *effect, R &&value)
{
	Frame *frame = static_cast<Frame *>(weft__frame_under(k, effect));

	if (weft__unlikely(k->k->flags & (WEFT__COPYING | WEFT__THROUGH)))
		return weft_poke(k->k, &frame->weft__result, &value, sizeof value);
	frame->weft__result = static_cast<R &&>(value);
	return 0;
}

template <typename Frame> WEFT__HELPER void weft__answer_fresh(void *, weft__nothing)
{
}

template <typename Frame, typename R> WEFT__HELPER void weft__answer_fresh(void *frame, R &&value)
{
	static_cast<Frame *>(frame)->weft__result = static_cast<R &&>(value);
}

template <typename Frame, typename R>
WEFT__HELPER void *weft__continue_with(weft_resumption_t *k, const struct weft_effect *effect, R &&value)
{
	WEFT__REQUIRE_RESUMPTION(k, __builtin_constant_p(!k));
	return weft__continue_checked(k, weft__answer<Frame>(k, effect, static_cast<R &&>(value)));
}

template <typename Frame, typename R>
__attribute__((warn_unused_result)) WEFT__HELPER void *weft__tail_continue_with(weft_resumption_t *k,
										const struct weft_effect *effect,
										R &&value)
{
	weft_coro_t *fresh;

	WEFT__REQUIRE_RESUMPTION(k, __builtin_constant_p(!k));
	fresh = weft__resumable(k, effect);
	if (weft__unlikely(!fresh))
		return weft__tail_continue(k, weft__answer<Frame>(k, effect, static_cast<R &&>(value)));
	weft__answer_fresh<Frame>(k->payload, static_cast<R &&>(value));
	return weft__tail_continued(k, fresh);
}
}
#else
#define WEFT__AS(type, value) ((type){value})
#define WEFT__TEMPORARY(type, value) ((type[1]){value})
#define WEFT__ANSWERED(what, op, k, value) what((k), &weft_effect_##op, value)
#define WEFT__GIVEN(op, ...)                                                                                           \
	WEFT__FIRST(__VA_OPT__(weft__given(WEFT__TEMPORARY(WEFT__RESULT(op), (weft__##op##__value)(__VA_ARGS__)),      \
					   offsetof(struct weft__##op##__frame, weft__result),                         \
					   sizeof(WEFT__RESULT(op))), )((weft__##op##__value)(),                       \
									weft__given(NULL, 0, 0)), )

struct weft__given {
	const void *value;
	size_t offset, size;
};

WEFT__INLINE struct weft__given weft__given(const void *value, size_t offset, size_t size)
{
	return (struct weft__given){value, offset, size};
}

WEFT__HOT int weft__answer(weft_resumption_t *k, const struct weft_effect *effect, struct weft__given given)
{
	char *result = (char *)weft__frame_under(k, effect) + given.offset;

	if (weft__unlikely(k->k->flags & (WEFT__COPYING | WEFT__THROUGH)))
		return given.size ? weft_poke(k->k, result, given.value, given.size) : 0;
	if (given.size)
		__builtin_memcpy(result, given.value, given.size);
	return 0;
}

/* Like weft__answer, for places where it is seldom called. */
WEFT_API WEFT__COLD int weft__answer_slowly(weft_resumption_t *k, const struct weft_effect *effect, const void *value,
					    size_t offset, size_t size);

WEFT__HOT void *weft__continue_with(weft_resumption_t *k, const struct weft_effect *effect, struct weft__given given)
{
	WEFT__REQUIRE_RESUMPTION(k, __builtin_constant_p(!k));
	return weft__continue_checked(k, weft__answer(k, effect, given));
}

__attribute__((warn_unused_result)) WEFT__HOT void *weft__tail_continue_with(weft_resumption_t *k,
									     const struct weft_effect *effect,
									     struct weft__given given)
{
	weft_coro_t *fresh;

	WEFT__REQUIRE_RESUMPTION(k, __builtin_constant_p(!k));
	fresh = weft__resumable(k, effect);
	if (weft__unlikely(!fresh)) {
		weft_resumption_t copy = *k; /* see WEFT__CONTINUED */
		int error = weft__answer_slowly(&copy, effect, given.value, given.offset, given.size);
		void *answer;

		*k = copy;
		answer = weft__tail_continue(&copy, error);
		if (!copy.kept) /* else the body has run, and the memory of *k may have been reused */
			*k = copy;
		return answer;
	}
	if (given.size)
		__builtin_memcpy((char *)k->payload + given.offset, given.value, given.size);
	return weft__tail_continued(k, fresh);
}
#endif
#define WEFT__RESULT(op) __typeof__(((struct weft__##op##__frame *)0)->weft__result)
/* WEFT__THROW and WEFT__THROWN_AS take a list: the exception and its arguments. */
#define WEFT__THROW(exception, ...) weft__##exception##__throw
#define WEFT__THROWN_AS(...) WEFT__CAT(WEFT__THROWN_AS_, WEFT__REST(__VA_ARGS__, ))(__VA_ARGS__)
#define WEFT__THROWN_AS_weft__one(exception)                                                                           \
	WEFT__TEMPORARY(struct weft__##exception##__frame, (weft__##exception##__filled)())
#define WEFT__THROWN_AS_weft__more(exception, ...)                                                                     \
	WEFT__TEMPORARY(struct weft__##exception##__frame, (weft__##exception##__filled)(__VA_ARGS__))

#define WEFT__CONTINUE(how, op, ...) WEFT__CAT(WEFT__CONTINUE_, WEFT__REST(__VA_ARGS__, ))(how, op, __VA_ARGS__)
#define WEFT__CONTINUE_weft__one(how, op, k) (WEFT__ANSWERED(how, op, k, WEFT__GIVEN(op, )))
#define WEFT__CONTINUE_weft__more(how, op, k, ...) (WEFT__ANSWERED(how, op, k, WEFT__GIVEN(op, __VA_ARGS__)))
#define WEFT__GENERALIZE_weft__one(op) ((weft__##op##__slow)(weft__hint(WEFT__GENERALIZING, NULL)))
#define WEFT__GENERALIZE_weft__more(op, ...) ((weft__##op##__slow)(weft__hint(WEFT__GENERALIZING, NULL), __VA_ARGS__))
#define WEFT__PERFORM_ON_weft__one(op, label) ((weft__##op##__by)(WEFT__BY_LABEL, weft__at_label(label)))
#define WEFT__PERFORM_ON_weft__more(op, label, ...)                                                                    \
	((weft__##op##__by)(WEFT__BY_LABEL, weft__at_label(label), __VA_ARGS__))
#define WEFT__GUESSED(op, fn) weft__hint(WEFT__ANY(WEFT__AS(weft__##op##__tail *, fn)), NULL)
#define WEFT__PERFORM_HOT_weft__one(op, fn) ((weft__##op##__by)(WEFT__BY_GUESS, WEFT__GUESSED(op, fn)))
#define WEFT__PERFORM_HOT_weft__more(op, fn, ...)                                                                      \
	((weft__##op##__by)(WEFT__BY_GUESS, WEFT__GUESSED(op, fn), __VA_ARGS__))

/*
 * Clauses of other kinds than tail need a file which the static library gives only to programs that name a function of
 * it (src/effect/run.c). This function names one where it costs least: before the call of an abort clause, whose
 * function is never NULL, although no compiler knows that. Rejected: the name in a directive for the assembler, which a
 * linker that optimises does not see.
 */
WEFT__INLINE void *weft__null(void)
{
	return weft_run_with(NULL, NULL, NULL, NULL, NULL);
}

WEFT_EXTERN_C_END

#if WEFT__SANITIZED
/* The loop in weft_run belongs to a library that may be built without the sanitizer: it resumes by this function, which
 * announces the switch to the sanitizer. */
__attribute__((unused)) static weft_request_t weft__resume_telling(weft_coro_t **k, void *value, uintptr_t handled)
{
	return weft__resume(k, value, handled);
}

__attribute__((constructor)) static void weft__tell(void)
{
	weft__set_resume(weft__resume_telling);
}
#endif

/* clang-format off */
/* Call a clause with the arguments in the performer's frame: an abort clause if there is no resumption. */
/* `frame`, if there are parameters to take from it. */
#ifdef __cplusplus
#define WEFT__FRAME_AS(name, frame) (struct weft__##name##__frame *)frame
#else
#define WEFT__FRAME_AS(name, frame) frame
#endif
#define WEFT__FRAME_HERE(name, ...)                                                                                    \
	WEFT__FIRST(__VA_OPT__(struct weft__##name##__frame *frame = WEFT__FRAME_AS(name, weft__f);, )(void) weft__f;, )

#define WEFT__CLAUSES(result, name, ...)                                                                               \
	typedef void *weft__##name##__abort(void * WEFT__MORE_TYPES(__VA_ARGS__)),                                     \
		*weft__##name##__general(void *, weft_resumption_t * WEFT__MORE_TYPES(__VA_ARGS__));                   \
	WEFT__HELPER void *weft__##name##__call(void *weft__s, weft_resumption_t *weft__k, void *weft__f,              \
						void (*weft__fn)(void))                                                \
	{                                                                                                              \
		WEFT__FRAME_HERE(name, __VA_ARGS__)                                                                    \
		return weft__k ? ((weft__##name##__general *)weft__fn)(weft__s,                                        \
									   weft__k WEFT__AND_FIELDS(__VA_ARGS__))      \
		       : weft__fn                                                                                      \
			   ? ((weft__##name##__abort *)weft__fn)(weft__s WEFT__AND_FIELDS(__VA_ARGS__))                \
			   : weft__null();                                                                             \
	}

#define WEFT__EXCEPTION_CLAUSES(name, ...)                                                                             \
	typedef void *weft__##name##__abort(void * WEFT__MORE_TYPES(__VA_ARGS__));                                     \
	WEFT__HELPER void *weft__##name##__call(void *weft__s, weft_resumption_t *weft__k, void *weft__f,              \
						void (*weft__fn)(void))                                                \
	{                                                                                                              \
		WEFT__FRAME_HERE(name, __VA_ARGS__)                                                                    \
		(void)weft__k;                                                                                         \
		return weft__fn ? ((weft__##name##__abort *)weft__fn)(weft__s WEFT__AND_FIELDS(__VA_ARGS__))           \
				: weft__null();                                                                        \
	}

/* ", frame->a, frame->b" */
#define WEFT__AND_FIELDS(...) __VA_OPT__(, ) WEFT__PAIRS(WEFT__FIELD_OF, WEFT__COMMA, __VA_ARGS__)
#define WEFT__FIELD_OF(type, name) WEFT__MOVE(type, frame->name)
/* clang-format on */

#endif /* WEFT_DETAIL_HANDLER_H */
