/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The other unit of cxx.cc. */
#include "cxx.h"

int second_unit(int x)
{
	derived *d = new derived;
	int sum = twice(x) + twice((long)x * 2) - 1;

	try {
		throws_if(x + 10);
	} catch (const std::out_of_range &) {
		delete d;
	}
	return sum;
}
