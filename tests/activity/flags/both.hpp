/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inline functions of two files: one is compiled with the pass, the other without. The linker takes either's. */
#ifndef WEFT_TESTS_ACTIVITY_BOTH_HPP
#define WEFT_TESTS_ACTIVITY_BOTH_HPP

struct counter {
	int value = 0;
	__attribute__((noinline)) counter &add(int times)
	{
		for (int i = 0; i < times; i++)
			value++;
		return *this;
	}
};

__attribute__((noinline)) inline int counted_twice(int n)
{
	int sum = 0;

	for (volatile int i = 0; i < n; i = i + 1)
		sum += 2;
	return sum;
}

int in_plain_file(int n);

#endif
