// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::otherwise(fn): fn takes nothing */
#include <weft/sched.hpp>

void f();
void f()
{
	weft::select(weft::otherwise([](int) {}));
}
