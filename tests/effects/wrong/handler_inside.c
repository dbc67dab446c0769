/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc: handler answers: define handlers outside of functions */
/* g++: handler answers: define handlers outside of functions */
/* clang: function definition is not allowed here */
/* clang++: function definition is not allowed here */
/* only the first: gcc g++ clang clang++ */
#include <weft/weft.h>

WEFT_EFFECT(int, foo, int, a);

static void *on_foo(void *state, weft_resumption_t *k, int a)
{
	(void)state;
	return weft_tail_continue(foo, k, a);
}

void *f(void *(*body)(void *));
void *f(void *(*body)(void *))
{
	WEFT_HANDLER(answers, weft_general(foo, on_foo));

	return weft_run(&answers, 0, body, 0);
}
