/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program with a warning of its own. */
#include <weft/weft.h>

int main(void)
{
	int unused;
}
