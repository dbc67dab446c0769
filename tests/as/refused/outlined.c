/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* clang -Oz -mllvm -enable-machine-outliner=always -fsplit-stack: drop -moutline */
int g(int x);

#define F(n)                                                                                                           \
	int f##n(int a)                                                                                                \
	{                                                                                                              \
		g(a + 1);                                                                                              \
		g(a + 2);                                                                                              \
		g(a + 3);                                                                                              \
		g(a + 4);                                                                                              \
		g(a * 3);                                                                                              \
		g(a * 5);                                                                                              \
		return g(a + 77) + n;                                                                                  \
	}
F(1)
F(2)
F(3)
F(4)
F(5)
F(6)
F(7)
