/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O1: f: alloca */
int g(char *a);

__attribute__((no_split_stack)) int f(int n)
{
	char a[n];

	return g(a);
}
