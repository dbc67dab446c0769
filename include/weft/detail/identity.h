/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/detail/identity.h: the object whose address stands for an effect, and the record that describes the effect.
 *
 * Design
 *  1. The identity of an effect is its namespace, its name, and the signature of its whole declaration (of the whole
 *     family). The linker gives equal declarations one address, and different declarations two:
 *       C     The symbol holds all of it: "weft.effect.NAMESPACE.state{int64_t get()|void put(int64_t)|}.get". The
 *             assembler defines it, as a common symbol, because gcc cannot write the section names of an object with
 *             such a name. ',', ';' and '@' would end the name for some assemblers.
 *       C++   As in C if the declaration is in no namespace of C++. In a namespace the object is a member of a class
 *             template: a structure that is declared beside the effect brings the namespace into its symbol.
 *  2. The object is blank in the file. A record in a section of its own describes the effect. When the program or the
 *     shared object is loaded, weft__declare reads these records and fills the objects in.
 *  3. weft__declare also finds equal effects that have several addresses: in C and in a namespace of C++, or in shared
 *     objects which do not share symbols (-Bsymbolic, RTLD_LOCAL, hidden symbols). It puts these into one group. The
 *     search compares groups if there are any, and passes a handler the address that the handler knows:
 *     src/effect/identity.c, find.c.
 *  4. When a shared object is unloaded, weft__undeclare removes its effects from these groups, and its functions from
 *     the default handlers of other objects' effects. Other effects, tables and labels may be loaded at the freed
 *     addresses, so all threads empty their caches of found handlers (handler_cache.h). An effect's object may be
 *     in another shared object than the record that describes the effect, and stay: then a record that stays describes
 *     the effect.
 *
 * Rejected: a hash of the signature in the symbols of C (neither preprocessor nor compiler can make one); an object for
 * each file (each comparison would have to load a value that is a constant now); comparing groups in weft_is (two
 * instructions more for each request that is not the effect).
 */
#ifndef WEFT_DETAIL_IDENTITY_H
#define WEFT_DETAIL_IDENTITY_H

#include <weft/detail/pp.h>

#if !defined(__clang__)
#pragma GCC system_header /* see weft/effect.h */
#endif

WEFT_EXTERN_C_BEGIN

/* A record for each declaration in each file. All records of a program or shared object lie side by side. Their
 * alignment is given where they are defined; otherwise compilers choose a larger alignment, and leave gaps. */
struct weft__declared {
	weft_effect_t *effect, *family;
	const char *name;
	const char *text;  /* of an effect its signature; of a family the text of all its effects in its symbol */
	const char *space; /* "net." or "net::"; "" if it has no namespace */
	uint32_t index;	   /* in the family; of the family itself WEFT__OF_FAMILY */
	uint32_t size;
};
#define WEFT__OF_FAMILY 0xffffffffu
extern __attribute__((weak, visibility("hidden"))) const struct weft__declared __start_weft_effects[],
    __stop_weft_effects[];
/* All records of a program or shared object; the library links those that are loaded. */
struct weft__records {
	const struct weft__declared *first, *end;
	struct weft__records *next;
	bool are_declared;
};
/* Weak: a file that performs nothing can be linked without the library. */
WEFT_API __attribute__((weak)) void weft__declare(struct weft__records *records);
WEFT_API __attribute__((weak)) void weft__undeclare(struct weft__records *records);

/* All files of a program or shared object share these. The first constructor calls weft__declare for all of them,
 * before other constructors, which may perform. */
extern WEFT__HIDDEN struct weft__records weft__records_here;
__attribute__((weak)) struct weft__records weft__records_here;

__attribute__((weak, constructor(101), visibility("hidden"))) void weft__declare_here(void);
__attribute__((weak, constructor(101), visibility("hidden"))) void weft__declare_here(void)
{
	if (weft__records_here.are_declared || !weft__declare)
		return;
	weft__records_here.first = __start_weft_effects;
	weft__records_here.end = __stop_weft_effects;
	weft__records_here.are_declared = true;
	weft__declare(&weft__records_here);
}

__attribute__((weak, destructor(101), visibility("hidden"))) void weft__undeclare_here(void);
__attribute__((weak, destructor(101), visibility("hidden"))) void weft__undeclare_here(void)
{
	if (weft__records_here.are_declared && weft__undeclare)
		weft__undeclare(&weft__records_here);
	weft__records_here.are_declared = false;
}

WEFT_EXTERN_C_END

/* The namespace and a dot; "" if WEFT_NAMESPACE is not defined. */
#define WEFT__SPACE WEFT__SPACE_OF(WEFT_NAMESPACE)
#define WEFT__SPACE_OF(space) WEFT__SPACE_OR_NONE(space)
#define WEFT__SPACE_OR_NONE(space) WEFT__SECOND_OF(WEFT__SPACE_##space, #space ".", )
#define WEFT__SPACE_WEFT_NAMESPACE ~, ""

/* The object with the symbol. clang writes the quotes itself, and warns that an object declared in an unnamed namespace
 * is not defined. */
