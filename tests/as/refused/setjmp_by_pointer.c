/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O2 -fPIC: calls setjmp through a pointer */
/* gcc -fsplit-stack -dp -O2 -fno-pic: calls setjmp through a pointer */
/* clang -fsplit-stack -O2 -fPIC -fno-plt: calls setjmp through a pointer */
/* clang -fsplit-stack -O0: calls setjmp through a pointer */
#include <setjmp.h>

jmp_buf a;
int other(struct __jmp_buf_tag *);

int f(int n)
{
	int (*enter)(struct __jmp_buf_tag *) = n > 3 ? _setjmp : other;

	return enter(a) + 1;
}
