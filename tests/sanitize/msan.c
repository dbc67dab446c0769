/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* With MemorySanitizer, which supports only the system's stacks, the header must not compile. */
#include <weft/weft.h>

int main(void)
{
	return weft_current() != 0;
}
