/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Needs a header that depends on where it is compiled, and an option. */
#include "plain.h"

int plain(void)
{
	return PLAIN + OPTION;
}
