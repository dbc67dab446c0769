/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* chosen.c calls these functions. Each one lets others run if it was compiled with the pass, and in yielding mode. */
#include "chosen.h"
#include <stdarg.h>
#include <weft/charcoal.h>

#ifndef VERSIONS
#define VERSIONS __attribute__((target_clones("default", "avx2")))
#endif

static int times(int n, int factor)
{
	for (int i = 0; i < 3; i++)
		yield_now();
	return n * factor;
}

#ifdef INTERPOSED
__attribute__((noinline)) int interposed(int n)
{
	return times(n, INTERPOSED);
}
#endif

#ifndef ONLY_INTERPOSED
#ifdef INTERPOSED
int calls_interposed(int n)
{
	return interposed(n) + 1;
}
#endif

int overridden(int n)
{
	return times(n, 1000);
}

int strong(int n)
{
	return times(n, 2000);
}

int alias(int n) __attribute__((alias("strong")));
int weak_alias(int n) __attribute__((weak, alias("strong")));

VERSIONS int cloned(int n)
{
	return times(n, 3000);
}

double dots(int n, ...)
{
	double sum = 0;
	va_list rest;

	va_start(rest, n);
	while (n-- > 0)
		sum += times(1, 1000) * va_arg(rest, double);
	va_end(rest);
	return sum;
}

int wrapped(int n)
{
	return times(n, 4000);
}

int __real_wrapped(int n);
int __wrap_wrapped(int n);

int __wrap_wrapped(int n)
{
	return __real_wrapped(n) + 1;
}

#ifdef NAMES_OF_LIBC
ssize_t send(int n, const void *data, size_t size, int flags)
{
	(void)data, (void)size;
	return times(n, 6000) + flags;
}

unsigned sleep(unsigned n)
{
	return (unsigned)times((int)n, 7000);
}

int stat(const char *name, struct stat *n)
{
	(void)n;
	return times(*name, 8000);
}
#endif
#endif
