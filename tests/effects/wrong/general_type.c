/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: assigning to type 'void * (*)(void *, weft_resumption_t *, int)' */
/* clang: assigning to 'weft__foo__general *' (aka 'void *(*)(void *, struct weft_resumption *, int)') */
/* g++: from type 'void*(void*, int)' to type 'void* (*)(void*, weft_resumption_t*, int)' */
/* clang++: from 'void *(*)(void *, int)' to 'weft__foo__general *' (aka 'void *(*)(void *, weft_resumption *, int)') */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static void *on_foo(void *state, int a)
{
	return a ? state : NULL;
}

WEFT_HANDLER(h, weft_general(foo, on_foo));
