// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft: a task's function is called with copies of its arguments, as rvalues */
#include <weft/sched.hpp>

void f(weft::scope &scope);
void f(weft::scope &scope)
{
	scope.start([](int, int) {}, 1);
}
