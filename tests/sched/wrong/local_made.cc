// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::local<T>: T must be an object that T() makes */
#include <weft/sched.hpp>

struct needs_two {
	needs_two(int, int);
};

weft::local<needs_two> needs;
