/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Test source: can a compiler make instrumented code? It has some of the constructs that instrumentation changes. */
#include <stdarg.h>

int probe_variadic(int n, ...);
int probe_leaf(char *bytes);
int probe_frames(int n);

int probe_variadic(int n, ...)
{
	va_list list;
	int sum = 0;

	va_start(list, n);
	while (n--)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

int probe_frames(int n)
{
	char large[10000], variable[n];

	return probe_leaf(large) + probe_leaf(variable) + probe_variadic(2, n, n);
}
