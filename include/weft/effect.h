/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/effect.h: effects and their handlers.
 *
 *   WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
 *
 *   static void *countdown(void *unused)
 *   {
 *           while (get() > 0)
 *                   put(get() - 1);
 *           return unused;
 *   }
 *
 *   weft_request_t r;
 *   int64_t s = 100;
 *   weft_handle (r, k, state) {
 *           if (weft_is(get, r))
 *                   weft_reply(get, r, s);
 *           else
 *                   s = weft_args(put, r)->value;
 *   }
 *
 * Design
 *  1. An effect is the address of a weak object that every declaration of it defines and the linker merges: no
 *     tags, no registry, no limit. The symbol is "weft.effect.FAMILY.NAME". Shared objects loaded by dlopen see the
 *     program's effects if the program exports them (weft.pc, the CMake package and `weft cc` take care of it).
 *  2. A declaration yields a typed function to perform it, and a struct of its arguments and its result. The struct
 *     lies on the performer's stack; a request points to it; a reply is written into it. A result nobody wrote is
 *     zero. No casts, nothing allocated, any type.
 *  3. A handler says what it handles with each resume. One effect or family is a bare pointer, so that the
 *     innermost handler is found by one comparison; sets are static lists.
 *  4. Accessors check that the request is theirs. After weft_is the compiler knows it is and drops the check.
 * To reach: perform and resume in 3.0 ns (state, depth 0).
 *
 * In C++ declarations need C++14. Thread-safety as in coro.h. Source of the ideas: sheep handlers of libseff; clauses
 * and families of Koka.
 */
#ifndef WEFT_EFFECT_H
#define WEFT_EFFECT_H

/* __VA_OPT__ and empty variadic arguments, standard since C++20 and C23, are no reason to warn in older modes. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#else
#pragma GCC system_header
#endif

#include <weft/coro.h>
#include <weft/internal/pp.h>

WEFT_EXTERN_C_BEGIN

/** Identity and description of an effect or a family. Compare by address. */
typedef struct weft_effect {
	const char *name;
	const char *signature;		  /* as declared: "int64_t get (void)"; "" for a family */
	const struct weft_effect *family; /* the family it belongs to; itself if it stands alone */
	void (*default_handler)(void);	  /* really of the effect's own type; atomic */
	uint32_t index;			  /* within the family, from 0 */
	uint32_t size;			  /* of its struct of arguments and result */
} weft_effect_t;

/* ---- declaring: at file scope, in a header or a source file, as often as you like -------------------------- */

/**
 * WEFT_EFFECT(result, name, type, parameter, …): one effect. Defines `result name(type parameter, …)`, which performs
 * it: control goes to the innermost handler, and the call returns what that replies. With no handler in scope the
 * default handler runs in place; with neither, the process ends with a message that names the effect.
 * Up to eight parameters. The name is a C identifier, and with external linkage among all effects of the program.
 */
