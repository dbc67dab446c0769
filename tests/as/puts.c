/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <stdio.h>

int main(void)
{
	return puts("x") < 0;
}
