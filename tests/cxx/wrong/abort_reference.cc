// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: declare the operation's parameters as values, not as references */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, const int &, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft_on(ask).abort([](int a) { return a; }));
}
