/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* says: effect foo: declare effects outside of functions */
/* only the first */
#include <weft/weft.h>

int f(void);
int f(void)
{
	WEFT_EFFECT(int, foo, int, a);
	return foo(1);
}
