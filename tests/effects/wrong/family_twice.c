/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: redefinition of 'weft__bar__declared' */
/* g++: redefinition of 'struct weft__bar__effect_declaration' */
/* clang: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* clang++: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* only the first: gcc g++ */
#include <weft/weft.h>

WEFT_FAMILY(bar, (int, foo), (void, baz, int, a));
WEFT_FAMILY(bar, (int, foo), (void, baz, int, a));
