// SPDX-License-Identifier: MIT OR Apache-2.0
// Not refused: both are moved.
#include <utility>

#include <weft/weft.hpp>

void f(weft::coroutine<> &c, weft::generator<int> &g);
void f(weft::coroutine<> &c, weft::generator<int> &g)
{
	auto d = std::move(c);
	auto h = std::move(g);
}
