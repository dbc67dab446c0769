/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Variadic functions of every shape that textual IR can show them in. Prints their sum. */
#include <stdarg.h>
#include <stdio.h>

struct big {
	long words[4];
};

static int sum(int n, va_list list)
{
	int s = 0;

	while (n--)
		s += va_arg(list, int);
	return s;
}

__attribute__((noinline)) static int plain(int n, ...)
{
	va_list list;
	int s;

	va_start(list, n);
	s = sum(n, list);
	va_end(list);
	return s;
}

__attribute__((noinline, section("odd.section"))) int placed(struct big by_value, int n, ...)
{
	va_list list;
	int s;

	va_start(list, n);
	s = sum(n, list) + (int)by_value.words[3];
	va_end(list);
	return s;
}

#ifdef __clang__
/* gcc does not quote names in its assembly; the assembler takes no quoted name before "@PLT". */
static int renamed(int n, ...) __asm__("a name, with (brackets) @ ...");
#endif
__attribute__((noinline)) static int renamed(int n, ...)
{
	va_list list;
	int s;

	va_start(list, n);
	s = sum(n, list);
	va_end(list);
	return s;
}

__attribute__((noinline)) int (*returns_variadic(int (*f)(int, ...)))(int, ...)
{
	return f;
}

int main(void)
{
	struct big b = {{0, 0, 0, 4}};

	printf("%d\n", plain(3, 1, 2, 3) + placed(b, 1, 10) + renamed(1, 20) + returns_variadic(plain)(2, 1, 1));
	return 0;
}
