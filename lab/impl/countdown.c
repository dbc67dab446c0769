/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 countdown: count a state down to 0 by its two effects. gets=2 asks for the state a second time to write it.
 * form=table: by tail clauses. form=hot: by tail clauses that the performer guesses and inlines. plain=1: by two
 * callbacks.
 */
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

/* ---- tail clauses ---------------------------------------------------------------------------------------- */

static int64_t on_get(void *state)
{
	return *(int64_t *)state;
}

static void on_put(void *state, int64_t value)
{
	*(int64_t *)state = value;
}

WEFT_HANDLER(counter, weft_tail(get, on_get), weft_tail(put, on_put));

static int64_t run_table(int64_t s, weft_fn_t *body)
{
	weft_run(&counter, &s, body, NULL);
	return s;
}

static void *countdown_hot(void *unused)
{
	int64_t s;

	while ((s = weft_perform_hot(get, on_get)) > 0)
		weft_perform_hot(put, on_put, s - 1);
	return unused;
}

/* ---- callbacks -------------------------------------------------------------------------------------------- */

struct accessors {
	int64_t (*get)(void *state);
	void (*put)(void *state, int64_t value);
};

static LAB_NOINLINE int64_t get_plain(void *state)
{
	return *(int64_t *)state;
}

static LAB_NOINLINE void put_plain(void *state, int64_t value)
{
	*(int64_t *)state = value;
}

static int64_t run_plain(int64_t s, int64_t gets)
{
	struct accessors by = {get_plain, put_plain};
	int64_t value;

	LAB_HIDE(by.get);
	LAB_HIDE(by.put);
	while ((value = by.get(&s)) > 0)
		by.put(&s, (gets == 2 ? by.get(&s) : value) - 1);
	return s;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), gets = lab_number(argc, argv, "gets", 1), result;
	weft_fn_t *body = gets == 2 ? countdown_twice : countdown;

	lab_start();
	if (lab_number(argc, argv, "plain", 0))
		result = run_plain(n, gets);
	else if (lab_is(argc, argv, "form", "hot"))
		result = run_table(n, countdown_hot);
	else
		result = (lab_is(argc, argv, "form", "table") ? run_table : run)(n, body);
	lab_stop();
	return lab_report((uint64_t)((gets + 1) * n + 1), result);
}
