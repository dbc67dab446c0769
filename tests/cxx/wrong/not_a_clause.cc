// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: a clause is made by weft_on(op), weft_on_exception(op), weft::on_return(fn) */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, [](int) { return 1; });
}
