/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/pp.h: the preprocessor part of effect declarations. Lists are walked by a chain of macros, one per
 * element, each expanding the next only if elements are left.
 */
#ifndef WEFT_DETAIL_PP_H
#define WEFT_DETAIL_PP_H

#include <weft/base.h>

#if !defined(__clang__)
#pragma GCC system_header /* see weft/effect.h */
#endif

#define WEFT__FIRST(first, ...) first
#define WEFT__UNWRAP(...) __VA_ARGS__
#define WEFT__COMMA() ,
#define WEFT__NOTHING()
#define WEFT__CAT_(a, b) a##b
#define WEFT__CAT(a, b) WEFT__CAT_(a, b)

/* WEFT__IF_VOID(type)(then)(else). A type that merely starts with void, such as `void *`, leaves the probe unexpanded,
 * because a function-like macro needs its parenthesis next. */
#define WEFT__PROBE_void() ~, weft__yes
#define WEFT__IF_VOID(type) WEFT__CAT(WEFT__IF_, WEFT__SECOND_OF(WEFT__PROBE_##type(), weft__no, ))
#define WEFT__SECOND_OF(...) WEFT__SECOND(__VA_ARGS__)
#define WEFT__IF_weft__yes(then) then WEFT__SKIP
#define WEFT__IF_weft__no(then) WEFT__UNWRAP
#define WEFT__SKIP(...)

/*
 * A compiler that is asked for strict C17 or C++17 warns where a macro is called without variadic arguments, and no
 * header can silence that without silencing the user's own macros. So an internal macro gets a comma after its list,
 * which adds an empty variadic argument, and a public macro takes all arguments that may be last in its `...`.
 * WEFT__REST(list, ) is weft__more if the list has more than one element, else weft__one.
 */
#define WEFT__REST(first, ...) WEFT__FIRST(__VA_OPT__(weft__more, ) weft__one, )

/* The shape of a list of pairs that ends with a comma: weft__even; weft__odd, a comma is missing; weft__many, more than
 * eight pairs (up to eleven). The words have a prefix, since a program may have its own macros EVEN or MANY. */
#define WEFT__SHAPE(...)                                                                                               \
	WEFT__FIRST(__VA_OPT__(WEFT__SHAPE_OF(__VA_ARGS__, weft__many, weft__many, weft__many, weft__many, weft__many, \
					      weft__many, weft__even, weft__odd, weft__even, weft__odd, weft__even,    \
					      weft__odd, weft__even, weft__odd, weft__even, weft__odd, weft__even,     \
					      weft__odd, weft__even, weft__odd, weft__even, weft__odd, ), )            \
			weft__even, )
#define WEFT__SHAPE_OF(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, \
		       a22, a23, shape, ...)                                                                           \
	shape

/* m(type, name) for each pair of a list that ends with a comma, with sep() in between; up to eight pairs. */
#define WEFT__PAIRS(m, sep, ...) __VA_OPT__(WEFT__PAIRS_1(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_1(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_2(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_2(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_3(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_3(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_4(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_4(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_5(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_5(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_6(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_6(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_7(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_7(m, sep, t, n, ...) m(t, n) __VA_OPT__(sep() WEFT__PAIRS_8(m, sep, __VA_ARGS__))
#define WEFT__PAIRS_8(m, sep, t, n, ...) m(t, n) __VA_OPT__(WEFT__TOO_MANY_PARAMETERS)

/* m(fixed, element) for each element; up to sixteen. */
#define WEFT__EACH(m, f, ...) __VA_OPT__(WEFT__EACH_1(m, f, __VA_ARGS__, ))
#define WEFT__EACH_1(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_2(m, f, __VA_ARGS__))
#define WEFT__EACH_2(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_3(m, f, __VA_ARGS__))
#define WEFT__EACH_3(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_4(m, f, __VA_ARGS__))
#define WEFT__EACH_4(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_5(m, f, __VA_ARGS__))
#define WEFT__EACH_5(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_6(m, f, __VA_ARGS__))
#define WEFT__EACH_6(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_7(m, f, __VA_ARGS__))
#define WEFT__EACH_7(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_8(m, f, __VA_ARGS__))
#define WEFT__EACH_8(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_9(m, f, __VA_ARGS__))
#define WEFT__EACH_9(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_10(m, f, __VA_ARGS__))
#define WEFT__EACH_10(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_11(m, f, __VA_ARGS__))
#define WEFT__EACH_11(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_12(m, f, __VA_ARGS__))
#define WEFT__EACH_12(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_13(m, f, __VA_ARGS__))
#define WEFT__EACH_13(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_14(m, f, __VA_ARGS__))
#define WEFT__EACH_14(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_15(m, f, __VA_ARGS__))
#define WEFT__EACH_15(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__EACH_16(m, f, __VA_ARGS__))
#define WEFT__EACH_16(m, f, x, ...) m(f, x) __VA_OPT__(WEFT__TOO_MANY_ELEMENTS)

/* Expansions of a pair. A type may be written so that it cannot stand before a name, as a pointer to a function.
 * Arrays become pointers, as parameters do; fields can be assigned to. */
#define WEFT__PARAMETER(type, name) __typeof__(type) name
#ifdef __cplusplus
#define WEFT__FIELD(of, name) weft__field<of>::type name;
extern "C++" {
template <typename T> struct weft__field {
	typedef T type;
};
template <typename T, size_t Size> struct weft__field<T[Size]> {
	typedef T *type;
};
template <typename T> struct weft__field<T[]> {
	typedef T *type;
};
}
#else
#define WEFT__FIELD(type, name) __typeof__(((void)0, *(__typeof__(type) *)0)) name;
#endif
#define WEFT__TYPE(type, name) type
#define WEFT__NAME(type, name) name
#define WEFT__STORE(type, name) .name = name

/* "(T a, U b)", or "(void)" if there are none; ", T a, U b". WEFT__TYPES and WEFT__MORE_TYPES leave out the names, for
 * declarations, which are shorter so. WEFT__NAMES: "a, b". */
#define WEFT__PARAMETERS(...)                                                                                          \
	(WEFT__FIRST(__VA_OPT__(WEFT__PAIRS_1(WEFT__PARAMETER, WEFT__COMMA, __VA_ARGS__), ) void, ))
#define WEFT__MORE_PARAMETERS(...) __VA_OPT__(, WEFT__PAIRS_1(WEFT__PARAMETER, WEFT__COMMA, __VA_ARGS__))
#define WEFT__TYPES(...) (WEFT__FIRST(__VA_OPT__(WEFT__PAIRS_1(WEFT__TYPE, WEFT__COMMA, __VA_ARGS__), ) void, ))
#define WEFT__MORE_TYPES(...) __VA_OPT__(, WEFT__PAIRS_1(WEFT__TYPE, WEFT__COMMA, __VA_ARGS__))
#define WEFT__NAMES(...) WEFT__PAIRS(WEFT__NAME, WEFT__COMMA, __VA_ARGS__)

#endif /* WEFT_DETAIL_PP_H */
