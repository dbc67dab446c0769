/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* clang -fsplit-stack -O2 -fPIC -fno-plt: calls _setjmp through a pointer */
#include <setjmp.h>

jmp_buf a;
int g(int x);

int f(int n)
{
	for (int i = 0; i < n; i++) {
		if (_setjmp(a))
			return 1;
		g(i);
	}
	return 0;
}
