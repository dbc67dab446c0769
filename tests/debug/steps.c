/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every kind of switch once, between step_begin and step_end: the lane executes them instruction by instruction and
 * walks the stack at each. */
#include <stdlib.h>

#include <weft/weft.h>

#include "step.h"

WEFT_EFFECT(int, ask, int, what);
WEFT_EXCEPTION(fail, int, code);

FRAME void *step_inner(void *arg);
FRAME void *step_inner(void *arg)
{
	(void)weft_suspend(NULL);
	(void)ask(1);
	KEEP();
	return arg;
}

FRAME void *step_fails(void *arg);
FRAME void *step_fails(void *arg)
{
	if (!arg)
		fail(1);
	KEEP();
	return arg;
}

static weft_coro_t *inner, *failing;

FRAME void *step_outer(void *arg);
FRAME void *step_outer(void *arg)
{
	weft_request_t r = weft_resume(inner, NULL, WEFT_HANDLE_NONE);

	while (!weft_returned(r))
		r = weft_resume(inner, NULL, WEFT_HANDLE_NONE);
	(void)weft_resume(failing, NULL, weft_handles(fail));
	KEEP();
	return arg;
}

FRAME void step_main(weft_coro_t *k);
FRAME void step_main(weft_coro_t *k)
{
	weft_request_t r;

	step_begin();
	weft_handle (r, k, ask)
		weft_reply(ask, r, 1);
	step_end();
	KEEP();
}

int main(int argc, char **argv)
{
	weft_attr_t attr = {.flags = argc > 1 ? WEFT_SAVE_FPU : 0};
	weft_coro_t *k = weft_create_with(step_outer, NULL, &attr);

	(void)argv;
	inner = weft_create_with(step_inner, NULL, &attr);
	failing = weft_create_with(step_fails, NULL, &attr);
	if (!k || !inner || !failing)
		return 1;
	step_main(k);
	weft_delete(k);
	weft_delete(inner);
	weft_delete(failing);
	return 0;
}
