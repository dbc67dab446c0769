// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: an exception has only abort clauses: weft_on_exception(op).abort(fn) */
#include <weft/weft.hpp>

WEFT_EXCEPTION(fail, int, code);

int f();
int f()
{
	return weft::handle([] { return 1; }, weft_on_exception(fail).tail([](int) {}));
}
