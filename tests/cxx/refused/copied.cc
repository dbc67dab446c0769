// SPDX-License-Identifier: MIT OR Apache-2.0
// A coroutine that is copied.
#include <weft/weft.hpp>

void f(weft::coroutine<> &c);
void f(weft::coroutine<> &c)
{
	auto d = c;
}
