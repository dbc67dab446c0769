/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'void * (*)(void *, int)' */
/* gcc-errors: 2 */
/* gcc-names: selector of type 'void * (*)(void *)' */
/* clang: assigning to 'weft__on_failure_t *' (aka 'void *(*)(void *, int)') from 'void *(void *)' */
/* g++: from type 'void*(void*)' to type 'void* (*)(void*, int)' */
/* clang++: from 'void *(*)(void *)' to 'weft__on_failure_t *' (aka 'void *(*)(void *, int)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static void *on_foo(void *state)
{
	return state;
}

WEFT_HANDLER(h, weft_on_failure(on_foo));
