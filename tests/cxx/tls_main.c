/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tls.h"

int main(void)
{
	return tls_test();
}
