// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: fn returns Answer, what weft::handle does, or k.tail_resume(value), or weft::decision */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft_on(ask).general([](auto k, int) {
		k.drop();
		return "x";
	}));
}
