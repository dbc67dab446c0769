// SPDX-License-Identifier: MIT OR Apache-2.0
// An element of another type.
#include <weft/weft.hpp>

weft::generator<int> g([](auto yield) { yield("text"); });
