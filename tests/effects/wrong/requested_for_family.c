/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: struct weft__clauses_are_for_the_effects_of_a_family */
/* clang: struct weft__clauses_are_for_the_effects_of_a_family */
/* g++: invalid application of 'sizeof' to incomplete type 'weft__state__frame' */
/* clang++: invalid application of 'sizeof' to an incomplete type 'struct weft__state__frame' */
/* clang++-lines: 17 */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_HANDLER(h, weft_requested(state));
