/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What look-ahead makes of a call graph: docs/explanation/stacks.md. */
static __attribute__((noinline)) int leaf(int n)
{
	volatile int here[40];

	here[n & 31] = n;
	return here[0] + here[n & 31];
}

static __attribute__((noinline)) int middle(int n)
{
	volatile int here[8];

	here[n & 7] = leaf(n);
	return here[n & 7] + leaf(n + 1);
}

int top(int n)
{
	return middle(n) + middle(n + 1);
}

int walk(int n)
{
	volatile int here = n;

	return n ? walk(n - 1) + middle(here) : top(here);
}

int main(void)
{
	return walk(1000) == 0;
}
