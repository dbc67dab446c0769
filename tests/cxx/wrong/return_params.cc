// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::on_return(fn): Answer fn(Result), with the body's result */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft::on_return([] { return 1; }));
}
