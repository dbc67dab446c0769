/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -O2: f: what the jump */
int g(int x);

int f(int x)
{
	switch (x) {
	case 0:
		return g(1);
	case 1:
		return g(5) + 2;
	case 2:
		return g(9) * 3;
	case 3:
		return g(2) - 7;
	case 4:
		return 8 + g(1);
	case 5:
		return g(77) ^ 2;
	}
	return 0;
}
