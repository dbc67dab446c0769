/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_LINKED_H
#define WEFT_TESTS_LINKED_H

#include <setjmp.h>
#include <stdarg.h>

enum { LARGE = 500 };
struct large {
	long word[LARGE];
};

long plain_depth(long n);
void *plain_body(void *argument);
long plain_calls(long (*back)(long), long n);
double plain_many(int a, double b, int c, float d, long e, long f, long g, long h, struct large i, long double j,
		  int k);
struct large plain_large(struct large a, long b);
int plain_sum(int count, ...);
void plain_jump(jmp_buf *target, int value);

#endif
