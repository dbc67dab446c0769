// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::run calls its function without arguments */
/* clang++-lines: 11 */
#include <weft/sched.hpp>

int f();
int f()
{
	return weft::run([](int a) { return a; });
}
