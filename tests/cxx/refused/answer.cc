// SPDX-License-Identifier: MIT OR Apache-2.0
// An answer of another type.
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask);

int f();
int f()
{
	return weft::handle([] { return 1; }, weft_on(ask).abort([] { return "text"; }));
}
