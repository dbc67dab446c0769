// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft::handle(body, clauses...): body is called without arguments */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([](int a) { return ask(a); }, weft_on(ask).tail([](int) { return 1; }));
}