#define WEFT_EFFECT(result, name, ...)                                                                                 \
	enum { weft__index_##name };                                                                                   \
	WEFT__OPERATION("weft.effect." #name, name, result, name, __VA_ARGS__)                                         \
	WEFT__END

/**
 * WEFT_EXCEPTION(name, type, parameter, …): an effect that does not return: performing it finishes the coroutine that
 * its handler resumed, saving nothing. Its default handler must end the program.
 */
#define WEFT_EXCEPTION(name, ...)                                                                                      \
	enum { weft__index_##name };                                                                                   \
	WEFT__FRAME(void, name, __VA_ARGS__)                                                                           \
	typedef void weft__function_##name WEFT__PARAMETERS(__VA_ARGS__);                                              \
	WEFT__DESCRIBE_OPERATION("weft.effect." #name, name, void, name, __VA_ARGS__)                                  \
	WEFT__THROWER(name, __VA_ARGS__)                                                                               \
	WEFT__ACCESSORS(void, name)                                                                                    \
	WEFT__END

/**
 * WEFT_FAMILY(family, (result, name, type, parameter, …), …): up to sixteen effects that can be handled
 * together, by the family's name, or singly.
 */
#define WEFT_FAMILY(family, ...)                                                                                       \
	WEFT__DESCRIBE("weft.effect." #family, family, #family, "", family, 0, 0);                                     \
	enum { WEFT__EACH(WEFT__FAMILY_INDEX, family, __VA_ARGS__) };                                                  \
	WEFT__EACH(WEFT__FAMILY_MEMBER, family, __VA_ARGS__)                                                           \
	WEFT__END

/* ---- handling ----------------------------------------------------------------------------------------------- */

/** The handled set {names…}: effects and families, mixed; up to sixteen. weft_handles() is empty. */
#define weft_handles(...) WEFT__FIRST(__VA_OPT__(WEFT__HANDLES_SOME(__VA_ARGS__), ) WEFT_HANDLE_NONE, )

/**
 * weft_handle (r, k, names…) { … }: resume `k`, handling the names, and run the block for each request, until `k`
 * returns; `r`, a weft_request_t of yours, then holds its result. `break` leaves `k` as it is. After an exception or
 * &weft_failed the block must leave: resuming a finished coroutine is reported.
 */
#define weft_handle(r, k, ...)                                                                                         \
	for ((r) = weft_resume((k), NULL, weft_handles(__VA_ARGS__)); !weft_returned(r);                               \
	     (r) = weft_resume((k), NULL, weft_handles(__VA_ARGS__)))

/** Has the coroutine's function returned? Its result is `r.payload`. */
WEFT__INLINE bool weft_returned(weft_request_t r)
{
	return !r.effect;
}

/** Is the request this effect? */
#define weft_is(name, r) ((r).effect == &weft_effect_##name)

/** The arguments of a request that is this effect (else: reported), as a struct with the parameters' names. On the
 * performer's stack: valid until it is resumed or deleted. */
#define weft_args(name, r) (weft__args_##name(r))

/**
 * Set the result of an effect for one coroutine, when others may have run since, or for a clone that was suspended in
 * the same request: weft_reply_to(k, name, r, value). 0, or a negative errno as weft_poke.
 */
#define weft_reply_to(k, name, r, ...) (weft__reply_to_##name((k), (r), __VA_ARGS__))

/** The type of that struct: a handler that resumes before it is done with the arguments copies them. */
#define weft_args_t(name) struct weft__##name

/** Set the result of a request that is this effect (else: reported); delivered when its coroutine is resumed. */
#define weft_reply(name, r, ...) (weft__reply_##name((r), __VA_ARGS__))

/** For `switch (weft_op(family, r)) { case weft_case(get): … }`: the place of the request in its family; -1 if it is
 * not of this family. */
#define weft_op(family_, r) ((r).effect && (r).effect->family == &weft_effect_##family_ ? (int)(r).effect->index : -1)
#define weft_case(name) weft__index_##name

/** The name of the request's effect, for messages: "return" if it is none. */
WEFT_API const char *weft_request_name(weft_request_t r);

/* ---- performing directly ------------------------------------------------------------------------------------ */

/** The coroutine whose suspension hands this effect to its handler, or NULL: find once, then perform often. */
#define weft_locate(name) (weft__locate(&weft_effect_##name))

/** Perform at a coroutine found by weft_locate, without a search. It must still be an ancestor-or-self. */
#define weft_perform_at(name, k, ...) (weft__at_##name((k), weft__self() __VA_OPT__(, ) __VA_ARGS__))

/**
 * Set the default handler of an effect: a function of the same type as the one that performs it, which runs in place,
 * on the performer's stack, where no handler is in scope. NULL removes it. Thread-safe; process-wide.
 */
#define weft_set_default(name, function)                                                                               \
	do {                                                                                                           \
		weft__function_##name *weft__function = (function);                                                    \
		__atomic_store_n(&weft_effect_##name.default_handler, (void (*)(void))weft__function,                  \
				 __ATOMIC_RELEASE);                                                                    \
	} while (0)

/* ---- what the macros stand on -------------------------------------------------------------------------------- */

/* Innermost coroutine on the chain of the current one whose resumer handles the effect, or NULL. */
WEFT_API weft_coro_t *weft__locate(const weft_effect_t *effect);
/* The same; where there is none, NULL if the effect has a default handler, else ends the process. */
WEFT_API weft_coro_t *weft__find(const weft_effect_t *effect);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_wrong_request(weft_request_t r, const weft_effect_t *expected);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_declared_twice(const weft_effect_t *effect, size_t size);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_default_returned(const weft_effect_t *effect);

WEFT__INLINE weft_coro_t *weft__handler(weft_coro_t *self, const weft_effect_t *effect, const weft_effect_t *family)
{
	if (weft__likely(self && self->handled == (uintptr_t)family))
		return self;
	return weft__find(effect);
}

WEFT__INLINE void weft__perform(weft_coro_t *handler, weft_coro_t *self, const weft_effect_t *effect, void *frame)
{
#if WEFT_DEBUG
	if (weft__unlikely(!weft__is_ancestor(handler, self)))
		weft__die_not_ancestor(handler);
#endif
	(void)weft__yield(handler, self, effect, frame);
}

WEFT__INLINE void *weft__frame_of(weft_request_t r, const weft_effect_t *effect, size_t size)
{
	if (weft__unlikely(r.effect != effect))
		weft__die_wrong_request(r, effect);
#if WEFT_DEBUG
	if (weft__unlikely(effect->size != size))
		weft__die_declared_twice(effect, size);
#else
	(void)size;
#endif
	return r.payload;
}

WEFT_EXTERN_C_END

/* Swallows the semicolon after a declaring macro. */
#define WEFT__END struct weft_effect

#define WEFT__HANDLES_SOME(name, ...)                                                                                  \
	WEFT__FIRST(__VA_OPT__(WEFT__HANDLES_SET(name, __VA_ARGS__), ) weft__handles((uintptr_t)&weft_effect_##name), )
/* A set is a static list that ends with NULL; the odd address tells it from an effect's. */
#define WEFT__HANDLES_SET(...)                                                                                         \
	(__extension__({                                                                                               \
		static const weft_effect_t *const weft__set[] = {WEFT__EACH(WEFT__SET_MEMBER, , __VA_ARGS__) NULL};    \
		weft__handles((uintptr_t)weft__set + 1);                                                               \
	}))
#define WEFT__SET_MEMBER(none, name) &weft_effect_##name,

/*
 * The merged object. Every translation unit that sees the declaration defines it, weakly; the assembler name carries
 * the family, so that `get` of one family is never `get` of another. Not const: the default handler is set in it.
 */
#ifdef __cplusplus
#define WEFT__EXTERN extern "C"
#else
#define WEFT__EXTERN extern
#endif
#define WEFT__DESCRIBE(symbol, effect, text, signature, family_, index, size)                                          \
	WEFT__EXTERN WEFT_API weft_effect_t weft_effect_##effect __asm__(symbol);                                      \
	__attribute__((weak))                                                                                          \
	weft_effect_t weft_effect_##effect = {text, signature, &weft_effect_##family_, NULL, index, size}
#define WEFT__DESCRIBE_OPERATION(symbol, family, result, name, ...)                                                    \
	WEFT__DESCRIBE(symbol, name, #name, #result " " #name " (" #__VA_ARGS__ ")", family, weft__index_##name,       \
		       sizeof(struct weft__##name));

#define WEFT__FAMILY_INDEX(family, effect) WEFT__INDEX_OF effect,
#define WEFT__INDEX_OF(result, name, ...) weft__index_##name
#define WEFT__FAMILY_MEMBER(family, effect) WEFT__FAMILY_MEMBER_(family, WEFT__UNWRAP effect)
#define WEFT__FAMILY_MEMBER_(...) WEFT__FAMILY_MEMBER__(__VA_ARGS__)
#define WEFT__FAMILY_MEMBER__(family, result, name, ...)                                                               \
	WEFT__OPERATION("weft.effect." #family "." #name, family, result, name, __VA_ARGS__)

#define WEFT__OPERATION(symbol, family, result, name, ...)                                                             \
	WEFT__FRAME(result, name, __VA_ARGS__)                                                                         \
	typedef result weft__function_##name WEFT__PARAMETERS(__VA_ARGS__);                                            \
	WEFT__DESCRIBE_OPERATION(symbol, family, result, name, __VA_ARGS__)                                            \
	WEFT__PERFORMER(family, result, name, __VA_ARGS__)                                                             \
	WEFT__ACCESSORS(result, name)

/* What a request points to: arguments by name, then the result. */
#define WEFT__FRAME(result_, name, ...)                                                                                \
	struct weft__##name {                                                                                          \
		WEFT__PAIRS(WEFT__FIELD, WEFT__NOTHING, __VA_ARGS__)                                                   \
		WEFT__IF_VOID(result_)(char weft__none)(result_ weft__result WEFT__ZEROED);                            \
	};
#ifdef __cplusplus
#define WEFT__ZEROED                                                                                                   \
	{                                                                                                              \
	}
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name frame = {WEFT__FORWARD(__VA_ARGS__) __VA_OPT__(, ) WEFT__IF_VOID(result)(0)({})};
/* Values are moved, references stay what they are. */
#define WEFT__MOVED(type, value) static_cast<decltype(value) &&>(value)
#define WEFT__FORWARD(...) WEFT__PAIRS(WEFT__MOVED, WEFT__COMMA, __VA_ARGS__)
#define WEFT__RESULT_OF(type) WEFT__MOVED(type, frame.weft__result)
#else
#define WEFT__ZEROED
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name frame;                                                                                     \
	WEFT__PAIRS(WEFT__STORE, WEFT__NOTHING, __VA_ARGS__)                                                           \
	WEFT__IF_VOID(result)()(__builtin_memset(&frame.weft__result, 0, sizeof(frame.weft__result));)
#define WEFT__MOVED(type, value) value
#define WEFT__FORWARD WEFT__NAMES
#define WEFT__RESULT_OF(type) frame.weft__result
#endif

#define WEFT__DEFAULT_OF(result, name, ...)                                                                            \
	((result(*) WEFT__PARAMETERS(__VA_ARGS__))__atomic_load_n(&weft_effect_##name.default_handler,                 \
								  __ATOMIC_ACQUIRE))

/* A choice between two expansions is no call. */
/* clang-format off */
#define WEFT__PERFORMER(family, result, name, ...)                                                                     \
	WEFT__HELPER result weft__at_##name(weft_coro_t *weft__k,                                                  \
					   weft_coro_t *weft__me WEFT__MORE_PARAMETERS(__VA_ARGS__))                   \
	{                                                                                                              \
		WEFT__FILL(result, name, __VA_ARGS__)                                                                  \
		weft__perform(weft__k, weft__me, &weft_effect_##name, &frame);                                         \
		WEFT__IF_VOID(result)()(return WEFT__RESULT_OF(result);)                                               \
	}                                                                                                              \
	WEFT__HELPER result name WEFT__PARAMETERS(__VA_ARGS__)                                                         \
	{                                                                                                              \
		weft_coro_t *weft__me = weft__self();                                                                  \
		weft_coro_t *weft__k = weft__handler(weft__me, &weft_effect_##name, &weft_effect_##family);            \
                                                                                                                       \
		if (weft__unlikely(!weft__k)) {                                                                        \
			WEFT__IF_VOID(result)()(return) WEFT__DEFAULT_OF(result, name, __VA_ARGS__)                    \
			(WEFT__FORWARD(__VA_ARGS__));                                                                  \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return) weft__at_##name(                                                       \
			weft__k, weft__me __VA_OPT__(, ) WEFT__FORWARD(__VA_ARGS__));                                  \
	}

#define WEFT__THROWER(name, ...)                                                                                       \
	WEFT__HELPER WEFT__NORETURN void weft__at_##name(weft_coro_t *weft__k, weft_coro_t *weft__me                   \
							       WEFT__MORE_PARAMETERS(__VA_ARGS__))                     \
	{                                                                                                              \
		WEFT__FILL(void, name, __VA_ARGS__)                                                                    \
		(void)weft__me;                                                                                        \
		weft_exit(weft__k, &weft_effect_##name, &frame);                                                       \
	}                                                                                                              \
	WEFT__HELPER WEFT__NORETURN void name WEFT__PARAMETERS(__VA_ARGS__)                                            \
	{                                                                                                              \
		weft_coro_t *weft__k = weft__find(&weft_effect_##name);                                                \
                                                                                                                       \
		if (!weft__k) {                                                                                        \
			WEFT__DEFAULT_OF(void, name, __VA_ARGS__)(WEFT__FORWARD(__VA_ARGS__));                         \
			weft__die_default_returned(&weft_effect_##name);                                               \
		}                                                                                                      \
		weft__at_##name(weft__k, weft__k __VA_OPT__(, ) WEFT__FORWARD(__VA_ARGS__));                           \
	}

#define WEFT__ACCESSORS(result, name)                                                                                  \
	WEFT__HELPER struct weft__##name *weft__args_##name(weft_request_t r)                                          \
	{                                                                                                              \
		return (struct weft__##name *)weft__frame_of(r, &weft_effect_##name, sizeof(struct weft__##name)); \
	}                                                                                                              \
	WEFT__IF_VOID(result)()(WEFT__HELPER void weft__reply_##name(weft_request_t r, result weft__value) {           \
		weft__args_##name(r)->weft__result = WEFT__MOVED(result, weft__value);                                 \
	}                                                                                                              \
	WEFT__HELPER int weft__reply_to_##name(weft_coro_t *weft__k, weft_request_t r, result weft__value) {           \
		return weft_poke(weft__k, &weft__args_##name(r)->weft__result, &weft__value, sizeof weft__value);      \
	})
/* clang-format on */

#endif /* WEFT_EFFECT_H */
