/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Arguments and results of every kind, across every kind of call. */
#include "check.h"
#include "outside.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

NOINLINE static long in_sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	return out_sum(a, b, c, d, e, f, g, h, i, j) + 1;
}

NOINLINE static struct big in_big(struct big b, int add)
{
	struct big r = out_big(b, add);

	r.bytes[0]++;
	return r;
}

NOINLINE static long double in_long_double(int a, long double x, double b, long double y)
{
	return out_long_double(a, x, b, y) + y;
}

NOINLINE static vec4 in_vectors(vec4 a, vec4 b, vec4 c, vec4 d, vec4 e, vec4 f, vec4 g, vec4 h, vec4 i)
{
	return out_vectors(i, h, g, f, e, d, c, b, a) + out_vectors(a, b, c, d, e, f, g, h, i);
}

NOINLINE static long sibling(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	return out_sum(j, i, h, g, f, e, d, c, b, a);
}

static void many_arguments(void)
{
	long a = in_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10);

	CHECK(a == 386);
	CHECK(sibling(10, 9, 8, 7, 6, 5, 4, 3, 2, 1) == 385);
	CHECK(out_seven(1, 2, 3, 4, 5, 6, 7) == 7021);
	CHECK(out_doubles(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 1126);
	CHECK(out_pointer_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 385);
	/* Calls within the arguments of a call. */
	CHECK(out_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, out_sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) == 4135);
	CHECK(out_sum(1, 1, 1, 1, 1, 1, a > 1 ? out_seven(1, 1, 1, 1, 1, 1, 1) : 3, 1, 1, 1) == 55 + 7 * 1005);
}

static void structs(void)
{
	struct big b, r;
	struct odd x, y;
	struct pair p = {1.5, 2};

	memset(&b, 7, sizeof b);
	memset(&x, 1, sizeof x);
	memset(&y, 2, sizeof y);
	r = in_big(b, 5);
	CHECK(r.bytes[0] == 13 && r.bytes[1] == 12 && r.bytes[3999] == 12);
	CHECK(out_odd(4, x, y) == 4 + 37 * 5);
	p = out_pair(p, 10.25L);
	CHECK(p.a == 11.75 && p.b == 12);
}

static void numbers(void)
{
	vec4 v = {1, 2, 3, 4}, w = in_vectors(v, v, v, v, v, v, v, v, v + v);

	CHECK(in_long_double(1, 2.5L, 3, 4) == 1 + 5 + 3 + 12 + 4);
	CHECK(w[0] == 11 + 12 && w[3] == 44 + 48);
	CHECK(out_variadic_doubles(10, 1., 2., 3., 4., 5., 6., 7., 8., 9., 10.) == 44281);
	CHECK(out_variadic(3, 1L, 2L, 3L) == 18);
}

/* ---- through pointers and back ---------------------------------------------------------------------------------- */

static long depth_of(long n)
{
	volatile char use[64];

	use[0] = (char)n;
	return n ? depth_of(n - 1) + 1 : use[0];
}

static long back_many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	return out_sum(a, b, c, d, e, f, g, h, 0, 0);
}

static int compare(const void *a, const void *b)
{
	long x = *(const long *)a, y = *(const long *)b;

	return (int)(out_call(depth_of, x) - out_call(depth_of, y));
}

NOINLINE static long through(long (*f)(long), long x)
{
	return f(x) + 1;
}

NOINLINE static long through_tail(long (*f)(long), long x)
{
	return f(x + 1);
}

struct operations {
	long pad;
	long (*f[4])(long);
};

NOINLINE static long through_table(struct operations *o, int i)
{
	return o->f[i](i) + o->f[i & 1](5);
}

static void pointers(void)
{
	long numbers[] = {5, 3, 9, 1, 7, 2};
	struct operations o = {0, {depth_of, out_pointer, depth_of, out_pointer}};

	CHECK(out_call(depth_of, 100) == 101);
	CHECK(out_call_many(back_many, 1) == 205);
	qsort(numbers, 6, sizeof *numbers, compare);
	CHECK(numbers[0] == 1 && numbers[5] == 9);
	CHECK(through(depth_of, 10) == 11);
	CHECK(through(out_pointer, 10) == -9);
	CHECK(through_tail(depth_of, 10) == 11);
	CHECK(through_tail(out_pointer, 10) == -11);
	CHECK(through_table(&o, 2) == 7);
	CHECK(through_table(&o, 3) == -8);
}

