/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B1 state: a countdown by get and put under d nested handlers of something else. located=1: the handler is found once,
 * then performed at directly.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
WEFT_EFFECT(void, unrelated);

struct level {
	int64_t depth;
	bool located;
};

static void countdown(void)
{
	int64_t s;

	while ((s = get()) > 0)
		put(s - 1);
}

static void countdown_located(void)
{
	weft_coro_t *k = weft_locate(get);
	int64_t s;

	while ((s = weft_perform_at(get, k)) > 0)
		weft_perform_at(put, k, s - 1);
}

/* One more unrelated handler around the rest, until the depth is reached. */
static void *descend(void *arg)
{
	const struct level *level = arg;
	struct level next = {level->depth - 1, level->located};
	weft_coro_t *k;
	weft_request_t r;

	if (level->depth == 0) {
		(level->located ? countdown_located : countdown)();
		return NULL;
	}
	k = weft_create(descend, &next);
	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, unrelated)
		;
	weft_delete(k);
	return NULL;
}

static int64_t run(int64_t s, struct level level)
{
	weft_coro_t *k = weft_create(descend, &level);
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
	int64_t n = lab_number(argc, argv, "n", 5), result;
	struct level level = {lab_number(argc, argv, "d", 0), lab_number(argc, argv, "located", 0)};

	lab_start();
	result = run(n, level);
	lab_stop();
	return lab_report((uint64_t)(2 * n + 1), result);
}
