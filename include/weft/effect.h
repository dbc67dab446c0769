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
 *  1. An effect is the address of an object that every declaration of it defines and the linker merges: there are no
 *     tags, and no limit. The symbol holds namespace, name and signature, so different effects are never merged. If the
 *     linker cannot merge equal effects, the search compares the identities, too, and remembers the result
 *     (weft/detail/identity.h). Shared objects loaded by dlopen have the program's addresses, and the program's
 *     speed, if the program exports the symbols (weft.pc, the CMake package and `weft cc` take care of it).
 *  2. A declaration yields a typed function that performs the effect, and a struct of its arguments and its result. The
 *     struct lies on the performer's stack; a request points to it; a reply is written into it. A result that was never
 *     written is zero. There are no casts and no allocations, and any type may be used.
 *  3. A handler names the effects that it handles at each resume. One effect or family is a bare pointer, so that the
 *     innermost handler is found by one comparison; sets are static lists.
 *  4. Accessors check that the request has their effect. After weft_is the compiler knows that, and drops the check.
 *  5. The text of a declaration is short, because every file that includes it pays for the text. Only these parts are
 *     typed: one function that performs, in every way that the user may choose; one that performs by a search; and the
 *     call of a clause. All else is macros, and functions that all effects share.
 * To reach: perform and resume in 3.0 ns (state, depth 0). One declaration with one parameter: 3 KiB after
 * preprocessing, 4 KiB in C++.
 *
 * In C++ declarations need C++14. Thread-safety is as in coro.h. Source of the ideas: sheep handlers of libseff;
 * clauses and families of Koka.
 * Nothing here may be called in a signal handler: a perform may suspend the code that the signal interrupted.
 */
#ifndef WEFT_EFFECT_H
#define WEFT_EFFECT_H

/* gcc warns at each use of a macro with __VA_OPT__ that it is standard only since C++20 and C23. */
#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <weft/handler.h>

WEFT_EXTERN_C_BEGIN

/** Identity and description of an effect or a family. Two addresses may stand for one effect: see weft_same_effect.
 * Filled in when the program, or the shared object that declares the effect, is loaded, before constructors without a
 * priority run. */
typedef struct weft_effect {
	const char *name;
	const char *signature;		  /* "int tell(int, const char *)"; "" for a family */
	const struct weft_effect *family; /* the effect's family; the effect itself if it has none */
	void (*default_handler)(void);	  /* private: see weft_set_default; atomic */
	uint32_t index;			  /* within the family, from 0 */
	uint32_t size;			  /* bytes of its struct of arguments and result */
	/* Private. */
	const struct weft__declared *declared; /* the record that describes it */
	struct weft__group *group;	       /* equal effects with other addresses; NULL: there are none; atomic */
	struct weft_effect *next;	       /* in the list of its hash */
	struct weft_effect *members;	       /* the effects of a family, linked by `sibling`; atomic */
	struct weft_effect *sibling;
	uint64_t hash; /* hash of its identity */
} weft_effect_t;

/* ---- declaring: at file scope, in a header or a source file; in any number of files, once in each ------------- */

/**
 * WEFT_EFFECT(result, name, type, parameter, …): one effect. Defines `result name(type parameter, …)`, which performs
 * it: control goes to the innermost handler, and the call returns the handler's reply. If no handler is in scope, the
 * default handler runs in place; if there is none either, the process ends with a message that names the effect.
 * Up to eight parameters. The name is a C identifier, but not `t`, because weft_effect_t is a type. Parameters may have
 * any type: a pointer to a function is written `void (*)(int), f`, and an array is a pointer, as in C. Write a typedef
 * for a type with a comma in it, and for a result that is a pointer to a function.
 *
 * Two declarations, in any file or shared object, C or C++, declare the same effect if they have the same namespace
 * (see WEFT_NAMESPACE), the same name, and the same types of result and parameters, in the same order. Effects of a
 * family must also have the same family: its name and all its effects. The text of types is compared, after the
 * expansion of macros and without white space: `long` and `int64_t` are two types. Names of parameters are not
 * compared. `bool` is `_Bool`.
 */
#define WEFT_EFFECT(result, ...) WEFT__EFFECT(result, __VA_ARGS__, )

