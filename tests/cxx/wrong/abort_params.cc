// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft_on(op).abort(fn): Answer fn(params...), with the operation's parameters */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft_on(ask).abort([] { return 1; }));
}
