/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "outside.h"

long out_sum(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j)
{
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i + 10 * j;
}

long out_seven(int a, int b, int c, int d, int e, int f, int g)
{
	return a + b + c + d + e + f + 1000L * g;
}

struct big out_big(struct big b, int add)
{
	for (unsigned i = 0; i < sizeof b.bytes; i++)
		b.bytes[i] = (unsigned char)(b.bytes[i] + add);
	return b;
}

long out_odd(int n, struct odd a, struct odd b)
{
	long sum = n;

	for (unsigned i = 0; i < sizeof a.bytes; i++)
		sum += a.bytes[i] * 3 + b.bytes[i];
	return sum;
}

struct pair out_pair(struct pair p, long double x)
{
	return (struct pair){p.a + (double)x, p.b + (long)x};
}

long double out_long_double(int a, long double x, double b, long double y)
{
	return a + x * 2 + b + y * 3;
}

vec4 out_vectors(vec4 a, vec4 b, vec4 c, vec4 d, vec4 e, vec4 f, vec4 g, vec4 h, vec4 i)
{
	return a + b + c + d + e + f + g + h + i * 2;
}

double out_doubles(double a, double b, double c, double d, double e, double f, double g, double h, double i, double j)
{
	return a + b + c + d + e + f + g + h + 10 * i + 100 * j;
}

long out_va_list(int n, va_list list)
{
	long sum = 0;

	while (n--)
		sum = sum * 3 + va_arg(list, long);
	return sum;
}

long out_variadic(int n, ...)
{
	va_list list;
	long sum;

	va_start(list, n);
	sum = out_va_list(n, list);
	va_end(list);
	return sum;
}

double out_variadic_doubles(int n, ...)
{
	va_list list;
	double sum = 0;

	va_start(list, n);
	while (n--)
		sum = sum * 3 + va_arg(list, double);
	va_end(list);
	return sum;
}

long out_call(long (*f)(long), long x)
{
	volatile char use[3000];

	use[0] = 1;
	return f(x) + use[0];
}

long out_call_many(long (*f)(long, long, long, long, long, long, long, long), long x)
{
	return f(x, 2, 3, 4, 5, 6, 7, 8) + 1;
}

void out_fill(char *to, int n, int value)
{
	while (n--)
		to[n] = (char)value;
}

static long negate(long x)
{
	return -x;
}

long (*out_pointer)(long) = negate;
long (*out_pointer_sum)(long, long, long, long, long, long, long, long, long, long) = out_sum;

unsigned long out_stack_pointer(void)
{
	return (unsigned long)__builtin_frame_address(0);
}
