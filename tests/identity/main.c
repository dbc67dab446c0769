/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* This program handles the effects that its libraries or objects perform. */
#include "declared.h"

int main(void)
{
	return handles(&performs);
}
