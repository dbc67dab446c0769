/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* state.c: mutable state as an effect. The countdown asks for a state; where it is kept is up to the handler. */
/* doc: begin state */
#include <stdio.h>
#include <weft/weft.h>

#include "must.h"

WEFT_FAMILY(state, (int, get), (void, put, int, value));

static void *countdown(void *unused)
{
	while (get() > 0)
		put(get() - 1);
	return unused;
}

int main(void)
{
	int state = 100;
	weft_coro_t *k = must(weft_create(countdown, NULL));
	weft_request_t r;

	weft_set_failure_hook(must_not_fail);
	weft_handle (r, k, state) {
		if (weft_is(get, r))
			weft_reply(get, r, state);
		else
			state = weft_args(put, r)->value;
	}
	printf("counted down to %d\n", state);
	weft_delete(k);
}
/* doc: end */
