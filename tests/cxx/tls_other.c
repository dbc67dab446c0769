/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In another file, so that nothing of it is known where it is called. */
#include "tls.h"

long *address_of_exported(void)
{
	return &tls_exported;
}
