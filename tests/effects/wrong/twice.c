/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: redeclaration of enumerator 'weft__foo__index' */
/* g++: 'weft__foo__index' conflicts with a previous declaration */
/* clang: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* clang++: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* only the first: gcc g++ */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);
WEFT_EFFECT(long, foo, int, a);
