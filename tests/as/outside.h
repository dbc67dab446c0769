/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Code that is not instrumented (outside.c), called from code that is. */
#ifndef TESTS_AS_OUTSIDE_H
#define TESTS_AS_OUTSIDE_H

#include <stdarg.h>

struct big {
	unsigned char bytes[4000];
};

struct pair {
	double a;
	long b;
};

struct odd {
	char bytes[37];
};

typedef float vec4 __attribute__((vector_size(16)));

/* The memory above the last argument is garbage unless it was passed. */
long out_sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j);
long out_seven(int a, int b, int c, int d, int e, int f, int g);
struct big out_big(struct big b, int add);
long out_odd(int n, struct odd a, struct odd b);
struct pair out_pair(struct pair p, long double x);
long double out_long_double(int a, long double x, double b, long double y);
vec4 out_vectors(vec4 a, vec4 b, vec4 c, vec4 d, vec4 e, vec4 f, vec4 g, vec4 h, vec4 i);
double out_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j);
long out_variadic(int n, ...);
double out_variadic_doubles(int n, ...);
long out_va_list(int n, va_list list);
long out_call(long (*f)(long), long x);
long out_call_many(long (*f)(long, long, long, long, long, long, long, long), long x);
void out_fill(char *to, int n, int value);
extern long (*out_pointer)(long);
extern long (*out_pointer_sum)(long, long, long, long, long, long, long, long, long, long);
unsigned long out_stack_pointer(void);

#endif
