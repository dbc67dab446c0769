/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: effect foo: declare effects outside of functions */
/* g++: effect foo: declare effects outside of functions */
/* clang: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* clang++: effects_are_declared_once_in_a_file_and_outside_of_functions */
/* only the first: gcc g++ */
#include <weft/weft.h>

int f(void);
int f(void)
{
	WEFT_EFFECT(int, foo, int, a);
	return foo(1);
}
