// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft_on(op).multi(fn): Answer fn(weft::multi_resumption<R, Answer> k, params...) */
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, int, a);

int f();
int f()
{
	return weft::handle([] { return ask(1); }, weft_on(ask).multi([](auto k) { return k.resume(1); }));
}
