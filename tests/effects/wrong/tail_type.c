/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'int (*)(void *, int)' from type 'struct weft__function_of_another_type' */
/* gcc-errors: 2 */
/* gcc-names: selector of type 'int (*)(void *)' */
/* clang: (aka 'int (*)(void *, int)') from 'int (void *)' */
/* g++: from type 'int(void*)' to type 'weft__pointer<int(void*, int)>' */
/* clang++: from 'int (*)(void *)' to 'weft__pointer<weft__foo__tail>' (aka 'int (*)(void *, int)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static int on_foo(void *state)
{
	return state != NULL;
}

WEFT_HANDLER(h, weft_tail(foo, on_foo));
