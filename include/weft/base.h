/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/base.h: version, compiler attributes, the sanitizers in force and the result of a resume, for all other headers.
 * Nothing here has run-time behaviour; macros may be used in signal handlers.
 */
#ifndef WEFT_BASE_H
#define WEFT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEFT_VERSION_MAJOR 0
#define WEFT_VERSION_MINOR 1
#define WEFT_VERSION_PATCH 0
#define WEFT_VERSION_STRING "0.1.0"

#if !defined(__GNUC__)
#error "weft needs GNU C extensions (inline assembly, statement expressions): use gcc >= 12 or clang >= 16"
#endif
#if !defined(__linux__)
#error "weft runs on Linux only"
#endif

/* These go around __COUNTER__ in a macro. It is standard only in the C after C23, although every compiler has it. */
#define WEFT__COUNTER_BEGIN
#define WEFT__COUNTER_END
#if defined(__clang__)
#if __has_warning("-Wc2y-extensions")
#undef WEFT__COUNTER_BEGIN
#undef WEFT__COUNTER_END
#define WEFT__COUNTER_BEGIN _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wc2y-extensions\"")
#define WEFT__COUNTER_END _Pragma("clang diagnostic pop")
#endif
#endif

#ifdef __cplusplus
/* The code between these macros is C: it has casts of the old style, and compound literals. */
#if defined(__clang__)
#define WEFT__C_BEGIN                                                                                                  \
	_Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")                          \
	    _Pragma("GCC diagnostic ignored \"-Wc99-extensions\"")
#else
#define WEFT__C_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wold-style-cast\"")
#endif
#define WEFT__C_END _Pragma("GCC diagnostic pop")
#define WEFT_EXTERN_C_BEGIN                                                                                            \
	WEFT__C_BEGIN extern "C"                                                                                       \
	{
#define WEFT_EXTERN_C_END                                                                                              \
	}                                                                                                              \
	WEFT__C_END
#define WEFT__ALIGNAS(n) alignas(n)
#define WEFT__STATIC_ASSERT static_assert
#else
#define WEFT__C_BEGIN
#define WEFT__C_END
#define WEFT_EXTERN_C_BEGIN
#define WEFT_EXTERN_C_END
#define WEFT__ALIGNAS(n) _Alignas(n)
#define WEFT__STATIC_ASSERT _Static_assert
#endif

/* Exported even from code built with -fvisibility=hidden: effects must merge across shared objects. */
#define WEFT_API __attribute__((visibility("default")))
/* Shared by the files of one library, not exported to other modules. */
#define WEFT__HIDDEN __attribute__((visibility("hidden")))
#define WEFT__INLINE static inline __attribute__((always_inline, unused))
#define WEFT__HELPER static inline __attribute__((unused))
/*
 * Inlined if code is optimized at all. Without optimization each of these functions has a frame of its own, because all
 * their variables would enlarge the caller's frame. A function is WEFT__INLINE in both cases if it runs on one
 * coroutine's stack while another coroutine is already current: as a separate function it would compare its stack
 * pointer with the other stack's limit.
 */
#if defined(__OPTIMIZE__) || defined(WEFT_CANARY_inlines_without_optimization)
#define WEFT__HOT WEFT__INLINE
#else
#define WEFT__HOT WEFT__HELPER
#endif
#define WEFT__NORETURN __attribute__((noreturn))
/* A caller that ignores the result would continue as if the call had succeeded. */
#define WEFT__USE_RESULT __attribute__((warn_unused_result))
/* Compiled for its size: by gcc because it is cold, by clang because of minsize. */
#ifdef __clang__
#define WEFT__COLD __attribute__((cold, noinline, minsize))
#else
#define WEFT__COLD __attribute__((cold, noinline))
#endif
#define weft__likely(x) __builtin_expect(!!(x), 1)
#define weft__unlikely(x) __builtin_expect(!!(x), 0)

/*
 * WEFT_DEBUG turns on the checks that cost something on a hot path (is the coroutine that is suspended really an
 * ancestor? do both sides declare the effect alike?). On by default in code that is
 * compiled without optimization and without NDEBUG.
 */
#if !defined(WEFT_DEBUG)
#if defined(__OPTIMIZE__) || defined(NDEBUG)
#define WEFT_DEBUG 0
#else
#define WEFT_DEBUG 1
#endif
#endif

/*
 * For Weft's own tests: -DWEFT_CANARY_name builds in a bug that a test must find. With it the macro is 1, or the text
 * `wrong`; without it 0, or `right`. If WEFT_CANARY_name is 1, a comma stands before `wrong`, which is then the second
 * word.
 */
#define WEFT_CANARY(name) WEFT_CANARY_OR(name, 1, 0)
#define WEFT_NO_CANARY(name) WEFT_CANARY_OR(name, 0, 1) /* clang would warn of a "!" before WEFT_CANARY in C23 */
#define WEFT_CANARY_OR(name, wrong, right) WEFT__IF_ONE(WEFT_CANARY_##name, wrong, right)
#define WEFT__IF_ONE(macro, wrong, right) WEFT__IF_ONE_OF(macro, wrong, right)
#define WEFT__IF_ONE_OF(value, wrong, right) WEFT__SECOND_AFTER(WEFT__ONE_##value, wrong, right)
#define WEFT__ONE_1 0,
#define WEFT__SECOND_AFTER(words, wrong, right) WEFT__SECOND(words wrong, right, 0)
#define WEFT__SECOND(first, second, ...) second

#if defined(__SANITIZE_ADDRESS__)
#define WEFT__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT__ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define WEFT__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define WEFT__TSAN 1
#endif
#endif
#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#error "weft: MemorySanitizer does not follow switches between stacks: run a build without it under Valgrind's memcheck"
#endif
#endif
#ifndef WEFT__ASAN
#define WEFT__ASAN 0
#endif
#ifndef WEFT__TSAN
#define WEFT__TSAN 0
#endif
#define WEFT__SANITIZED (WEFT__ASAN || WEFT__TSAN)

/*
 * Code that is not optimized calls functions of the library to suspend and resume: these are optimized, and their
 * frames are a quarter of the frames that the compiler would make here. There are three exceptions. A sanitizer has to
 * see each switch. On linked stacks a function of the library would occupy a system stack while it is suspended. And a
 * program with the static library that loads shared objects may be linked without these functions.
 */
#if defined(__PIC__) && !defined(__PIE__)
#define WEFT__FOR_SHARED_OBJECTS 1
#else
#define WEFT__FOR_SHARED_OBJECTS 0
#endif
#if defined(__OPTIMIZE__) || WEFT__SANITIZED || defined(WEFT_SMALL_FRAMES) || WEFT__FOR_SHARED_OBJECTS ||              \
    defined(WEFT__DEFINES_TWINS)
#define WEFT__CALLS_TWINS 0
#else
#define WEFT__CALLS_TWINS 1
#endif

struct weft_effect;

/**
 * The result of a resume: why control came back. Two words, in registers.
 * `effect` is NULL if the coroutine's function returned (`payload` is then its result), &weft_failed if
 * the runtime had to end the coroutine (`payload` is then the coroutine), else the effect performed.
 * `payload` of an effect points into the performer's stack: valid until the coroutine is resumed or deleted.
 */
typedef struct weft_request {
	const struct weft_effect *effect;
	void *payload;
} weft_request_t;

#endif /* WEFT_BASE_H */
