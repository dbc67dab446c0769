/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/effect.h: the private part of weft/effect.h: macros that declare effects, and functions that perform
 * them. weft/effect.h includes it at its end.
 */
#ifndef WEFT_DETAIL_EFFECT_H
#define WEFT_DETAIL_EFFECT_H

#if !defined(__clang__)
#pragma GCC system_header /* see weft/effect.h */
#endif

#include <weft/effect.h>
#include <weft/detail/last.h>

WEFT_EXTERN_C_BEGIN

WEFT__HOT bool weft_returned(weft_request_t r)
{
	return !r.effect;
}

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

#endif /* WEFT_DETAIL_EFFECT_H */
