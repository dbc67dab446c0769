/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O1: f: __builtin_longjmp */
void **b;
int g(int x);

int f(int x)
{
	void **c = b;

	g(0);
	if (__builtin_setjmp(c))
		return 1;
	f(g(x));
	__builtin_longjmp(c, 1);
}
