/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: redeclaration of enumerator 'weft__foo__index' */
/* g++: 'weft__foo__index' conflicts with a previous declaration */
/* clang: redefinition of enumerator 'weft__foo__index' */
/* clang++: redefinition of enumerator 'weft__foo__index' */
/* only the first */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);
WEFT_EFFECT(long, foo, int, a);
