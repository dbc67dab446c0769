/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What this program is linked with performs, and it handles. */
#include "declared.h"

int main(void)
{
	return handles(&performs);
}
