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
#include <weft/detail/last.h>

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

/** Has the coroutine's function returned? Its result is `r.payload`. */
WEFT__HOT bool weft_returned(weft_request_t r)
{
	return !r.effect;
}

/**
 * Do the addresses stand for one effect, or one family? Equal addresses do, and so do addresses that the linker did not
 * merge: with -Bsymbolic, RTLD_LOCAL, hidden symbols, or between C and a namespace of C++. A handler gets the address
 * that its own set or table has; only with WEFT_HANDLE_ALL it may be a different address.
 */
WEFT_API bool weft_same_effect(const weft_effect_t *a, const weft_effect_t *b);

/** Is the request this effect? */
#define weft_is(name, r) ((r).effect == &weft_effect_##name)

/** The arguments of a request that has this effect (else: reported), as a struct with the parameters' names. It lies on
 * the performer's stack: valid until the performer is resumed or deleted. */
#define weft_args(name, r) ((struct weft__##name##__frame *)weft__frame_of((r), &weft_effect_##name))

/**
 * Set the result of an effect for a given coroutine, if other coroutines may have run since the request, or for a clone
 * that was suspended in the same request: weft_reply_to(k, name, r, value). Returns 0, or a negative errno as
 * weft_poke.
 */
#define weft_reply_to(k, name, r, ...)                                                                                 \
	(weft_poke((k), &weft_args(name, r)->weft__result,                                                             \
		   WEFT__TEMPORARY(WEFT__RESULT(name), (weft__##name##__value)(__VA_ARGS__)),                          \
		   sizeof(WEFT__RESULT(name))))

/** The type of that struct: a handler that resumes before it has used all arguments copies them. */
#define weft_args_t(name) struct weft__##name##__frame

/** Set the result of a request that has this effect (else: reported); delivered when its coroutine is resumed. */
#define weft_reply(name, r, ...) ((void)(weft_args(name, r)->weft__result = (weft__##name##__value)(__VA_ARGS__)))

/** For `switch (weft_op(family, r)) { case weft_case(get): … }`: the index of the request's effect in its family; -1 if
 * it is not of this family. */
#define weft_op(family_, r) ((r).effect && (r).effect->family == &weft_effect_##family_ ? (int)(r).effect->index : -1)
#define weft_case(name) weft__##name##__index

/** The name of the request's effect, for messages: "return" if there is no effect. */
WEFT_API const char *weft_request_name(weft_request_t r);

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

/* ---- internals of the macros ------------------------------------------------------------------------------------ */

/* Innermost coroutine on the chain of the current one whose resumer handles the effect, or NULL. */
WEFT_API weft_coro_t *weft__locate(const weft_effect_t *effect);
WEFT_API void weft__check_located(weft_coro_t *k, const weft_effect_t *effect);
/* For an exception: the coroutine to end. No results are cached for coroutines that it ends. NULL: use the default
 * handler. */
WEFT_API weft_coro_t *weft__find_exit(const weft_effect_t *effect, unsigned place);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_forward(const weft_effect_t *effect);
/* How k, a coroutine located before, handles an effect: by the tail clause returned. NULL: yield the effect to k. */
WEFT_API void (*weft__enter_of(const weft_coro_t *k, const weft_effect_t *effect))(void);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_wrong_request(weft_request_t r, const weft_effect_t *expected);
WEFT_API void weft__set_default(weft_effect_t *effect, void (*handler)(void));
/* The address that k's handler uses for the effect. */
WEFT_API const weft_effect_t *weft__known_as(const weft_coro_t *k, const weft_effect_t *effect);
WEFT_API WEFT__NORETURN WEFT__COLD void weft__die_default_returned(const weft_effect_t *effect);

WEFT__INLINE void (*weft__default_of(const weft_effect_t *effect))(void)
{
	return __atomic_load_n(&effect->default_handler, __ATOMIC_ACQUIRE);
}

/* The place of an effect in the tables. Effects of a family lie side by side, and all translation units agree on it.
 * `size`: bytes of the name as a text. */
#define WEFT__PLACE(index, size) (((index) ^ (unsigned)(size)) % WEFT__FOUND_PLACES)

/* How an effect is performed: by its name, by a guess of its clause, on a label, or at a coroutine that was located. If
 * these find nothing, a search follows. */
enum { WEFT__BY_NAME, WEFT__BY_GUESS, WEFT__BY_LABEL, WEFT__BY_PLACE, WEFT__SEARCH };

/* Information that a perform starts with. */
typedef struct weft__hint {
	void (*clause)(void); /* the guessed clause; for a search, the `last` of weft__find_next, or NULL */
	const void *at;	      /* the label, or the coroutine */
} weft__hint_t;

WEFT__INLINE weft__hint_t weft__hint(void (*clause)(void), const void *at)
{
	weft__hint_t hint;

	hint.clause = clause;
	hint.at = at;
	return hint;
}

WEFT__INLINE weft__hint_t weft__no_hint(void)
{
	return weft__hint(NULL, NULL);
}

WEFT__INLINE weft__hint_t weft__at_label(const weft_label_t *label)
{
	return weft__hint(NULL, label);
}

WEFT__INLINE weft__hint_t weft__at_place(weft_coro_t *k, const weft_effect_t *effect)
{
#if WEFT_DEBUG
	weft__check_located(k, effect);
#endif
	(void)effect;
	return weft__hint(NULL, k);
}

/* The destination of a perform: the performer calls `enter`, a tail clause of the handler of k; if `enter` is NULL, it
 * yields to k. */
struct weft__next {
	weft_coro_t *k;
	void (*enter)(void);
};

/* Special values of `enter`, in place of a clause. */
#define WEFT__GENERALIZING ((void (*)(void))1)
#define WEFT__GUESSED_WRONG ((void (*)(void))2)

/*
 * The innermost handler of the effect; the result is cached. The performer's view becomes the view inside the clause to
 * be entered. If `k` is NULL, there is no handler, but a default handler. Without a default handler the process ends.
 * (src/effect/find.c)
 */
WEFT_API struct weft__next weft__find(weft_coro_t *self, const weft_effect_t *effect, const weft_label_t *label,
				      unsigned place);
/*
 * Like weft__find, with an earlier result. `last` is
 *   a tail clause        it has forwarded the perform: find the next outer handler
 *   WEFT__GENERALIZING   a tail clause asks for its handler's clause of another kind
 *   WEFT__GUESSED_WRONG  the first handler may be in the cache
 */
WEFT_API struct weft__next weft__find_next(weft_coro_t *self, void (*last)(void), const weft_effect_t *effect,
					   const weft_label_t *label, unsigned place);

/* A perform that is being made. */
struct weft__way {
	weft_coro_t *me, *k;
	void (*enter)(void);	   /* as in weft__next */
	const weft_label_t *label; /* the instance of its family; NULL: none */
	bool masked;		   /* true: the performer's view has been changed from `before` */
	const struct weft__view *before;
};

/* Does the current coroutine's resumer handle the family, by its own name, and may the performer see that handler? */
WEFT__INLINE bool weft__handles_directly(const weft_coro_t *self, const weft_effect_t *family)
{
	return weft__likely(self->handled == (uintptr_t)family) && weft__likely(!weft__masked(self->view));
}

/* If the next outer handler has the same table, as in a chain of handlers that one function made, go to it. */
WEFT__INLINE bool weft__next_is_alike(struct weft__way *way)
{
	const struct weft__view *view;
	weft_coro_t *k, *next;

	if ((uintptr_t)way->enter <= (uintptr_t)WEFT__GUESSED_WRONG)
		return false;
	view = way->me->view;
	k = weft__owner_of(view);
	next = k->parent;
	if (next->handled != k->handled || (weft__was_moved(view) && WEFT_NO_CANARY(forwards_to_a_moved_clause)) ||
	    weft__masked(next->view))
		return false;
	way->k = next;
	way->me->view = weft__inside_as(next, view);
	return true;
}

/* Go to the next handler by weft__next_is_alike or by a search. False: there is none. */
WEFT__INLINE bool weft__searches(struct weft__way *way, const weft_effect_t *effect, unsigned place)
{
	const struct weft__view *view;
	struct weft__next next;

	if (weft__next_is_alike(way))
		return true;
	view = way->me ? way->me->view : NULL;
	next = way->enter ? weft__find_next(way->me, way->enter, effect, way->label, place)
			  : weft__find(way->me, effect, way->label, place);
	way->k = next.k;
	way->enter = next.enter;
	if (!way->masked && way->me && way->me->view != view) {
		way->masked = true;
		way->before = view;
	}
	return way->k;
}

/* Find the handler without a search. False: not found. */
WEFT__INLINE bool weft__sees(struct weft__way *way, int how, weft__hint_t hint, const weft_effect_t *effect,
			     const weft_effect_t *family, unsigned index, unsigned place)
{
	const void *key = effect;
	struct weft__found found;

	if (how == WEFT__BY_NAME && weft__likely(way->me && weft__handles_directly(way->me, family))) {
		way->k = way->me;
		return true;
	}
	if (how == WEFT__BY_GUESS)
		way->enter = WEFT__GUESSED_WRONG;
	if (how == WEFT__BY_LABEL) {
		if (!way->label)
			__builtin_unreachable();
		key = &way->label->keys[index];
	}
	if (weft__unlikely(!way->me || !weft__look_up(way->me->view, key, place, &found)))
		return false;
	if (how == WEFT__BY_LABEL && !found.enter)
		return false;
	if (how == WEFT__BY_GUESS && found.enter != hint.clause)
		return false;
	way->enter = how == WEFT__BY_GUESS ? hint.clause : found.enter;
	way->k = found.k;
	return true;
}

WEFT__HOT struct weft__way weft__way(int how, weft__hint_t hint)
{
	struct weft__way way;

	way.me = weft__performer();
	way.k = NULL;
	way.enter = how == WEFT__SEARCH ? hint.clause : NULL;
	way.label = how == WEFT__SEARCH || how == WEFT__BY_LABEL ? (const weft_label_t *)hint.at : NULL;
	way.masked = false;
	return way;
}

/* Find the handler that the perform goes to, and set the performer's view to the view inside its clause. False: not
 * found in this way. `can`: are arguments that were passed to one clause still intact for the next clause? */
WEFT__HOT bool weft__finds(struct weft__way *way, int how, weft__hint_t hint, const weft_effect_t *effect,
			   const weft_effect_t *family, unsigned index, unsigned size, bool can)
{
	if (how == WEFT__SEARCH) {
		if (!can && (uintptr_t)way->enter > (uintptr_t)WEFT__GUESSED_WRONG)
			weft__die_forward(effect);
		return weft__searches(way, effect, WEFT__PLACE(index, size));
	}
	if (how == WEFT__BY_PLACE) {
		way->k = (weft_coro_t *)hint.at;
		if (weft__unlikely(weft__handles_table(way->k->handled)))
			way->enter = weft__enter_of(way->k, effect);
	} else if (!weft__sees(way, how, hint, effect, family, index, WEFT__PLACE(index, size))) {
		return false;
	}
	if (way->enter) {
		way->before = way->me->view;
		way->masked = true;
		way->me->view = weft__inside_for(way->k, way->label);
	}
	return true;
}

/* weft__finds and weft__perform as functions (WEFT__CALLS_TWINS). If the quick ways find nothing, `*how` is set to
 * search. */
WEFT_API bool weft__finds_there(struct weft__way *way, int *how, weft__hint_t hint, const weft_effect_t *effect,
				const weft_effect_t *family, unsigned index, unsigned size, bool can);
WEFT_API void weft__perform_there(struct weft__way *way, int how, const weft_effect_t *effect, void *frame);
#if WEFT__CALLS_TWINS
#define WEFT__FINDS(way, how, ...) weft__finds_there(way, &(how), __VA_ARGS__)
#else
#define WEFT__FINDS(way, how, ...) weft__finds(way, how, __VA_ARGS__)
#endif

/* Restore the performer's view, also when an exception leaves the clause. */
WEFT__HOT void weft__way_ends(struct weft__way *way)
{
	if (way->masked)
		way->me->view = way->before;
}

/* True if the clause has answered the perform, and has not forwarded it to outer handlers. */
WEFT__HOT bool weft__done(const struct weft__way *way)
{
	return weft__likely(!weft__was_forwarded(way->me->view));
}

/* The hint for the search that follows when the quick ways fail. */
WEFT__HOT weft__hint_t weft__so_far(const struct weft__way *way)
{
	return weft__hint(way->enter, way->label);
}

/* Yield to way->k. If a search, or the user, found way->k, nobody has checked yet which coroutines lie between, and
 * which address of the effect the handler uses. */
WEFT__HOT void weft__perform(struct weft__way *way, int how, const weft_effect_t *effect, void *frame)
{
#if WEFT_DEBUG
	if (weft__unlikely(!weft__is_ancestor(way->k, way->me)))
		weft__die_not_ancestor(way->k);
#endif
#if WEFT__CALLS_TWINS
	weft__perform_there(way, how, effect, frame);
#else
	unsigned char unusual = how >= WEFT__BY_PLACE ? __atomic_load_n(&weft__unusual, __ATOMIC_RELAXED) : 0;

	if (weft__unlikely(unusual)) {
		effect = weft__known_as(way->k, effect);
		if (unusual & WEFT__COPYING_USED && way->k != way->me) {
			(void)weft__yield_through(way->k, way->me, effect, frame);
			return;
		}
	}
	(void)weft__yield_near(way->k, way->me, effect, weft__address_of(frame));
#endif
}

WEFT__HOT WEFT__NORETURN void weft__leave_clause(void *state, const weft_effect_t *effect, void *frame)
{
	(void)state;
	weft_exit(weft__clause_owner(effect->name), effect, frame);
}

/* The coroutine that an exception ends. NULL: there is none, but a default handler. */
WEFT__HOT weft_coro_t *weft__whom(int how, weft__hint_t hint, const weft_effect_t *effect, unsigned place)
{
	weft_coro_t *self = weft__self();

	if (how == WEFT__BY_PLACE)
		return (weft_coro_t *)hint.at;
	return self && weft__handles_directly(self, effect) ? self : weft__find_exit(effect, place);
}

WEFT__HELPER weft_request_t weft__resume_throwing(weft_coro_t *k, weft_handles_t handles, weft__thrower_t *throws,
						  void *argument)
{
	weft__throw_into(k, throws, argument);
	return weft__resume(&k, NULL, handles.word);
}

WEFT__HELPER weft_request_t weft__resume_throwing_under(weft_coro_t *k, const weft_handler_t *handler, void *state,
							weft__thrower_t *throws, void *argument)
{
	weft__throw_into(k, throws, argument);
	return weft__resume_stateful(&k, NULL, (uintptr_t)handler + WEFT__HANDLES_TABLE, state);
}

WEFT__HOT void *weft__frame_of(weft_request_t r, const weft_effect_t *effect)
{
	if (weft__unlikely(r.effect != effect))
		weft__die_wrong_request(r, effect);
	return r.payload;
}

WEFT_EXTERN_C_END

#include <weft/detail/identity.h>

/* Takes the semicolon after a declaring macro. Without it compilers report that the semicolon is missing. */
#define WEFT__END WEFT__STATIC_ASSERT(1, "")

#define WEFT__HANDLE_weft__one(r, k) WEFT__HANDLE(r, k, weft_handles())
#define WEFT__HANDLE_weft__more(r, k, ...) WEFT__HANDLE(r, k, weft_handles(__VA_ARGS__))
#define WEFT__HANDLE(r, k, handles)                                                                                    \
	for ((r) = weft_resume((k), NULL, (handles)); !weft_returned(r); (r) = weft_resume((k), NULL, (handles)))
#define WEFT__PERFORM_AT_weft__one(name, k)                                                                            \
	((weft__##name##__by)(WEFT__BY_PLACE, weft__at_place((k), &weft_effect_##name)))
#define WEFT__PERFORM_AT_weft__more(name, k, ...)                                                                      \
	((weft__##name##__by)(WEFT__BY_PLACE, weft__at_place((k), &weft_effect_##name), __VA_ARGS__))

#define WEFT__HANDLES_SOME(names, name, ...)                                                                           \
	WEFT__FIRST(__VA_OPT__(WEFT__HANDLES_SET names, ) WEFT__HANDLES_ONE(name), )
#define WEFT__HANDLES_ONE(name)                                                                                        \
	(WEFT__STOP_AT_UNDECLARED weft__handles(WEFT__DECLARED(name)(uintptr_t) & weft_effect_##name)                  \
	     WEFT__STOP_NO_MORE)
/* A set is a static list that ends with NULL; an odd address distinguishes it from an effect. */
#define WEFT__HANDLES_SET(...)                                                                                         \
	(__extension__({                                                                                               \
		WEFT__STOP_AT_UNDECLARED static const weft_effect_t *const weft__set[] = {                             \
		    WEFT__EACH(WEFT__SET_MEMBER, , __VA_ARGS__) NULL};                                                 \
		WEFT__STOP_NO_MORE weft__handles((uintptr_t)weft__set + 1);                                            \
	}))
#define WEFT__SET_MEMBER(none, name) WEFT__DECLARED(name) & weft_effect_##name,

#define WEFT__DESCRIBE_OPERATION(identity, text, family, result, name, ...)                                            \
	WEFT__DESCRIBE(identity, name, text, WEFT__SIGNATURE(text, result, __VA_ARGS__), family,                       \
		       weft__##name##__index, sizeof(struct weft__##name##__frame))
#define WEFT__SIGNATURE(text, result, ...)                                                                             \
	#result " " text "(" WEFT__PAIRS(WEFT__TYPE_TEXT, WEFT__COMMA_TEXT, __VA_ARGS__) ")"
#define WEFT__TYPE_TEXT(type, name) #type
#define WEFT__COMMA_TEXT() ", "
/* Like WEFT__SIGNATURE, for symbols, which must not contain a comma. */
#define WEFT__IDENTITY(text, result, ...)                                                                              \
	#result " " text "(" WEFT__PAIRS(WEFT__TYPE_TEXT, WEFT__BAR_TEXT, __VA_ARGS__) ")"
#define WEFT__BAR_TEXT() "|"
#define WEFT__MEMBER_IDENTITY(none, member) WEFT__MEMBER_IDENTITY_ member "|"
#define WEFT__MEMBER_IDENTITY_(...) WEFT__MEMBER_IDENTITY__(__VA_ARGS__, )
#define WEFT__MEMBER_IDENTITY__(result, name, ...)                                                                     \
	WEFT__CAT(WEFT__IDENTITY_, WEFT__SHAPE(__VA_ARGS__))(#name, result, __VA_ARGS__)
#define WEFT__IDENTITY_weft__even WEFT__IDENTITY
#define WEFT__IDENTITY_weft__odd(...) ""
#define WEFT__IDENTITY_weft__many(...) ""

/* `identity`: the text of the family in symbols. */
#define WEFT__FAMILY(identity, prefix, family, ...)                                                                    \
	WEFT__CHECK_DECLARED(prefix##family, family, #family, identity)                                                \
	WEFT__DESCRIBE(identity, prefix##family, #family, identity, prefix##family, WEFT__OF_FAMILY, 0)                \
	typedef struct weft__clauses_are_for_the_effects_of_a_family weft__##prefix##family##__tail,                   \
	    weft__##prefix##family##__abort, weft__##prefix##family##__general;                                        \
	enum weft__##prefix##family##__effects{WEFT__EACH(WEFT__FAMILY_INDEX, prefix, __VA_ARGS__)                     \
						   weft__##prefix##family##__count};                                   \
	WEFT__NO_CLAUSE(prefix##family)                                                                                \
	enum weft__##prefix##family##__clauses{WEFT__EACH(WEFT__CLAUSE_FOR, (prefix, family), __VA_ARGS__)};           \
	WEFT__EACH(WEFT__FAMILY_MEMBER, (identity, prefix, family), __VA_ARGS__)                                       \
	WEFT__END

/* Names that a clause uses besides its type, so that a clause for a family is one error and not three. */
#ifdef __cplusplus
#define WEFT__NO_CLAUSE(name)                                                                                          \
	static constexpr decltype(nullptr) weft__##name##__leave __attribute__((unused)) = nullptr,                    \
								 weft__##name##__call __attribute__((unused)) =        \
								     nullptr;
#else
typedef void *weft__call_t(void *state, struct weft_resumption *k, void *frame, void (*clause)(void));
#define WEFT__NO_CLAUSE(name)                                                                                          \
	weft__call_t weft__##name##__leave, weft__##name##__call;                                                      \
	WEFT__IS_DECLARED(name)
#endif
#define WEFT__FAMILY_INDEX(prefix, effect) WEFT__INDEX_OF(prefix, WEFT__UNWRAP effect)
#define WEFT__INDEX_OF(...) WEFT__INDEX_OF_(__VA_ARGS__, )
#define WEFT__INDEX_OF_(prefix, result, name, ...) weft__##prefix##name##__index,
/* For WEFT_HANDLER_OF. */
#define WEFT__CLAUSE_FOR(names, effect) WEFT__CLAUSE_FOR_(WEFT__UNWRAP names, WEFT__UNWRAP effect)
#define WEFT__CLAUSE_FOR_(...) WEFT__CLAUSE_FOR__(__VA_ARGS__, )
#define WEFT__CLAUSE_FOR__(prefix, family, result, name, ...) weft__##prefix##family##__clause_for__##prefix##name,
#define WEFT__FAMILY_MEMBER(names, effect) WEFT__FAMILY_MEMBER_(WEFT__UNWRAP names, WEFT__UNWRAP effect)
#define WEFT__FAMILY_MEMBER_(...) WEFT__FAMILY_MEMBER__(__VA_ARGS__, )
#define WEFT__FAMILY_MEMBER__(identity, prefix, family, result, name, ...)                                             \
	WEFT__CAT(WEFT__MEMBER_, WEFT__SHAPE(__VA_ARGS__))                                                             \
	(#name, identity "." #name, prefix##family, result, prefix##name, __VA_ARGS__)

/* A declaration inside of a function, or a second declaration in the same file, is an error for each function of the
 * effect. gcc reports them all; its first error gives the reason. Nothing in a header stops gcc: a pragma with
 * -Wfatal-errors is refused ("not an option that controls warnings"), and #pragma GCC dependency, whose missing file is
 * fatal, cannot depend on declarations. clang stops at the first error, because a warning can be made fatal for clang.
 * The warning used here is for a member of variable size that is not the last of its struct. The member has the name
 * that the user wrote, so that clang lists no macros, and the name of its type gives the reason. The member's size
 * varies unless `seen` is an array of arrays of one byte, and of unknown length: inside of a function the inner length
 * is different, and after the first declaration the outer length is known.
 * Outside of functions __FUNCTION__ is "", but in g++ "top level". */
#if !defined(__clang__)
#ifdef __cplusplus
#define WEFT__NO_FUNCTION "top level"
#else
#define WEFT__NO_FUNCTION ""
#endif
#define WEFT__OUTSIDE_OF_FUNCTIONS(message)                                                                            \
	__extension__ WEFT__STATIC_ASSERT(sizeof(__FUNCTION__) == sizeof(WEFT__NO_FUNCTION), message);
#define WEFT__CHECK_PLACE(seen, name, text)                                                                            \
	WEFT__OUTSIDE_OF_FUNCTIONS("effect " text ": declare effects outside of functions")
#else
#define WEFT__OUTSIDE_OF_FUNCTIONS(message) /* clang reports any function that is defined inside another function */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
struct weft__effects_are_declared_once_in_a_file_and_outside_of_functions {
	int weft__;
	char weft__any[];
};
#pragma clang diagnostic pop
#ifdef __cplusplus
extern "C++" {
template <typename Seen> struct weft__effect_place {
	using type = weft__effects_are_declared_once_in_a_file_and_outside_of_functions;
};
template <> struct weft__effect_place<char[][1]>
{
	using type = char;
};
}
#define WEFT__CHECK_MEMBER(seen, name)                                                                                 \
	__attribute__((unused));                                                                                       \
	struct WEFT__CAT(seen, __LINE__) {                                                                             \
		weft__effect_place<decltype(seen)>::type name;                                                         \
		int weft__;                                                                                            \
	};                                                                                                             \
	extern char seen[1][1];
#else
extern struct weft__effects_are_declared_once_in_a_file_and_outside_of_functions weft__elsewhere;
#define WEFT__CHECK_MEMBER(seen, name)                                                                                 \
	, seen[!!sizeof(struct {                                                                                       \
		__typeof__(_Generic(&seen, char(*)[2][1]: 0, default: weft__elsewhere)) name;                          \
		int weft__;                                                                                            \
	})][1];
#endif
/* clang-format off */
#define WEFT__CHECK_PLACE(seen, name, text)                                                                            \
	_Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wgnu\"")                                   \
	_Pragma("clang diagnostic ignored \"-Wpredefined-identifier-outside-function\"")                              \
	extern char seen[][sizeof(__FUNCTION__)] WEFT__CHECK_MEMBER(seen, name)                                        \
	_Pragma("clang diagnostic pop")
/* clang-format on */
#endif
/* In gcc's link-time optimization, a comma in a symbol of a shared object causes an error that is hard to
 * understand. */
#if !defined(__clang__) && defined(__PIC__) && !defined(__PIE__)
#define WEFT__CHECK_TYPES(text, identity)                                                                              \
	WEFT__STATIC_ASSERT(!__builtin_strchr(identity, ','),                                                          \
			    "effect " text ": of a type with a comma in it make a typedef");
#else
#define WEFT__CHECK_TYPES(text, identity)
#endif
#define WEFT__CHECK_DECLARED(own, name, text, identity)                                                                \
	WEFT__CHECK_PLACE(weft__##own##__, name, text)                                                                 \
	WEFT__CHECK_TYPES(text, identity)

/* These choose by the shape of the list of parameters, which ends with a comma. */
#define WEFT__EFFECT(result, name, ...) WEFT__EFFECT_AS(name, result, name, __VA_ARGS__)
#define WEFT__EFFECT_AS(function, result, name, ...)                                                                   \
	WEFT__CAT(WEFT__EFFECT_, WEFT__SHAPE(__VA_ARGS__))(#name, function, result, __VA_ARGS__)
#define WEFT__EXCEPTION(name, ...) WEFT__EXCEPTION_AS(name, name, __VA_ARGS__)
#define WEFT__EXCEPTION_AS(function, name, ...)                                                                        \
	WEFT__CAT(WEFT__EXCEPTION_, WEFT__SHAPE(__VA_ARGS__))(#name, function, __VA_ARGS__)
#define WEFT__EFFECT_weft__even(text, name, result, ...)                                                               \
	WEFT__CHECK_DECLARED(name, name, text, WEFT__IDENTITY(text, result, __VA_ARGS__))                              \
	enum { weft__##name##__index };                                                                                \
	WEFT__OPERATION(text, WEFT__IDENTITY(text, result, __VA_ARGS__), name, result, name, __VA_ARGS__)              \
	WEFT__END
#define WEFT__EXCEPTION_weft__even(text, name, ...)                                                                    \
	WEFT__CHECK_DECLARED(name, name, text, WEFT__IDENTITY(text, exception, __VA_ARGS__))                           \
	enum { weft__##name##__index };                                                                                \
	WEFT__FRAME(void, name, __VA_ARGS__)                                                                           \
	typedef void weft__##name##__function WEFT__TYPES(__VA_ARGS__);                                                \
	typedef struct weft__an_exception_has_abort_clauses_only weft__##name##__tail, weft__##name##__general;        \
	WEFT__DESCRIBE_OPERATION(WEFT__IDENTITY(text, exception, __VA_ARGS__), text, name, exception, name,            \
				 __VA_ARGS__)                                                                          \
	WEFT__THROWER(name, __VA_ARGS__)                                                                               \
	WEFT__EXCEPTION_CLAUSES(name, __VA_ARGS__)                                                                     \
	WEFT__LEAVE(void, name, __VA_ARGS__)                                                                           \
	WEFT__END
#define WEFT__MEMBER_weft__even WEFT__OPERATION
#define WEFT__EFFECT_weft__odd(text, name, ...) WEFT__NO_COMMA(text, name)
#define WEFT__EXCEPTION_weft__odd WEFT__EFFECT_weft__odd
#define WEFT__MEMBER_weft__odd(text, identity, family, result, name, ...) WEFT__NO_COMMA(text, name);
#define WEFT__EFFECT_weft__many(text, name, ...) WEFT__TOO_MANY(text, name)
#define WEFT__EXCEPTION_weft__many WEFT__EFFECT_weft__many
#define WEFT__MEMBER_weft__many(text, identity, family, result, name, ...) WEFT__TOO_MANY(text, name);
#define WEFT__NO_COMMA(text, name)                                                                                     \
	WEFT__WRONG(name, "effect " text ": each parameter is a type, a comma and a name, as in: int, count; of a "    \
			  "type with a comma in it make a typedef")
#define WEFT__TOO_MANY(text, name)                                                                                     \
	WEFT__WRONG(name, "effect " text ": eight parameters at most; put the others into a struct")
/* clang shows each macro that an assertion came through; for a name it shows macros only if the user did not write the
 * name. A type with a comma in it may have taken the place of the name. */
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

#define WEFT__OPERATION(text, identity, family, result, name, ...)                                                     \
	WEFT__FRAME(result, name, __VA_ARGS__)                                                                         \
	typedef result weft__##name##__function WEFT__TYPES(__VA_ARGS__);                                              \
	typedef result weft__##name##__tail(void *WEFT__MORE_TYPES(__VA_ARGS__));                                      \
	WEFT__DESCRIBE_OPERATION(identity, text, family, result, name, __VA_ARGS__)                                    \
	WEFT__PERFORMER(family, result, name, __VA_ARGS__)                                                             \
	WEFT__CLAUSES(result, name, __VA_ARGS__)                                                                       \
	WEFT__LEAVE(result, name, __VA_ARGS__)                                                                         \
	WEFT__VALUE(result, name)

/* The struct that a request points to: arguments by name, then the result. */
#define WEFT__FRAME(result_, name, ...)                                                                                \
	struct weft__##name##__frame {                                                                                 \
		WEFT__PAIRS(WEFT__FIELD, WEFT__NOTHING, __VA_ARGS__)                                                   \
		WEFT__IF_VOID(result_)                                                                                 \
		(WEFT__FIRST(__VA_OPT__(, ) char weft__none;, ))(result_ weft__result WEFT__ZEROED;)                   \
	};                                                                                                             \
	WEFT__IS_DECLARED(name)
#ifdef __cplusplus
#define WEFT__ZEROED                                                                                                   \
	{                                                                                                              \
	}
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name##__frame weft__f = {                                                                       \
	    WEFT__FORWARD(__VA_ARGS__) WEFT__IF_VOID(result)(WEFT__FIRST(__VA_OPT__(, ) 0, ))(__VA_OPT__(, ){})};
/* Like WEFT__FILL, for an effect that does not return. */
#define WEFT__FILL_LAST(result, name, ...)                                                                             \
	weft__last<weft__##name##__frame> weft__lasting(weft__##name##__frame{                                         \
	    WEFT__FORWARD(__VA_ARGS__) WEFT__IF_VOID(result)(WEFT__FIRST(__VA_OPT__(, ) 0, ))(__VA_OPT__(, ){})});     \
	struct weft__##name##__frame &weft__f = weft__lasting.get();
/* Values are moved, references stay what they are. */
#define WEFT__MOVE(type, value) static_cast<decltype(value) &&>(value)
#define WEFT__FORWARD(...) WEFT__PAIRS(WEFT__MOVE, WEFT__COMMA, __VA_ARGS__)
/* Is an argument still intact for the next clause after it was passed to one clause? */
#define WEFT__CAN_FORWARD(...) true WEFT__PAIRS(WEFT__AND_TRIVIAL, WEFT__NOTHING, __VA_ARGS__)
#define WEFT__AND_TRIVIAL(type, name) &&__is_trivially_copyable(type)
#else
#define WEFT__ZEROED
#define WEFT__FILL(result, name, ...)                                                                                  \
	struct weft__##name##__frame weft__f __VA_OPT__(= {WEFT__PAIRS(WEFT__STORE, WEFT__COMMA, __VA_ARGS__)})        \
	    WEFT__FIRST(__VA_OPT__(, ) WEFT__IF_VOID(result)()(= {0}), );
#define WEFT__FILL_LAST WEFT__FILL
#define WEFT__MOVE(type, value) value
#define WEFT__FORWARD WEFT__NAMES
#define WEFT__CAN_FORWARD(...) true
#endif

#define WEFT__AND_FORWARD(...) __VA_OPT__(, ) WEFT__FORWARD(__VA_ARGS__)

#define WEFT__RETURN(result, ...) WEFT__IF_VOID(result)(__VA_ARGS__; return;)(return __VA_ARGS__;)

/* clang-format would format the two alternatives of WEFT__IF_VOID as calls. */
/* clang-format off */
#define WEFT__PERFORMER(family, result, name, ...)                                                                     \
	static result weft__##name##__slow(weft__hint_t WEFT__MORE_TYPES(__VA_ARGS__));                                \
	WEFT__HOT result weft__##name##__by(int weft__by,                                                              \
					    weft__hint_t weft__h WEFT__MORE_PARAMETERS(__VA_ARGS__))              \
	{                                                                                                              \
		struct weft__way weft__ __attribute__((cleanup(weft__way_ends))) = weft__way(weft__by, weft__h);       \
                                                                                                                       \
		while (WEFT__FINDS(&weft__, weft__by, weft__h, &weft_effect_##name, &weft_effect_##family,             \
				   weft__##name##__index, sizeof(#name), WEFT__CAN_FORWARD(__VA_ARGS__))) {            \
			if (!weft__.enter) {                                                                           \
				WEFT__FILL(result, name, __VA_ARGS__)                                                  \
				weft__perform(&weft__, weft__by, &weft_effect_##name, &weft__f);                       \
				return WEFT__IF_VOID(result)()(WEFT__MOVE(result, weft__f.weft__result));             \
			}                                                                                              \
			WEFT__IF_VOID(result)()(result weft__r =)                                                      \
			((weft__##name##__tail *)weft__.enter)(weft__.k->state WEFT__AND_FORWARD(__VA_ARGS__));        \
			if (weft__done(&weft__))                                                                       \
				return WEFT__IF_VOID(result)()(WEFT__MOVE(result, weft__r));                          \
			if (weft__by != WEFT__SEARCH)                                                                  \
				break;                                                                                 \
		}                                                                                                      \
		WEFT__RETURN(result, weft__by == WEFT__SEARCH                                                          \
					     ? ((weft__##name##__function *)weft__default_of(&weft_effect_##name))(    \
						       WEFT__FORWARD(__VA_ARGS__))                                     \
					     : (weft__##name##__slow)(weft__so_far(&weft__)                            \
								      WEFT__AND_FORWARD(__VA_ARGS__)))                 \
	}                                                                                                              \
	/* A separate function, so that rarely needed code does not lie where the effect is performed. */              \
	__attribute__((noinline, unused)) static result weft__##name##__slow(                                          \
		weft__hint_t weft__ WEFT__MORE_PARAMETERS(__VA_ARGS__))                                           \
	{                                                                                                              \
		WEFT__RETURN(result, (weft__##name##__by)(WEFT__SEARCH, weft__ WEFT__AND_FORWARD(__VA_ARGS__)))        \
	}                                                                                                              \
	WEFT__HOT result name WEFT__PARAMETERS(__VA_ARGS__)                                                            \
	{                                                                                                              \
		WEFT__RETURN(result, (weft__##name##__by)(WEFT__BY_NAME, weft__no_hint()                               \
							WEFT__AND_FORWARD(__VA_ARGS__)))                               \
	}

#define WEFT__THROWER(name, ...)                                                                                       \
	/* A separate function, so that the struct of arguments is not in the frames of functions that may throw. */   \
	WEFT__COLD WEFT__NORETURN __attribute__((unused)) static void weft__##name##__by(                              \
		int weft__by, weft__hint_t weft__h WEFT__MORE_PARAMETERS(__VA_ARGS__))                            \
	{                                                                                                              \
		weft_coro_t *weft__k = weft__whom(weft__by, weft__h, &weft_effect_##name,                              \
						  WEFT__PLACE(weft__##name##__index, sizeof(#name)));                  \
                                                                                                                       \
		if (!weft__k) {                                                                                        \
			((weft__##name##__function *)weft__default_of(&weft_effect_##name))(                           \
				WEFT__FORWARD(__VA_ARGS__));                                                           \
			weft__die_default_returned(&weft_effect_##name);                                               \
		}                                                                                                      \
		WEFT__FILL_LAST(void, name, __VA_ARGS__)                                                               \
		weft_exit(weft__k, weft__known_as(weft__k, &weft_effect_##name), &weft__f);                            \
	}                                                                                                              \
	WEFT__HELPER WEFT__NORETURN void name WEFT__PARAMETERS(__VA_ARGS__)                                            \
	{                                                                                                              \
		(weft__##name##__by)(WEFT__BY_NAME, weft__no_hint()                                                    \
							WEFT__AND_FORWARD(__VA_ARGS__));                               \
	}                                                                                                              \
	/* For performing it elsewhere: where a coroutine waits that is to be continued. */                            \
	WEFT__HELPER struct weft__##name##__frame weft__##name##__filled WEFT__PARAMETERS(__VA_ARGS__)                 \
	{                                                                                                              \
		WEFT__FILL(void, name, __VA_ARGS__)                                                                    \
		WEFT__FIRST(__VA_OPT__(, ) weft__f.weft__none = 0;, )                                                  \
		return weft__f;                                                                                        \
	}                                                                                                              \
	WEFT__COLD WEFT__NORETURN __attribute__((unused)) static void weft__##name##__throw(void *weft__frame)         \
	{                                                                                                              \
		struct weft__##name##__frame *frame = (struct weft__##name##__frame *)weft__frame;                     \
                                                                                                                       \
		(void)frame;                                                                                           \
		name(WEFT__PAIRS(WEFT__FIELD_OF, WEFT__COMMA, __VA_ARGS__));                                           \
	}

/* The function that performers enter in place of an abort clause. */
#define WEFT__LEAVE(result, name, ...)                                                                                 \
	WEFT__HELPER result weft__##name##__leave(void *weft__ WEFT__MORE_PARAMETERS(__VA_ARGS__))                     \
	{                                                                                                              \
		WEFT__FILL_LAST(result, name, __VA_ARGS__)                                                             \
		weft__leave_clause(weft__, &weft_effect_##name, &weft__f);                                             \
	}

/* Converts the result that a handler gives; the compiler reports a wrong type. */
#define WEFT__VALUE(result, name)                                                                                      \
	WEFT__HELPER result weft__##name##__value(WEFT__IF_VOID(result)(void)(result weft__))                          \
	{                                                                                                              \
		WEFT__IF_VOID(result)()(return WEFT__MOVE(result, weft__);)                                           \
	}
/* clang-format on */

#endif /* WEFT_EFFECT_H */