/**
 * WEFT_EXCEPTION(name, type, parameter, …): an effect that does not return: performing it finishes the coroutine that
 * its handler resumed, and nothing is saved. Its default handler must end the program.
 */
#define WEFT_EXCEPTION(...) WEFT__EXCEPTION(__VA_ARGS__, )

/**
 * WEFT_FAMILY(family, (result, name, type, parameter, …), …): up to sixteen effects that can be handled
 * together, by the family's name, or singly.
 */
#define WEFT_FAMILY(family, ...) WEFT_FAMILY_AS(, family, __VA_ARGS__)

/**
 * WEFT_EFFECT, WEFT_EXCEPTION and WEFT_FAMILY with another name in C, for effects whose name is taken: `send` is also a
 * function of <sys/socket.h>.
 *   WEFT_EFFECT_AS(net_send, int, send, int, fd)      the effect `send`, which net_send(fd) performs
 *   WEFT_EXCEPTION_AS(net_fail, fail, int, error)     the exception `fail`
 *   WEFT_FAMILY_AS(net_, socket, (int, send, …), …)   the family `socket` with the effect `send`, …; in C net_socket,
 *                                                     net_send, …
 * Other macros take the name in C: weft_handles(net_socket), weft_tail(net_send, fn). Messages contain the effect's own
 * name, and the identity of the effect has that name, too.
 */
