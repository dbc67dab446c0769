// SPDX-License-Identifier: MIT OR Apache-2.0
/* says: weft_all_of(family): an effect of the family has two clauses */
/* names: clause<weft__put__index, weft__state__count> */
#include <weft/weft.hpp>

WEFT_FAMILY(state, (int, get), (void, put, int, value));

int f();
int f()
{
	return weft::handle([] { return get(); }, weft_all_of(state), weft_on(get).tail([] { return 1; }),
			    weft_on(put).tail([](int) {}), weft_on(put).tail([](int) {}));
}
