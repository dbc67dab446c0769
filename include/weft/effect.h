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
 *  1. An effect is the address of an object that every declaration of it defines and the linker merges: no tags, no
 *     limit. The symbol holds namespace, name and signature, so what differs is never merged. Where the linker could
 *     not merge what is equal, the search compares that too, and remembers what it found (weft/internal/identity.h).
 *     Shared objects loaded by dlopen have the program's addresses, and the program's speed, if the program exports
 *     them (weft.pc, the CMake package and `weft cc` take care of it).
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
 * Nothing here may be called in a signal handler: a perform may suspend what the signal interrupted.
 */
#ifndef WEFT_EFFECT_H
#define WEFT_EFFECT_H

/* __VA_OPT__ and empty variadic arguments, standard since C++20 and C23, are no reason to warn in older modes. */
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wgnu-zero-variadic-macro-arguments"
#pragma clang diagnostic ignored "-Wpredefined-identifier-outside-function"
#else
#pragma GCC system_header
#endif

#include <weft/handler.h>
#include <weft/internal/last.h>

WEFT_EXTERN_C_BEGIN

/** Identity and description of an effect or a family. Two addresses may stand for one effect: see weft_same_effect.
 * Filled in when the program, or the shared object that declares the effect, is loaded, before constructors without a
 * priority. */
typedef struct weft_effect {
	const char *name;
	const char *signature;		  /* "int tell(int, const char *)"; "" for a family */
	const struct weft_effect *family; /* the family it belongs to; itself if it stands alone */
	void (*default_handler)(void);	  /* private: see weft_set_default; atomic */
	uint32_t index;			  /* within the family, from 0 */
	uint32_t size;			  /* of its struct of arguments and result */
	/* Private. */
	const struct weft__declared *declared; /* the record that describes it */
	struct weft__group *group;	       /* of equal effects with other addresses; NULL: there are none; atomic */
	struct weft_effect *next;	       /* in the list of its hash */
	struct weft_effect *members;	       /* of a family: its effects, linked by `sibling`; atomic */
	struct weft_effect *sibling;
	uint64_t hash; /* of its identity */
} weft_effect_t;

/* ---- declaring: at file scope, in a header or a source file; in as many files as you like, once in each ------- */

/**
 * WEFT_EFFECT(result, name, type, parameter, …): one effect. Defines `result name(type parameter, …)`, which performs
 * it: control goes to the innermost handler, and the call returns what that replies. With no handler in scope the
 * default handler runs in place; with neither, the process ends with a message that names the effect.
 * Up to eight parameters. The name is a C identifier. The types of parameters may be any: a pointer to a function is
 * `void (*)(int), f`, an array is a pointer, as in C. Of a type with a comma in it make a typedef, and of a result that
 * is a pointer to a function.
 *
 * Which declarations declare the same effect, in whatever file or shared object, C or C++? Those with the same
 * namespace (see WEFT_NAMESPACE), the same name, and the same types of result and parameters, in the same order; of an
 * effect of a family, with the same family: its name and all its effects. The types' text counts, after the expansion
 * of macros and but for white space: `long` and `int64_t` are two types. Names of parameters do not count. `bool` is
 * `_Bool`.
 */
#define WEFT_EFFECT(result, name, ...) WEFT_EFFECT_AS(name, result, name, __VA_ARGS__)

/**
 * WEFT_EXCEPTION(name, type, parameter, …): an effect that does not return: performing it finishes the coroutine that
 * its handler resumed, saving nothing. Its default handler must end the program.
 */
#define WEFT_EXCEPTION(name, ...) WEFT_EXCEPTION_AS(name, name, __VA_ARGS__)

/**
 * WEFT_FAMILY(family, (result, name, type, parameter, …), …): up to sixteen effects that can be handled
 * together, by the family's name, or singly.
 */
#define WEFT_FAMILY(family, ...) WEFT_FAMILY_AS(, family, __VA_ARGS__)

/**
 * The same under other names in C, where the effect's name is taken: `send` is also a function of <sys/socket.h>.
 *   WEFT_EFFECT_AS(net_send, int, send, int, fd)      the effect `send`, which net_send(fd) performs
 *   WEFT_EXCEPTION_AS(net_fail, fail, int, error)     the exception `fail`
 *   WEFT_FAMILY_AS(net_, socket, (int, send, …), …)   the family `socket` with the effect `send`, …; in C net_socket,
 *                                                     net_send, …
 * Other macros are given the name in C: weft_handles(net_socket), weft_tail(net_send, fn). Messages say the effect's
 * own name, and that name is part of what the effect is.
 */
