/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For written.py: four functions, three of which need a check by look-ahead. */
int puts(const char *text);

__attribute__((noinline)) static int leaf(int x)
{
	puts("a");
	return x + 1;
}

__attribute__((noinline)) static int down(int x)
{
	return x ? down(x - 1) + leaf(x) : 0;
}

int up(int x)
{
	return down(x) + leaf(x + 3);
}

static int taken(int x)
{
	puts("b");
	return x;
}

int (*pointer)(int) = taken;
