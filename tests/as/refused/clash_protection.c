/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O2 -fstack-clash-protection: f: its stack grows */
int g(char *a);

int f(int n)
{
	char a[1000000];

	return g(a + n);
}
