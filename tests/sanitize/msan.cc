// SPDX-License-Identifier: MIT OR Apache-2.0
// With MemorySanitizer, which does not know stacks but the system's, the header must not compile.
#include <weft/weft.hpp>

int main()
{
	return weft_current() != nullptr;
}
