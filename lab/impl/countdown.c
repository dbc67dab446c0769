/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* B5 countdown: count a state down to 0 by its two effects. gets=2 asks for the state a second time to write it. */
#include "lab.h"
#include <weft/weft.h>

WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));

static void *countdown(void *unused)
{
	int64_t s;

	while ((s = get()) > 0)
		put(s - 1);
	return unused;
}

static void *countdown_twice(void *unused)
{
	while (get() > 0)
		put(get() - 1);
	return unused;
}

static int64_t run(int64_t s, weft_fn_t *body)
{
	weft_coro_t *k = weft_create(body, NULL);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, state) {
		if (weft_is(get, r))
			weft_reply(get, r, s);
		else
			s = weft_args(put, r)->value;
	}
	weft_delete(k);
	return s;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), gets = lab_number(argc, argv, "gets", 1), result;

	lab_start();
	result = run(n, gets == 2 ? countdown_twice : countdown);
	lab_stop();
	return lab_report((uint64_t)((gets + 1) * n + 1), result);
}
