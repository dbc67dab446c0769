/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/declared.h: one short error for an effect that is not declared.
 *
 * Design
 *  1. For a mistake in the expansion of a macro, clang prints three lines for each macro around it, and as many for
 *     each macro around the declaration of a similar name. It prints none of these if the mistake is at a word of the
 *     user. So a declaration that uses the user's word comes first: a member of this name. If the effect is not
 *     declared, the member has variable size and is not the last of its struct. clang warns about that and names the
 *     member's type, whose name says what to write. WEFT__STOP_AT_UNDECLARED makes the warning fatal: nothing is
 *     printed after it.
 *  2. The member's type depends on whether the effect is declared, and the test must be no error itself. C++: is the
 *     struct complete that the declaration defines? C: a function that is not declared returns int, and the function
 *     that each declaration defines returns a pointer; the warning about such a call is ignored during the test. C23,
 *     where the call is an error: each declaration overloads a function for its struct, and another overload accepts
 *     all other structs.
 *  3. gcc prints only the user's line, and one error for each name of the declaration. Nothing makes gcc stop.
 *
 * Rejected: the user's word as an expression (the error cannot be made fatal, and others follow); a fatal warning at a
 * word of this header (three lines for each macro); a function with the attribute diagnose_if (a note of three lines).
 */
#ifndef WEFT_DETAIL_DECLARED_H
#define WEFT_DETAIL_DECLARED_H

#if !defined(__clang__)
#define WEFT__STOP_AT_UNDECLARED
#define WEFT__STOP_NO_MORE
#define WEFT__DECLARED(op)
#define WEFT__IS_DECLARED(op)
#else

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
struct weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares {
	int weft__;
	char weft__any[];
};
#pragma clang diagnostic pop

#define WEFT__STOP_NO_MORE _Pragma("clang diagnostic pop")
#ifdef __cplusplus
#define WEFT__STOP_AT_UNDECLARED                                                                                       \
	_Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wgnu-variable-sized-type-not-at-end\"")

#define WEFT__IS_DECLARED(op)
extern "C++" {
template <typename Declaration, typename Complete = void> struct weft__member_for {
	using type = weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares;
};
template <typename Declaration> struct weft__member_for<Declaration, decltype(void(sizeof(Declaration)))> {
	using type = char;
};
}
/* C++ defines no types in an expression, except in the body of a lambda. This lambda is never executed. */
#define WEFT__DECLARED(op)                                                                                             \
	(false ? (void([] {                                                                                            \
			  struct weft__check {                                                                         \
				  weft__member_for<struct weft__##op##__effect_declaration>::type op;                  \
				  int weft__;                                                                          \
			  };                                                                                           \
		  }),                                                                                                  \
		  0)                                                                                                   \
	       : 0) +
#else
#define WEFT__STOP_AT_UNDECLARED                                                                                       \
	_Pragma("clang diagnostic push") _Pragma("clang diagnostic fatal \"-Wgnu-variable-sized-type-not-at-end\"")    \
	    _Pragma("clang diagnostic ignored \"-Wimplicit-function-declaration\"")

/* Neither the object nor the functions are defined anywhere. */
extern struct weft__write_an_effect_that_WEFT_EFFECT_or_WEFT_FAMILY_declares weft__undeclared;
#if __STDC_VERSION__ > 201710L
__attribute__((overloadable)) int weft__declared(void *);
#define WEFT__IS_DECLARED(op)                                                                                          \
	struct weft__##op##__frame;                                                                                    \
	__attribute__((overloadable)) void *weft__declared(struct weft__##op##__frame *);
#define WEFT__TYPE_IF_DECLARED(op) weft__declared((struct weft__##op##__frame *)0)
#else
#define WEFT__IS_DECLARED(op)
#define WEFT__TYPE_IF_DECLARED(op) weft__##op##__call(0, 0, 0, 0)
#endif
#define WEFT__DECLARED(op)                                                                                             \
	0 * sizeof(struct {                                                                                            \
		__typeof__(_Generic(WEFT__TYPE_IF_DECLARED(op), void *: '0', default: weft__undeclared)) op;           \
		int weft__;                                                                                            \
	}) +
#endif
#endif

#endif /* WEFT_DETAIL_DECLARED_H */
