/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O1: f: __builtin_longjmp */
void *b[5];
int g(int x);

int f(int x)
{
	if (__builtin_setjmp(b))
		return 1;
	g(x);
	__builtin_longjmp(b, 1);
}
