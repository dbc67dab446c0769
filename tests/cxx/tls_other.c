/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In a separate file, so that the caller's compiler knows nothing about it. */
#include "tls.h"

long *address_of_exported(void)
{
	return &tls_exported;
}
