// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::select takes 1 to 64 cases */
#include <weft/sched.hpp>

void f();
void f()
{
	weft::select();
}
