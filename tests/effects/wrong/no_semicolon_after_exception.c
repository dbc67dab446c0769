/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: expected ';' before 'int' */
/* g++: expected ';' before 'int' */
/* clang: expected ';' after '_Static_assert' */
/* clang++: expected ';' after 'static_assert' */
#include <weft/weft.h>

WEFT_EXCEPTION(get)

int gets(void);
int gets(void)
{
	get();
}
