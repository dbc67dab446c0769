// SPDX-License-Identifier: MIT OR Apache-2.0
//
// An abort clause that gets a reference, whose object would be destroyed when it runs.
#include <weft/weft.hpp>

WEFT_EFFECT(int, ask, const int &, a);

int f();
int f()
{
	return weft::handle([] { return 1; }, weft_on(ask).abort([](int a) { return a; }));
}
