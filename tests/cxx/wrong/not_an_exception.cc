// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft_on_exception(op) is for what WEFT_EXCEPTION declares: weft_on(op) */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft_on_exception(ask).abort([](int) { return 1; }));
}
