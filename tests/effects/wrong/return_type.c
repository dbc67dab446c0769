/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'void * (*)(void *, void *)' */
/* gcc-errors: 2 */
/* gcc-names: selector of type 'void * (*)(void *)' */
/* clang: assigning to 'weft__on_return_t *' (aka 'void *(*)(void *, void *)') from 'void *(void *)' */
/* g++: from type 'void*(void*)' to type 'void* (*)(void*, void*)' */
/* clang++: from 'void *(*)(void *)' to 'weft__on_return_t *' (aka 'void *(*)(void *, void *)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static void *on_foo(void *state)
{
	return state;
}

WEFT_HANDLER(h, weft_on_return(on_foo));
