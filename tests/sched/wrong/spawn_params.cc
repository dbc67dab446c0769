// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft: a task's function is called with copies of its arguments, as rvalues */
/* clang++-lines: 11 */
#include <weft/sched.hpp>

void f(weft::scope &scope);
void f(weft::scope &scope)
{
	auto task = scope.spawn([](int &) {}, 1);

	task.join();
}
