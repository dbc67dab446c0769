/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'void * (*)(void *, weft_resumption_t *, int)' */
/* gcc-errors: 2 */
/* gcc-names: selector of type 'void * (*)(void *, int)' */
/* clang: (aka 'void *(*)(void *, struct weft_resumption *, int)') from 'void *(void *, int)' */
/* g++: from type 'void*(void*, int)' to type 'weft__pointer<void*(void*, weft_resumption*, int)>' */
/* clang++: from 'void *(*)(void *, int)' to 'weft__pointer<weft__foo__general>' */
/* clang++-names: (aka 'void *(*)(void *, weft_resumption *, int)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static void *on_foo(void *state, int a)
{
	return a ? state : NULL;
}

WEFT_HANDLER(h, weft_general(foo, on_foo));
