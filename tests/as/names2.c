/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The other unit of names.c. */
int names_global(int x);
int names_weak(int x);
int names_outer(int x);
int names_overridden(int x);

int names_outer(int x)
{
	return names_weak(x) - 1000;
}

int names_overridden(int x)
{
	return x * 10;
}
