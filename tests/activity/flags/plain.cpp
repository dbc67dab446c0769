/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiled without the pass. */
#include "both.hpp"

int in_plain_file(int n)
{
	return counter{}.add(n).add(2 * n).value + counted_twice(n);
}
