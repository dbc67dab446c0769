// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::on_failure(fn): Answer fn(int error) */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft::on_failure([](int) { return "x"; }));
}
