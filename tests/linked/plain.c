/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiled without instrumentation: functions that linked.c calls, and functions that call it. */
#include "linked.h"

#include <string.h>

#include "aligned.h"

ALIGNED_FUNCTIONS(plain_)

__attribute__((noinline)) long plain_depth(long n)
{
	volatile char frame[900];

	frame[0] = (char)n;
	return n ? plain_depth(n - 1) + 1 + (frame[0] != (char)n) : 0;
}

void *plain_body(void *argument)
{
	return (void *)plain_depth((long)argument);
}

long plain_calls(long (*back)(long), long n)
{
	volatile char frame[3000];

	frame[0] = 1;
	return back(n) + frame[0];
}

double plain_many(int a, double b, int c, float d, long e, long f, long g, long h, struct large i, long double j, int k)
{
	double sum = a + b + c + (double)d + (double)(e + f + g + h) + (double)j + k;

	for (int at = 0; at < LARGE; at++)
		sum += (double)i.word[at];
	return sum;
}

struct large plain_large(struct large a, long b)
{
	for (int at = 0; at < LARGE; at++)
		a.word[at] += b;
	return a;
}

int plain_sum(int count, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, count);
	while (count--)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

void plain_jump(jmp_buf *target, int value)
{
	plain_depth(10);
	longjmp(*target, value);
}