/* In every register that compilers may use for it; without optimization they use these registers for other values
 * meanwhile. */
#ifdef __OPTIMIZE__
#define IN(reg) __asm__(reg)
#else
#define IN(reg)
#endif
#define THROUGH(name, reg)                                                                                             \
	NOINLINE static long through_##name(long (*f)(long), long x)                                                   \
	{                                                                                                              \
		register long (*g)(long) IN(reg) = f;                                                                  \
		__asm__("" : "+r"(g));                                                                                 \
		return g(x) + 1;                                                                                       \
	}
THROUGH(rax, "rax")
THROUGH(r10, "r10")
THROUGH(r11, "r11")
THROUGH(r12, "r12")
THROUGH(rsi, "rsi")

__attribute__((aligned(64))) static long aligned(long x)
{
	return out_pointer(x) + 1;
}

static void call_in_every_way(long (*f)(long), long (*minus)(long))
{
	CHECK(through(f, 10) == minus(10) + 1);
	CHECK(through_tail(f, 10) == minus(11));
	CHECK(through_rax(f, 10) == minus(10) + 1);
	CHECK(through_r10(f, 10) == minus(10) + 1);
	CHECK(through_r11(f, 10) == minus(10) + 1);
	CHECK(through_r12(f, 10) == minus(10) + 1);
	CHECK(through_rsi(f, 10) == minus(10) + 1);
}

/* Generated code: at the start of its memory, at the end of it, and in between. */
static void generated_code(void)
{
	static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xf7, 0xd8, 0xc3}; /* return -x */
	static const long places[] = {0, 1, 8, 16, 24, 31, 32, 4080, 4088, 4096 - sizeof code};
	char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = pages + 4096;

	CHECK(pages != MAP_FAILED);
	munmap(pages, 4096);
	munmap(page + 4096, 4096);
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		memcpy(page + places[i], code, sizeof code);
		call_in_every_way((long (*)(long))(page + places[i]), out_pointer);
	}
	munmap(page, 4096);
}

static void pointers_to_anything(void)
{
	call_in_every_way(out_pointer, out_pointer);
	call_in_every_way(depth_of, depth_of);
	call_in_every_way(aligned, aligned);
	CHECK(((size_t)aligned & 63) == 0);
	generated_code();
}

/* ---- functions of the table ------------------------------------------------------------------------------------- */

static void known(void)
{
	char a[64], b[64];
	double x = 2;

	memset(a, 'x', sizeof a);
	a[63] = 0;
	CHECK(strlen(strcpy(b, a)) == 63 && memcmp(a, b, 64) == 0);
	__asm__("" : "+x"(x));
	CHECK(__builtin_floor(x) == 2 && __builtin_sin(x) > 0.9 && __builtin_pow(x, 10) == 1024);
	CHECK(__builtin_fmod(x, 1.5) == 0.5);
	errno = 0;
	CHECK(strtol("12", NULL, 10) == 12 && errno == 0);
	CHECK(snprintf(a, sizeof a, "%d %s %g %ld %ld %ld %ld %ld", 1, "two", 3.5, 4L, 5L, 6L, 7L, 8L) == 19);
	CHECK(strcmp(a, "1 two 3.5 4 5 6 7 8") == 0);
}

/* ---- variadic definitions ------------------------------------------------------------ */

#ifndef __clang__
NOINLINE static long in_variadic(int n, ...)
{
	va_list list;
	long sum;

	va_start(list, n);
	sum = out_va_list(n, list);
	va_end(list);
	return sum;
}

NOINLINE static double in_variadic_mixed(long a, long b, long c, long d, long e, long f, long g, int n, ...)
{
	va_list list;
	double sum = (double)(a + b + c + d + e + f + 100 * g);

	va_start(list, n);
	while (n--)
		sum += va_arg(list, double) + (double)va_arg(list, long);
	va_end(list);
	return sum;
}

static void variadic(void)
{
	CHECK(in_variadic(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L) ==
	      out_variadic(9, 1L, 2L, 3L, 4L, 5L, 6L, 7L, 8L, 9L));
	CHECK(in_variadic_mixed(1, 2, 3, 4, 5, 6, 7, 3, 1.5, 2L, 3.5, 4L, 5.5, 6L) == 21 + 700 + 22.5);
}
#else
static void variadic(void)
{
}
#endif

int checks(void)
{
	check_failures = 0;
	many_arguments();
	structs();
	numbers();
	pointers();
	pointers_to_anything();
	known();
	variadic();
	return check_failures;
}
