/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'void * (*)(void *, int)' from type 'struct weft__function_of_another_type' */
/* gcc-errors: 2 */
/* gcc-names: selector of type 'int (*)(void *, int)' */
/* clang: (aka 'void *(*)(void *, int)') from 'int (void *, int)' */
/* g++: from type 'int(void*, int)' to type 'weft__pointer<void*(void*, int)>' */
/* clang++: from 'int (*)(void *, int)' to 'weft__pointer<weft__foo__abort>' (aka 'void *(*)(void *, int)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static int on_foo(void *state, int a)
{
	return state ? a : 0;
}

WEFT_HANDLER(h, weft_abort(foo, on_foo));
