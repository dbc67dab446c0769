// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: or fn returns weft::then(result, function), or weft::then(function) if R is void */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); },
			    weft_on(ask).tail([](int) { return weft::then([](int x) { return x; }); }));
}