#define WEFT_EFFECT_AS(function, result, name, ...)                                                                    \
	WEFT__CAT(WEFT__EFFECT_, WEFT__SHAPE(__VA_ARGS__))                                                             \
	(#name, function, result, __VA_ARGS__)
#define WEFT_EXCEPTION_AS(function, name, ...)                                                                         \
	WEFT__CAT(WEFT__EXCEPTION_, WEFT__SHAPE(__VA_ARGS__))                                                          \
	(#name, function, __VA_ARGS__)
#define WEFT_FAMILY_AS(prefix, family, ...)                                                                            \
	WEFT__FAMILY(#family "{" WEFT__EACH(WEFT__MEMBER_IDENTITY, , __VA_ARGS__) "}", prefix, family, __VA_ARGS__)

/*
 * WEFT_NAMESPACE: if it is defined where effects are declared, the namespace of these effects: an identifier, or
 * several with dots between. Effects of different namespaces are different, whatever their names. A source file defines
 * WEFT_NAMESPACE before its declarations. The header of a library, which may be included where another namespace is in
 * force, puts this around its declarations:
 *
 *   #pragma push_macro("WEFT_NAMESPACE")
 *   #undef WEFT_NAMESPACE
 *   #define WEFT_NAMESPACE net
 *   WEFT_FAMILY_AS(net_, socket, …);
 *   #pragma pop_macro("WEFT_NAMESPACE")
 *
 * In C++ a namespace of C++ that the declaration stands in is the effect's namespace, and WEFT_NAMESPACE does not count
 * there. So net::socket is the effect that C declares as `socket` with the namespace net; but as the two have different
 * addresses, a yield from the one language to the other takes a search. What is declared in an unnamed namespace is an
 * effect of that file only.
 */

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

/**
 * weft_resume_throw(k, handles, exception, args…): as weft_resume(k, NULL, handles), but the call in which `k` waits
 * (a perform, weft_suspend, weft_yield, weft_switch) does not return. In its place the exception (WEFT_EXCEPTION) is
 * performed, by `k` or whichever coroutine inside `k` made that call: its cleanups run, its handlers may have a clause
 * for the exception, and so may `handles`. Of a coroutine that has not begun: reported.
 */
#define weft_resume_throw(k, handles, exception, ...)                                                                  \
	((weft__##exception##__resume_throw)((k), (handles)__VA_OPT__(, ) __VA_ARGS__))

/** weft_resume_throw_under(k, handler, state, exception, args…): the same, as weft_resume_under. */
#define weft_resume_throw_under(k, handler, state_, exception, ...)                                                    \
	(__extension__({                                                                                               \
		weft_coro_t *weft__into = (k);                                                                         \
		weft__into->state = (state_);                                                                          \
		(weft__##exception##__resume_throw)(weft__into,                                                        \
						    weft__handles((uintptr_t)(handler) + WEFT__HANDLES_TABLE)          \
							__VA_OPT__(, ) __VA_ARGS__);                                   \
	}))

/** Has the coroutine's function returned? Its result is `r.payload`. */
WEFT__INLINE bool weft_returned(weft_request_t r)
{
	return !r.effect;
}

/**
 * Do the addresses stand for one effect, or one family? Equal ones do, and so do several that the linker did not merge:
 * with -Bsymbolic, RTLD_LOCAL, hidden symbols, or between C and a namespace of C++. A handler is given the address that
 * its own set or table has; only with WEFT_HANDLE_ALL it may be another one.
 */
WEFT_API bool weft_same_effect(const weft_effect_t *a, const weft_effect_t *b);

/** Is the request this effect? */
#define weft_is(name, r) ((r).effect == &weft_effect_##name)

/** The arguments of a request that is this effect (else: reported), as a struct with the parameters' names. On the
 * performer's stack: valid until it is resumed or deleted. */
#define weft_args(name, r) ((weft__##name##__args)(r))

/**
 * Set the result of an effect for one coroutine, when others may have run since, or for a clone that was suspended in
 * the same request: weft_reply_to(k, name, r, value). 0, or a negative errno as weft_poke.
 */
#define weft_reply_to(k, name, r, ...) ((weft__##name##__reply_to)((k), (r), __VA_ARGS__))

/** The type of that struct: a handler that resumes before it is done with the arguments copies them. */
#define weft_args_t(name) struct weft__##name##__frame

/** Set the result of a request that is this effect (else: reported); delivered when its coroutine is resumed. */
#define weft_reply(name, r, ...) ((weft__##name##__reply)((r), __VA_ARGS__))

/** For `switch (weft_op(family, r)) { case weft_case(get): … }`: the place of the request in its family; -1 if it is
 * not of this family. */
#define weft_op(family_, r) ((r).effect && (r).effect->family == &weft_effect_##family_ ? (int)(r).effect->index : -1)
#define weft_case(name) weft__##name##__index

/** The name of the request's effect, for messages: "return" if it is none. */
WEFT_API const char *weft_request_name(weft_request_t r);

/* ---- performing directly ------------------------------------------------------------------------------------ */

/** The coroutine whose suspension hands this effect to its handler, or NULL: find once, then perform often. */
#define weft_locate(name) (weft__locate(&weft_effect_##name))

/**
 * Perform at a coroutine found by weft_locate, without a search. The coroutine must still be the current one or an
 * ancestor of it, and its resumer must still handle the effect. So locate again after a suspension. Debug builds report
 * other coroutines and other resumers. Release builds do not, because a look would cost what weft_locate saves: a
 * perform at a coroutine that has ended, waits, or runs elsewhere hangs or crashes; and a resumer that does not handle
 * the effect gets a request that it did not ask for.
 */
#define weft_perform_at(name, k, ...)                                                                                  \
	((weft__##name##__at)(weft__located((k), &weft_effect_##name), weft__self() __VA_OPT__(, ) __VA_ARGS__))

/**
 * Set the default handler of an effect: a function of the same type as the one that performs it, which runs in place,
 * on the performer's stack, where no handler is in scope. NULL removes it. Thread-safe; process-wide. Not in a signal
 * handler: the call takes a lock.
 */
#define weft_set_default(name, function)                                                                               \
	do {                                                                                                           \
		weft__##name##__function *weft__function = (function);                                                 \
		weft__set_default(&weft_effect_##name, (void (*)(void))weft__function);                                \
	} while (0)

/* ---- what the macros stand on -------------------------------------------------------------------------------- */

/* Innermost coroutine on the chain of the current one whose resumer handles the effect, or NULL. */
WEFT_API weft_coro_t *weft__locate(const weft_effect_t *effect);
WEFT_API void weft__check_located(weft_coro_t *k, const weft_effect_t *effect);
WEFT__INLINE weft_coro_t *weft__located(weft_coro_t *k, const weft_effect_t *effect)
{
#if WEFT_DEBUG
	weft__check_located(k, effect);
#endif
	(void)effect;
	return k;
}
/*
 * What a perform finds, valid until the next call of this: search, and remember it at that place of the table. NULL if
 * nobody handles the effect and it has a default handler; with neither it ends the process. `label`: of which instance
 * of its family; NULL: none. (src/effect/find.c)
 */
struct weft_label;
WEFT_API const struct weft__found *weft__find(const weft_effect_t *effect, const struct weft_label *label,
					      unsigned place);
/* The same for an exception: nothing is remembered of those that it ends. NULL: there is a default handler. */
WEFT_API weft_coro_t *weft__find_exit(const weft_effect_t *effect, unsigned place);
/* The next handler of an effect outside of that of found->k, as weft__find: `enter` and `k` become its. False if there
 * is none but a default handler. */
WEFT_API bool weft__outside(struct weft__found *found, const weft_effect_t *effect, const struct weft_label *label);
/* Who answers weft_generalize: `enter` is called in place; if that is NULL, `k` is suspended. Without `k` a handler
 * further out, because the clause's coroutine was resumed under one that does not handle the effect. */
struct weft__general {
	weft_coro_t *k;
	void (*enter)(void);
};
WEFT_API struct weft__general weft__generalize(const weft_effect_t *effect);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_forward(const weft_effect_t *effect);
/* What a handler located before does with an effect: what weft__found says; NULL: it is to be yielded. */
WEFT_API void (*weft__enter_of(const weft_coro_t *k, const weft_effect_t *effect))(void);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_wrong_request(weft_request_t r, const weft_effect_t *expected);
WEFT_API void weft__set_default(weft_effect_t *effect, void (*handler)(void));
/* The address of the effect that k's handler knows. */
WEFT_API const weft_effect_t *weft__known_as(const weft_coro_t *k, const weft_effect_t *effect);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_default_returned(const weft_effect_t *effect);

/* The same where the next one outside is handled by the same table, as in a chain of handlers made by one function.
 * `view`: inside found->enter, which is a clause of that table unless found->k was moved meanwhile. */
WEFT__INLINE bool weft__like_before(struct weft__found *found, const struct weft__view *view)
{
	weft_coro_t *k = found->k->parent;

	if (k->handled != found->k->handled || !found->enter || weft__was_moved(view) || weft__masked(k->view))
		return false;
	found->k = k;
	return true;
}

/* Does the resumer of the current coroutine handle the family, by its own name, and is that seen from here? */
WEFT__INLINE bool weft__handles_directly(const weft_coro_t *self, const weft_effect_t *family)
{
	return weft__likely(self->handled == (uintptr_t)family) && weft__likely(!weft__masked(self->view));
}

/* A coroutine executes a tail clause of k's handler: it sees the handlers outside of that. */
struct weft__mask {
	weft_coro_t *self;
	const struct weft__view *before;
};

WEFT__INLINE struct weft__mask weft__mask(weft_coro_t *self, const weft_coro_t *k, const struct weft_label *label)
{
	struct weft__mask mask = {self, self->view};

	self->view = weft__inside_for(k, label);
	return mask;
}

/* Also when an exception leaves the clause. */
WEFT__INLINE void weft__unmask(struct weft__mask *mask)
{
	mask->self->view = mask->before;
}

WEFT__INLINE void weft__perform(weft_coro_t *handler, weft_coro_t *self, const weft_effect_t *effect, void *frame)
{
#if WEFT_DEBUG
	if (weft__unlikely(!weft__is_ancestor(handler, self)))
		weft__die_not_ancestor(handler);
#endif
	(void)weft__yield_near(handler, self, effect, frame);
}

/* The same where nobody looked what lies between, and how the handler knows the effect. */
WEFT__INLINE void weft__perform_far(weft_coro_t *handler, weft_coro_t *self, const weft_effect_t *effect, void *frame)
{
	unsigned char unusual = __atomic_load_n(&weft__unusual, __ATOMIC_RELAXED);

#if WEFT_DEBUG
	if (weft__unlikely(!weft__is_ancestor(handler, self)))
		weft__die_not_ancestor(handler);
#endif
	if (weft__unlikely(unusual)) {
		effect = weft__known_as(handler, effect);
		if (unusual & WEFT__COPYING_USED && handler != self) {
			(void)weft__yield_through(handler, self, effect, frame);
			return;
		}
	}
	weft__perform(handler, self, effect, frame);
}

WEFT__HELPER weft_request_t weft__resume_throwing(weft_coro_t *k, weft_handles_t handles, weft__thrower_t *throws,
						  void *argument)
{
#if WEFT_DEBUG
	if (weft__unlikely(!k))
		weft__die_null("weft_resume_throw");
#endif
	weft__throw_into(k, throws, argument);
	return weft__resume(&k, NULL, handles.word);
}

WEFT__INLINE void *weft__frame_of(weft_request_t r, const weft_effect_t *effect)
{
	if (weft__unlikely(r.effect != effect))
		weft__die_wrong_request(r, effect);
	return r.payload;
}

WEFT_EXTERN_C_END

#include <weft/internal/identity.h>

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

#define WEFT__DESCRIBE_OPERATION(identity, own, text, family, result, name, ...)                                       \
	WEFT__DESCRIBE(identity, own, name, text, WEFT__SIGNATURE(text, result, __VA_ARGS__), family,                  \
		       weft__##name##__index, sizeof(struct weft__##name##__frame))
#define WEFT__SIGNATURE(text, result, ...)                                                                             \
	#result " " text "(" WEFT__PAIRS(WEFT__TYPE_TEXT, WEFT__COMMA_TEXT, __VA_ARGS__) ")"
#define WEFT__TYPE_TEXT(type, name) #type
#define WEFT__COMMA_TEXT() ", "
/* The same for symbols, which may hold no comma. */
#define WEFT__IDENTITY(text, result, ...)                                                                              \
	#result " " text "(" WEFT__PAIRS(WEFT__TYPE_TEXT, WEFT__BAR_TEXT, __VA_ARGS__) ")"
#define WEFT__BAR_TEXT() "|"
#define WEFT__MEMBER_IDENTITY(none, member) WEFT__MEMBER_IDENTITY_ member "|"
#define WEFT__MEMBER_IDENTITY_(...) WEFT__MEMBER_IDENTITY__(__VA_ARGS__)
#define WEFT__MEMBER_IDENTITY__(result, name, ...)                                                                     \
	WEFT__CAT(WEFT__IDENTITY_, WEFT__SHAPE(__VA_ARGS__))(#name, result, __VA_ARGS__)
#define WEFT__IDENTITY_EVEN WEFT__IDENTITY
#define WEFT__IDENTITY_ODD(...) ""
#define WEFT__IDENTITY_MANY(...) ""

/* `identity`: the text of the family in symbols. */
#define WEFT__FAMILY(identity, prefix, family, ...)                                                                    \
	WEFT__AT_FILE_SCOPE(#family)                                                                                   \
	WEFT__DESCRIBE(identity, identity, prefix##family, #family, "", prefix##family, 0, 0)                          \
	typedef struct weft__clauses_are_for_the_effects_of_a_family weft__##prefix##family##__tail,                   \
	    weft__##prefix##family##__abort, weft__##prefix##family##__general;                                        \
	enum weft__##prefix##family##__effects{WEFT__EACH(WEFT__FAMILY_INDEX, prefix, __VA_ARGS__)                     \
						   weft__##prefix##family##__count};                                   \
	enum weft__##prefix##family##__clauses{WEFT__EACH(WEFT__CLAUSE_FOR, (prefix, family), __VA_ARGS__)};           \
	WEFT__EACH(WEFT__FAMILY_MEMBER, (identity, prefix, family), __VA_ARGS__)                                       \
	WEFT__END

#define WEFT__FAMILY_INDEX(prefix, effect) WEFT__INDEX_OF(prefix, WEFT__UNWRAP effect)
#define WEFT__INDEX_OF(...) WEFT__INDEX_OF_(__VA_ARGS__)
#define WEFT__INDEX_OF_(prefix, result, name, ...) weft__##prefix##name##__index,
/* For WEFT_HANDLER_OF. */
#define WEFT__CLAUSE_FOR(names, effect) WEFT__CLAUSE_FOR_(WEFT__UNWRAP names, WEFT__UNWRAP effect)
#define WEFT__CLAUSE_FOR_(...) WEFT__CLAUSE_FOR__(__VA_ARGS__)
#define WEFT__CLAUSE_FOR__(prefix, family, result, name, ...) weft__##prefix##family##__clause_for__##prefix##name,
#define WEFT__FAMILY_MEMBER(names, effect) WEFT__FAMILY_MEMBER_(WEFT__UNWRAP names, WEFT__UNWRAP effect)
#define WEFT__FAMILY_MEMBER_(...) WEFT__FAMILY_MEMBER__(__VA_ARGS__)
#define WEFT__FAMILY_MEMBER__(identity, prefix, family, result, name, ...)                                             \
	WEFT__CAT(WEFT__MEMBER_, WEFT__SHAPE(__VA_ARGS__))                                                             \
	(#name, identity "." #name, NULL, prefix##family, result, prefix##name, __VA_ARGS__)

/* A declaration inside of a function would be many errors; this is the first. The name of no function is "", but in g++
 * "top level". */
#if defined(__cplusplus) && !defined(__clang__)
#define WEFT__AT_FILE_SCOPE(text)                                                                                      \
	static_assert(sizeof(__FUNCTION__) == 10, "effect " text ": declare effects outside of functions");
#else
#define WEFT__AT_FILE_SCOPE(text)                                                                                      \
	WEFT__STATIC_ASSERT(sizeof(__FUNCTION__) == 1, "effect " text ": declare effects outside of functions");
#endif

/* By the shape of the list of parameters. */
#define WEFT__EFFECT_EVEN(text, name, result, ...)                                                                     \
	WEFT__AT_FILE_SCOPE(text)                                                                                      \
	enum { weft__##name##__index };                                                                                \
	WEFT__OPERATION(text, WEFT__IDENTITY(text, result, __VA_ARGS__), WEFT__IDENTITY(text, result, __VA_ARGS__),    \
			name, result, name, __VA_ARGS__)                                                               \
	WEFT__END
#define WEFT__EXCEPTION_EVEN(text, name, ...)                                                                          \
	WEFT__AT_FILE_SCOPE(text)                                                                                      \
	enum { weft__##name##__index };                                                                                \
	WEFT__FRAME(void, name, __VA_ARGS__)                                                                           \
	typedef void weft__##name##__function WEFT__PARAMETERS(__VA_ARGS__);                                           \
	typedef struct weft__an_exception_has_abort_clauses_only weft__##name##__tail, weft__##name##__general;        \
	WEFT__DESCRIBE_OPERATION(WEFT__IDENTITY(text, exception, __VA_ARGS__),                                         \
				 WEFT__IDENTITY(text, exception, __VA_ARGS__), text, name, exception, name,            \
				 __VA_ARGS__)                                                                          \
	WEFT__THROWER(name, __VA_ARGS__)                                                                               \
	WEFT__THROWN_INTO(name, __VA_ARGS__)                                                                           \
	WEFT__CLAUSES(void, name, __VA_ARGS__)                                                                         \
	WEFT__ACCESSORS(void, name)                                                                                    \
	WEFT__END
#define WEFT__MEMBER_EVEN WEFT__OPERATION
#define WEFT__EFFECT_ODD(text, name, ...) WEFT__NO_COMMA(text, name)
#define WEFT__EXCEPTION_ODD WEFT__EFFECT_ODD
#define WEFT__MEMBER_ODD(text, identity, own, family, result, name, ...) WEFT__NO_COMMA(text, name);
#define WEFT__EFFECT_MANY(text, name, ...) WEFT__TOO_MANY(text, name)
#define WEFT__EXCEPTION_MANY WEFT__EFFECT_MANY
#define WEFT__MEMBER_MANY(text, identity, own, family, result, name, ...) WEFT__TOO_MANY(text, name);
#define WEFT__NO_COMMA(text, name)                                                                                     \
	WEFT__WRONG(name, "effect " text ": each parameter is a type, a comma and a name, as in: int, count; of a "    \
			  "type with a comma in it make a typedef")
#define WEFT__TOO_MANY(text, name)                                                                                     \
	WEFT__WRONG(name, "effect " text ": eight parameters at most; put the others into a struct")
/* clang shows each macro that an assertion came through, but of a name only where the user wrote the name. A type with
 * a comma in it may have taken the place of the name. */
#if defined(__clang__) && defined(__cplusplus)
#define WEFT__WRONG(name, message)                                                                                     \
	static_assert(!__builtin_strchr(#name, '>'), message);                                                         \
	extern int name __attribute__((unavailable(message)));                                                         \
	extern char weft__wrong[sizeof(name)]
#elif defined(__clang__)
#define WEFT__WRONG(name, message)                                                                                     \
	extern int name __attribute__((unavailable(message)));                                                         \
	extern char weft__wrong[sizeof(name)]
#elif defined(__cplusplus)
#define WEFT__WRONG(name, message) static_assert(0, message)
#else
#define WEFT__WRONG(name, message) _Static_assert(0, message)
#endif

#define WEFT__OPERATION(text, identity, own, family, result, name, ...)                                                \
	WEFT__FRAME(result, name, __VA_ARGS__)                                                                         \
	typedef result weft__##name##__function WEFT__PARAMETERS(__VA_ARGS__);                                         \
	typedef result weft__##name##__tail(void *state WEFT__MORE_PARAMETERS(__VA_ARGS__));                           \
	WEFT__DESCRIBE_OPERATION(identity, own, text, family, result, name, __VA_ARGS__)                               \
	WEFT__PERFORMER(family, result, name, __VA_ARGS__)                                                             \
	WEFT__CLAUSES(result, name, __VA_ARGS__)                                                                       \
	WEFT__GENERAL_CLAUSES(result, name, __VA_ARGS__)                                                               \
	WEFT__ACCESSORS(result, name)

/* What a request points to: arguments by name, then the result. */
#define WEFT__FRAME(result_, name, ...)                                                                                \
	struct weft__##name##__frame {                                                                                 \
		WEFT__PAIRS(WEFT__FIELD, WEFT__NOTHING, __VA_ARGS__)                                                   \
		WEFT__IF_VOID(result_)(char weft__none)(result_ weft__result WEFT__ZEROED);                            \
	};
#ifdef __cplusplus
#define WEFT__ZEROED                                                                                                   \
	{                                                                                                              \
	}
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name##__frame frame = {WEFT__FORWARD(__VA_ARGS__) __VA_OPT__(, ) WEFT__IF_VOID(result)(0)({})};
/* The same for one that does not come back. */
#define WEFT__FILL_LAST(result, name, ...)                                                                             \
	weft__last<weft__##name##__frame> weft__lasting(                                                               \
	    weft__##name##__frame{WEFT__FORWARD(__VA_ARGS__) __VA_OPT__(, ) WEFT__IF_VOID(result)(0)({})});            \
	struct weft__##name##__frame &frame = weft__lasting.get();
/* Values are moved, references stay what they are. */
#define WEFT__MOVED(type, value) static_cast<decltype(value) &&>(value)
#define WEFT__FORWARD(...) WEFT__PAIRS(WEFT__MOVED, WEFT__COMMA, __VA_ARGS__)
#define WEFT__RESULT_OF(type) WEFT__MOVED(type, frame.weft__result)
/* Is an argument that was given to one clause there for the next? */
#define WEFT__CAN_FORWARD(...) true WEFT__PAIRS(WEFT__AND_TRIVIAL, WEFT__NOTHING, __VA_ARGS__)
#define WEFT__AND_TRIVIAL(type, name) &&__is_trivially_copyable(type)
#else
#define WEFT__ZEROED
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name##__frame frame;                                                                            \
	WEFT__PAIRS(WEFT__STORE, WEFT__NOTHING, __VA_ARGS__)                                                           \
	WEFT__IF_VOID(result)()(__builtin_memset(&frame.weft__result, 0, sizeof(frame.weft__result));)
#define WEFT__FILL_LAST WEFT__FILL
#define WEFT__MOVED(type, value) value
#define WEFT__FORWARD WEFT__NAMES
#define WEFT__RESULT_OF(type) frame.weft__result
#define WEFT__CAN_FORWARD(...) true
#endif

#define WEFT__AND_FORWARD(...) __VA_OPT__(, ) WEFT__FORWARD(__VA_ARGS__)

#define WEFT__DEFAULT_OF(result, name, ...)                                                                            \
	((result(*) WEFT__PARAMETERS(__VA_ARGS__))__atomic_load_n(&weft_effect_##name.default_handler,                 \
								  __ATOMIC_ACQUIRE))

/* Side by side in the table, and the same in every translation unit. */
#define WEFT__PLACE_OF(name) ((weft__##name##__index ^ (unsigned)sizeof(#name)) % WEFT__FOUND_PLACES)

/* A choice between two expansions is no call. */
/* clang-format off */
#define WEFT__PERFORMER(family, result, name, ...)                                                                     \
	/* At a coroutine whose resumer handles it. */                                                                 \
	WEFT__HOT result weft__##name##__yield(weft_coro_t *weft__k,                                                   \
					       weft_coro_t *weft__me WEFT__MORE_PARAMETERS(__VA_ARGS__))               \
	{                                                                                                              \
		WEFT__FILL(result, name, __VA_ARGS__)                                                                  \
		weft__perform(weft__k, weft__me, &weft_effect_##name, weft__address_of(frame));                        \
		WEFT__IF_VOID(result)()(return WEFT__RESULT_OF(result);)                                               \
	}                                                                                                              \
	WEFT__HOT result weft__##name##__far(weft_coro_t *weft__k,                                                     \
					     weft_coro_t *weft__me WEFT__MORE_PARAMETERS(__VA_ARGS__))                 \
	{                                                                                                              \
		WEFT__FILL(result, name, __VA_ARGS__)                                                                  \
		weft__perform_far(weft__k, weft__me, &weft_effect_##name, &frame);                                     \
		WEFT__IF_VOID(result)()(return WEFT__RESULT_OF(result);)                                               \
	}                                                                                                              \
	/* The clause that the current coroutine has just executed leaves it to a handler further out. */              \
	__attribute__((noinline, unused))                                                                              \
	static result weft__##name##__forward(weft__##name##__tail *weft__clause, weft_coro_t *weft__me,               \
					      const struct weft_label *weft__label                                     \
						  WEFT__MORE_PARAMETERS(__VA_ARGS__))                                  \
	{                                                                                                              \
		struct weft__found weft__f = {NULL, NULL, WEFT__ANY(weft__clause), weft__owner_of(weft__me->view)};    \
                                                                                                                       \
		if (!(WEFT__CAN_FORWARD(__VA_ARGS__)))                                                                 \
			weft__die_forward(&weft_effect_##name);                                                        \
		while (weft__like_before(&weft__f, weft__me->view) ||                                                  \
		       weft__outside(&weft__f, &weft_effect_##name, weft__label)) {                                    \
			weft__me->view = weft__inside_as(weft__f.k, weft__me->view);                                   \
			if (!weft__f.enter) {                                                                          \
				WEFT__IF_VOID(result)()(return) (weft__##name##__far)(weft__f.k, weft__me              \
										    WEFT__AND_FORWARD(__VA_ARGS__));   \
				WEFT__IF_VOID(result)(return;)()                                                       \
			}                                                                                              \
			WEFT__IF_VOID(result)()(result weft__r =)                                                      \
			((weft__##name##__tail *)weft__f.enter)(weft__f.k->state WEFT__AND_FORWARD(__VA_ARGS__));      \
			if (weft__likely(!weft__was_forwarded(weft__me->view))) {                                      \
				WEFT__IF_VOID(result)(return;)(return WEFT__MOVED(result, weft__r);)                   \
			}                                                                                              \
		}                                                                                                      \
		weft__me->view = weft__inside(weft__f.k);                                                              \
		WEFT__IF_VOID(result)()(return) WEFT__DEFAULT_OF(result, name, __VA_ARGS__)                            \
		(WEFT__FORWARD(__VA_ARGS__));                                                                          \
	}                                                                                                              \
	/* By a tail clause of the handler of k, in place. */                                                          \
	WEFT__HOT result weft__##name##__enter(weft__##name##__tail *weft__clause, const weft_coro_t *weft__k,         \
					       weft_coro_t *weft__me, const struct weft_label *weft__label             \
						   WEFT__MORE_PARAMETERS(__VA_ARGS__))                                 \
	{                                                                                                              \
		struct weft__mask weft__m __attribute__((cleanup(weft__unmask))) =                                     \
			weft__mask(weft__me, weft__k, weft__label);                                                    \
                                                                                                                       \
		(void)weft__m;                                                                                         \
		WEFT__IF_VOID(result)()(result weft__r =)                                                              \
		weft__clause(weft__k->state WEFT__AND_FORWARD(__VA_ARGS__));                                           \
		if (weft__unlikely(weft__was_forwarded(weft__me->view))) {                                             \
			WEFT__IF_VOID(result)()(return) (weft__##name##__forward)(weft__clause, weft__me,              \
							weft__label WEFT__AND_FORWARD(__VA_ARGS__));                   \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return WEFT__MOVED(result, weft__r);)                                          \
	}                                                                                                              \
	/* At a handler that was located. */                                                                           \
	WEFT__HELPER result weft__##name##__at(weft_coro_t *weft__k,                                                   \
					   weft_coro_t *weft__me WEFT__MORE_PARAMETERS(__VA_ARGS__))                   \
	{                                                                                                              \
		if (weft__unlikely(weft__handles_table(weft__k->handled))) {                                           \
			weft__##name##__tail *weft__clause =                                                           \
				(weft__##name##__tail *)weft__enter_of(weft__k, &weft_effect_##name);                  \
                                                                                                                       \
			if (weft__clause) {                                                                            \
				WEFT__IF_VOID(result)()(return) (weft__##name##__enter)(                               \
					weft__clause, weft__k, weft__me, NULL WEFT__AND_FORWARD(__VA_ARGS__));         \
				WEFT__IF_VOID(result)(return;)()                                                       \
			}                                                                                              \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return)                                                                        \
		(weft__##name##__far)(weft__k, weft__me WEFT__AND_FORWARD(__VA_ARGS__));                               \
	}                                                                                                              \
	/* In a tail clause: once more, for a clause of another kind, or for a handler further out. */                 \
	WEFT__HELPER result weft__##name##__generalize WEFT__PARAMETERS(__VA_ARGS__)                                   \
	{                                                                                                              \
		struct weft__general weft__g = weft__generalize(&weft_effect_##name);                                  \
		weft_coro_t *weft__me = weft__self();                                                                  \
                                                                                                                       \
		if (weft__unlikely(!weft__g.k)) {                                                                      \
			struct weft__mask weft__m __attribute__((cleanup(weft__unmask))) = {weft__me, weft__me->view}; \
                                                                                                                       \
			(void)weft__m;                                                                                 \
			WEFT__IF_VOID(result)()(return) (weft__##name##__forward)(NULL, weft__me,                      \
								NULL WEFT__AND_FORWARD(__VA_ARGS__));                  \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		if (weft__unlikely(weft__g.enter != NULL)) {                                                           \
			WEFT__IF_VOID(result)()(return) ((weft__##name##__tail *)weft__g.enter)(                       \
				weft__g.k->state WEFT__AND_FORWARD(__VA_ARGS__));                                      \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return) (weft__##name##__far)(weft__g.k, weft__me                              \
								 WEFT__AND_FORWARD(__VA_ARGS__));                      \
	}                                                                                                              \
	/* After a search. */                                                                                          \
	__attribute__((noinline, unused))                                                                              \
	static result weft__##name##__search(const weft_label_t *weft__label WEFT__MORE_PARAMETERS(__VA_ARGS__))       \
	{                                                                                                              \
		const struct weft__found *weft__f =                                                                    \
			weft__find(&weft_effect_##name, weft__label, WEFT__PLACE_OF(name));                            \
                                                                                                                       \
		if (weft__unlikely(!weft__f)) {                                                                        \
			WEFT__IF_VOID(result)()(return) WEFT__DEFAULT_OF(result, name, __VA_ARGS__)                    \
			(WEFT__FORWARD(__VA_ARGS__));                                                                  \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		if (weft__f->enter) {                                                                                  \
			WEFT__IF_VOID(result)()(return) (weft__##name##__enter)(                                       \
				(weft__##name##__tail *)weft__f->enter, weft__f->k,                                    \
				weft__self(), weft__label WEFT__AND_FORWARD(__VA_ARGS__));                             \
			WEFT__IF_VOID(result)(return;)()                                                               \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return) (weft__##name##__far)(weft__f->k, weft__self()                         \
								 WEFT__AND_FORWARD(__VA_ARGS__));                      \
	}                                                                                                              \
	WEFT__HOT result name WEFT__PARAMETERS(__VA_ARGS__)                                                            \
	{                                                                                                              \
		weft_coro_t *weft__me = weft__performer(), *weft__k = weft__me;                                        \
		struct weft__found weft__f;                                                                            \
                                                                                                                       \
		if (weft__unlikely(!weft__me || !weft__handles_directly(weft__me, &weft_effect_##family))) {           \
			if (weft__unlikely(!weft__me || !weft__look_up(weft__me->view, &weft_effect_##name,            \
								       WEFT__PLACE_OF(name), &weft__f))) {             \
				WEFT__IF_VOID(result)()(return)                                                        \
				(weft__##name##__search)(NULL WEFT__AND_FORWARD(__VA_ARGS__));                         \
				WEFT__IF_VOID(result)(return;)()                                                       \
			}                                                                                              \
			if (weft__f.enter) {                                                                           \
				WEFT__IF_VOID(result)()(return) (weft__##name##__enter)(                               \
					(weft__##name##__tail *)weft__f.enter, weft__f.k,                              \
					weft__me, NULL WEFT__AND_FORWARD(__VA_ARGS__));                                \
				WEFT__IF_VOID(result)(return;)()                                                       \
			}                                                                                              \
			weft__k = weft__f.k;                                                                           \
		}                                                                                                      \
		WEFT__IF_VOID(result)()(return)                                                                        \
		(weft__##name##__yield)(weft__k, weft__me WEFT__AND_FORWARD(__VA_ARGS__));                             \
	}

#define WEFT__THROWER(name, ...)                                                                                       \
	WEFT__HELPER WEFT__NORETURN void weft__##name##__at(weft_coro_t *weft__k, weft_coro_t *weft__me                \
							       WEFT__MORE_PARAMETERS(__VA_ARGS__))                     \
	{                                                                                                              \
		WEFT__FILL_LAST(void, name, __VA_ARGS__)                                                               \
		(void)weft__me;                                                                                        \
		weft_exit(weft__k, weft__known_as(weft__k, &weft_effect_##name), &frame);                              \
	}                                                                                                              \
	/* A function of its own: the struct of arguments is not in the frames of whoever may throw. */                \
	WEFT__COLD WEFT__NORETURN __attribute__((unused)) static void name WEFT__PARAMETERS(__VA_ARGS__)               \
	{                                                                                                              \
		weft_coro_t *weft__me = weft__self();                                                                  \
                                                                                                                       \
		if (!weft__me || !weft__handles_directly(weft__me, &weft_effect_##name))                               \
			weft__me = weft__find_exit(&weft_effect_##name, WEFT__PLACE_OF(name));                         \
		if (!weft__me) {                                                                                       \
			WEFT__DEFAULT_OF(void, name, __VA_ARGS__)(WEFT__FORWARD(__VA_ARGS__));                         \
			weft__die_default_returned(&weft_effect_##name);                                               \
		}                                                                                                      \
		(weft__##name##__at)(weft__me, weft__me WEFT__AND_FORWARD(__VA_ARGS__));                               \
	}

/* Perform it elsewhere: where a coroutine waits that is to be continued. */
#define WEFT__THROWN_INTO(name, ...)                                                                                   \
	WEFT__COLD WEFT__NORETURN __attribute__((unused)) static void weft__##name##__throw(void *weft__frame)         \
	{                                                                                                              \
		struct weft__##name##__frame *frame = (struct weft__##name##__frame *)weft__frame;                     \
                                                                                                                       \
		(void)frame;                                                                                           \
		name(WEFT__PAIRS(WEFT__FIELD_OF, WEFT__COMMA, __VA_ARGS__));                                           \
	}                                                                                                              \
	WEFT__HELPER void *weft__##name##__continue_throw(                                                             \
		weft_resumption_t *weft__k WEFT__MORE_PARAMETERS(__VA_ARGS__))                                         \
	{                                                                                                              \
		WEFT__FILL(void, name, __VA_ARGS__)                                                                    \
		return weft__continue_throwing(weft__k, weft__##name##__throw, &frame);                                \
	}                                                                                                              \
	WEFT__HELPER weft_request_t weft__##name##__resume_throw(                                                      \
		weft_coro_t *weft__k, weft_handles_t weft__handles WEFT__MORE_PARAMETERS(__VA_ARGS__))                 \
	{                                                                                                              \
		WEFT__FILL(void, name, __VA_ARGS__)                                                                    \
		return weft__resume_throwing(weft__k, weft__handles, weft__##name##__throw, &frame);                   \
	}

#define WEFT__ACCESSORS(result, name)                                                                                  \
	WEFT__HELPER struct weft__##name##__frame *weft__##name##__args(weft_request_t r)                              \
	{                                                                                                              \
		return (struct weft__##name##__frame *)weft__frame_of(r, &weft_effect_##name);                         \
	}                                                                                                              \
	WEFT__IF_VOID(result)()(WEFT__HELPER void weft__##name##__reply(weft_request_t r, result weft__value) {        \
		(weft__##name##__args)(r)->weft__result = WEFT__MOVED(result, weft__value);                            \
	}                                                                                                              \
	WEFT__HELPER int weft__##name##__reply_to(weft_coro_t *weft__k, weft_request_t r, result weft__value) {        \
		return weft_poke(weft__k, &(weft__##name##__args)(r)->weft__result, &weft__value, sizeof weft__value); \
	})
/* clang-format on */

#endif /* WEFT_EFFECT_H */