#define WEFT_EFFECT_AS(function, result, ...) WEFT__EFFECT_AS(function, result, __VA_ARGS__, )
#define WEFT_EXCEPTION_AS(function, ...) WEFT__EXCEPTION_AS(function, __VA_ARGS__, )
#define WEFT_FAMILY_AS(prefix, family, ...)                                                                            \
	WEFT__FAMILY(#family "{" WEFT__EACH(WEFT__MEMBER_IDENTITY, , __VA_ARGS__) "}", prefix, family, __VA_ARGS__)

/*
 * WEFT_NAMESPACE: if it is defined at a declaration of effects, it is their namespace: an identifier, or several with
 * dots between. Effects of different namespaces are different, even if their names are equal. A source file defines
 * WEFT_NAMESPACE before its declarations. A library's header, which may be included in code with another namespace,
 * puts this around its declarations:
 *
 *   #pragma push_macro("WEFT_NAMESPACE")
 *   #undef WEFT_NAMESPACE
 *   #define WEFT_NAMESPACE net
 *   WEFT_FAMILY_AS(net_, socket, …);
 *   #pragma pop_macro("WEFT_NAMESPACE")
 *
 * In C++ an effect declared in a C++ namespace has that namespace, and WEFT_NAMESPACE is ignored there. So net::socket
 * is the effect that C declares as `socket` with the namespace net. But the two have different addresses, so a yield
 * from one language to the other takes a search. An effect declared in an unnamed namespace exists in that file only.
 */

/* ---- handling ----------------------------------------------------------------------------------------------- */

/** The handled set {names…}: effects and families, mixed; up to sixteen. weft_handles() is empty. */
#define weft_handles(...) WEFT__FIRST(__VA_OPT__(WEFT__HANDLES_SOME((__VA_ARGS__), __VA_ARGS__, ), ) WEFT_HANDLE_NONE, )

/**
 * weft_handle (r, k, names…) { … }: resume `k`, handling the names, and run the block for each request, until `k`
 * returns; then `r`, a weft_request_t of the caller's, holds its result. `break` leaves `k` suspended. After an
 * exception or &weft_failed the block must leave the loop: resuming a finished coroutine is reported.
 */
#define weft_handle(r, ...) WEFT__CAT(WEFT__HANDLE_, WEFT__REST(__VA_ARGS__, ))(r, __VA_ARGS__)

/** Has the coroutine's function returned? Its result is `r.payload`. */
WEFT__HOT bool weft_returned(weft_request_t r);

/** Is the request this effect? */
#define weft_is(name, r) ((r).effect == &weft_effect_##name)

/** The arguments of a request that has this effect (else: reported), as a struct with the parameters' names. It lies on
 * the performer's stack: valid until the performer is resumed or deleted. */
#define weft_args(name, r) ((struct weft__##name##__frame *)weft__frame_of((r), &weft_effect_##name))

/** The type of that struct: a handler that resumes before it has used all arguments copies them. */
#define weft_args_t(name) struct weft__##name##__frame

/** Set the result of a request that has this effect (else: reported); delivered when its coroutine is resumed. */
#define weft_reply(name, r, ...) ((void)(weft_args(name, r)->weft__result = (weft__##name##__value)(__VA_ARGS__)))

/**
 * Set the result of an effect for a given coroutine, if other coroutines may have run since the request, or for a clone
 * that was suspended in the same request: weft_reply_to(k, name, r, value). Returns 0, or a negative errno as
 * weft_poke.
 */
#define weft_reply_to(k, name, r, ...)                                                                                 \
	(weft_poke((k), &weft_args(name, r)->weft__result,                                                             \
		   WEFT__TEMPORARY(WEFT__RESULT(name), (weft__##name##__value)(__VA_ARGS__)),                          \
		   sizeof(WEFT__RESULT(name))))

/** For `switch (weft_op(family, r)) { case weft_case(get): … }`: the index of the request's effect in its family; -1 if
 * it is not of this family. */
#define weft_op(family_, r) ((r).effect && (r).effect->family == &weft_effect_##family_ ? (int)(r).effect->index : -1)
#define weft_case(name) weft__##name##__index

/** The name of the request's effect, for messages: "return" if there is no effect. */
WEFT_API const char *weft_request_name(weft_request_t r);

/**
 * Do the addresses stand for one effect, or one family? Equal addresses do, and so do addresses that the linker did not
 * merge: with -Bsymbolic, RTLD_LOCAL, hidden symbols, or between C and a namespace of C++. A handler gets the address
 * that its own set or table has; only with WEFT_HANDLE_ALL it may be a different address.
 */
WEFT_API bool weft_same_effect(const weft_effect_t *a, const weft_effect_t *b);

/**
 * weft_resume_throw(k, handles, exception, args…): like weft_resume(k, NULL, handles), but the call in which `k` waits
 * (a perform, weft_suspend, weft_yield, weft_switch) does not return. In its place the exception (WEFT_EXCEPTION) is
 * performed, by `k` or by the coroutine inside `k` that made the call: its cleanups run, its handlers may have a clause
 * for the exception, and so may `handles`. If `k` has not started, this is reported.
 */
#define weft_resume_throw(k, handles, ...)                                                                             \
	(weft__resume_throwing((k), (handles), WEFT__THROW(__VA_ARGS__, ), WEFT__THROWN_AS(__VA_ARGS__)))

/** weft_resume_throw_under(k, handler, state, exception, args…): like weft_resume_throw, but as weft_resume_under. */
#define weft_resume_throw_under(k, handler, state_, ...)                                                               \
	(weft__resume_throwing_under((k), (handler), (state_), WEFT__THROW(__VA_ARGS__, ),                             \
				     WEFT__THROWN_AS(__VA_ARGS__)))

/* ---- performing directly ------------------------------------------------------------------------------------ */

/** The coroutine whose suspension hands this effect to its handler, or NULL: find once, then perform often. */
#define weft_locate(name) (weft__locate(&weft_effect_##name))

/**
 * R weft_perform_at(name, k, args…): perform at a coroutine found by weft_locate, without a search. The coroutine must
 * still be the current one or an ancestor of it, and its resumer must still handle the effect. So locate again after a
 * suspension. Debug builds report a violation. Release builds do not, because the check would cost as much as
 * weft_locate saves: a perform at a coroutine that has ended, waits, or runs elsewhere hangs or crashes; and a resumer
 * that does not handle the effect gets a request that it did not ask for.
 */
#define weft_perform_at(name, ...) WEFT__CAT(WEFT__PERFORM_AT_, WEFT__REST(__VA_ARGS__, ))(name, __VA_ARGS__)

/**
 * Set the default handler of an effect: a function of the same type as the function that performs it. It runs in place,
 * on the performer's stack, if no handler is in scope. NULL removes it. Thread-safe; process-wide. Not in a signal
 * handler: the call takes a lock. Unloading the shared object that contains the function also removes it.
 */
#define weft_set_default(name, function)                                                                               \
	do {                                                                                                           \
		weft__##name##__function *weft__function = (function);                                                 \
		weft__set_default(&weft_effect_##name, (void (*)(void))weft__function);                                \
	} while (0)

WEFT_EXTERN_C_END

#include <weft/detail/effect.h>

#endif /* WEFT_EFFECT_H */
