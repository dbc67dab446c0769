// SPDX-License-Identifier: MIT OR Apache-2.0
// A result of another type.
#include <weft/weft.hpp>

weft::coroutine<int> c([] { return "text"; });
