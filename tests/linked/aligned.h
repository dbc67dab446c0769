/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Functions with stack arguments that need more alignment than a stack has. Each returns 0 if all of its arguments are
 * intact and at the right addresses. aligned.c defines them in instrumented code, plain.c in plain code, by
 * ALIGNED_FUNCTIONS.
 */
#ifndef WEFT_TESTS_ALIGNED_H
#define WEFT_TESTS_ALIGNED_H

#include <stdarg.h>
#include <stdint.h>

#define ALIGNED_STRUCT(n)                                                                                              \
	struct aligned##n {                                                                                            \
		long word[n / 8];                                                                                      \
	} __attribute__((aligned(n)))
ALIGNED_STRUCT(32);
ALIGNED_STRUCT(64);
ALIGNED_STRUCT(128);
ALIGNED_STRUCT(256);
typedef double vector4 __attribute__((vector_size(32)));

/* Hides the address, so that the compiler cannot use its knowledge of it. */
static inline int is_wrong(const void *address, uintptr_t alignment, long word, long expected)
{
	__asm__ volatile("" : "+r"(address));
	return (uintptr_t)address % alignment != 0 || word != expected;
}

#define ALIGNED_DECLARATION(prefix, n) long prefix##n(long, long, long, long, long, long, long, struct aligned##n, long)
#define ALIGNED_FUNCTION(prefix, n)                                                                                    \
	__attribute__((noinline)) ALIGNED_DECLARATION(prefix, n);                                                      \
	long prefix##n(long a, long b, long c, long d, long e, long f, long g, struct aligned##n s, long h)            \
	{                                                                                                              \
		volatile char frame[200 + n];                                                                          \
                                                                                                                       \
		frame[0] = 0;                                                                                          \
		return is_wrong(&s, n, s.word[n / 8 - 1], a + b + c + d + e + f + g + h) + frame[0];                   \
	}

#define ALIGNED_DECLARATIONS(prefix)                                                                                   \
	ALIGNED_DECLARATION(prefix, 32);                                                                               \
	ALIGNED_DECLARATION(prefix, 64);                                                                               \
	ALIGNED_DECLARATION(prefix, 128);                                                                              \
	ALIGNED_DECLARATION(prefix, 256);                                                                              \
	long prefix##list(int count, ...);                                                                             \
	vector4 prefix##ninth(vector4, vector4, vector4, vector4, vector4, vector4, vector4, vector4, vector4)

/* A list holds arguments of 64 bytes; the ninth vector is on the stack with any instruction set. */
#define ALIGNED_FUNCTIONS(prefix)                                                                                      \
	ALIGNED_FUNCTION(prefix, 32)                                                                                   \
	ALIGNED_FUNCTION(prefix, 64)                                                                                   \
	ALIGNED_FUNCTION(prefix, 128)                                                                                  \
	ALIGNED_FUNCTION(prefix, 256)                                                                                  \
	__attribute__((noinline)) long prefix##list(int count, ...)                                                    \
	{                                                                                                              \
		volatile char frame[300];                                                                              \
		long wrong = 0;                                                                                        \
		va_list list;                                                                                          \
                                                                                                                       \
		frame[0] = 0;                                                                                          \
		va_start(list, count);                                                                                 \
		for (int i = 0; i < count; i++) {                                                                      \
			struct aligned64 s = va_arg(list, struct aligned64);                                           \
                                                                                                                       \
			wrong += s.word[i] != i + 5;                                                                   \
		}                                                                                                      \
		va_end(list);                                                                                          \
		return wrong + frame[0];                                                                               \
	}                                                                                                              \
	__attribute__((noinline)) vector4 prefix##ninth(vector4 a, vector4 b, vector4 c, vector4 d, vector4 e,         \
							vector4 f, vector4 g, vector4 h, vector4 i)                    \
	{                                                                                                              \
		volatile char frame[400];                                                                              \
                                                                                                                       \
		frame[0] = 1;                                                                                          \
		return (a + b + c + d + e + f + g + h) * (double)frame[0] + i;                                         \
	}

ALIGNED_DECLARATIONS(checked_);
ALIGNED_DECLARATIONS(plain_);

/* All of the above, at many distances from the end of a chunk. */
void aligned_arguments(void);

#endif
