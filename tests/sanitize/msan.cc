// SPDX-License-Identifier: MIT OR Apache-2.0
//
// With MemorySanitizer, which supports only the system's stacks, the header must not compile.
#include <weft/weft.hpp>

int main()
{
	return weft_current() != nullptr;
}