#if !defined(__clang__)
#define WEFT__DECLARE_OBJECT(object, symbol) extern WEFT_API weft_effect_t object __asm__("\"" symbol "\"");
#elif defined(__cplusplus)
#define WEFT__DECLARE_OBJECT(object, symbol)                                                                           \
	_Pragma("clang diagnostic push");                                                                              \
	_Pragma("clang diagnostic ignored \"-Wundefined-internal\"");                                                  \
	extern WEFT_API weft_effect_t object __asm__(symbol);                                                          \
	_Pragma("clang diagnostic pop");
#else
#define WEFT__DECLARE_OBJECT(object, symbol) extern WEFT_API weft_effect_t object __asm__(symbol);
#endif
#define WEFT__OBJECT(object, text)                                                                                     \
	WEFT__DECLARE_OBJECT(object, "weft.effect." WEFT__SPACE text)                                                  \
	__asm__(".comm \"weft.effect." WEFT__SPACE text "\", 88, 8");
WEFT__STATIC_ASSERT(sizeof(weft_effect_t) == 88, "the directive .comm above says so");

/* No code refers to the records: compilers keep objects marked used, linkers with --gc-sections keep objects marked
 * retain (GNU ld keeps these records anyway). */
#if __has_attribute(retain)
#define WEFT__KEPT used, retain
#else
#define WEFT__KEPT used
#endif

/* `identity`: as in the symbol. */
#define WEFT__DESCRIBE(identity, effect, name, text, family, index, size)                                              \
	WEFT__STANDS_FOR(effect, identity)                                                                             \
	__attribute__((WEFT__KEPT, section("weft_effects"),                                                            \
		       aligned(8))) static struct weft__declared weft__##effect##__declared = {                        \
	    &weft_effect_##effect, &weft_effect_##family, name, text, WEFT__SPACE_SEEN(effect), index, size};

#ifndef __cplusplus
#define WEFT__STANDS_FOR(effect, text) WEFT__OBJECT(weft_effect_##effect, text)
#define WEFT__SPACE_SEEN(effect) WEFT__SPACE
#else

extern "C++" {
/* FNV-1a. */
constexpr uint64_t weft__hash(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ static_cast<unsigned char>(*text)) * 1099511628211u;
	return hash;
}

/* "net::" for a declaration in namespace net; "" for a declaration outside of namespaces. */
template <size_t Size> struct weft__space_text {
	char text[Size];
};

/* Both compilers end the name of a function with "Tag = space::name]". */
template <size_t Size> constexpr weft__space_text<Size> weft__space_in(const char (&function)[Size])
{
	weft__space_text<Size> space = {};
	size_t begin = 0, end = 0, n = 0;

	for (size_t i = 0; i + 6 < Size; i++)
		if (function[i] == 'T' && function[i + 1] == 'a' && function[i + 2] == 'g' && function[i + 4] == '=')
			begin = i + 6;
	for (size_t i = begin; i + 1 < Size; i++)
		if (function[i] == ':' && function[i + 1] == ':')
			end = i + 2;
	for (size_t i = begin; i < end; i++)
		space.text[n++] = function[i];
	return space;
}

template <typename Tag> struct weft__space {
	static constexpr auto make()
	{
		return weft__space_in(__PRETTY_FUNCTION__);
	}
	static constexpr bool is_global()
	{
		return !make().text[0];
	}
};
template <typename Tag, typename Text> struct weft__space_kept {
	static constexpr Text value = weft__space<Tag>::make();
};
template <typename Tag, typename Text> constexpr Text weft__space_kept<Tag, Text>::value;

template <typename Tag, uint64_t Hash, bool Global = weft__space<Tag>::is_global()> struct WEFT_API weft__home {
	static weft_effect_t object;
	static constexpr weft_effect_t &choose(weft_effect_t &)
	{
		return object;
	}
	static constexpr const char *space(const char *)
	{
		return weft__space_kept<Tag, decltype(weft__space<Tag>::make())>::value.text;
	}
};
template <typename Tag, uint64_t Hash, bool Global> weft_effect_t weft__home<Tag, Hash, Global>::object;
template <typename Tag, uint64_t Hash> struct weft__home<Tag, Hash, true> {
	static constexpr weft_effect_t &choose(weft_effect_t &global)
	{
		return global;
	}
	static constexpr const char *space(const char *named)
	{
		return named;
	}
};
}

#define WEFT__STANDS_FOR(effect, text)                                                                                 \
	struct WEFT_API weft__##effect##__effect_declaration {                                                         \
	};                                                                                                             \
	extern "C++" {                                                                                                 \
	WEFT__OBJECT(weft__##effect##__global, text)                                                                   \
	}                                                                                                              \
	using weft__##effect##__home = weft__home<weft__##effect##__effect_declaration, weft__hash(text)>;             \
	__attribute__((unused)) static constexpr weft_effect_t &weft_effect_##effect =                                 \
	    weft__##effect##__home::choose(weft__##effect##__global);
#define WEFT__SPACE_SEEN(effect) weft__##effect##__home::space(WEFT__SPACE)
#endif

#endif /* WEFT_DETAIL_IDENTITY_H */
