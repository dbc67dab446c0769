/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B1 state: a countdown by get and put under d nested handlers of an unrelated effect.
 *
 *   form=native   plain C without effects, like the source's native version: get and put are functions that read and
 *                 write a global variable, and d nested calls stand for the handlers
 *   form=loop     handlers are loops around weft_resume
 *   form=located  like loop, but the handler is found once, then performed at directly
 *   form=general  handlers are tables of general clauses, which continue by weft_tail_continue
 *   form=tail     tail clauses
 *   form=hot      tail clauses, and the performer guesses the clause: a perform is only a check of the guess
 *
 * The installation of the handlers is not timed.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_FAMILY(state, (int64_t, get), (void, put, int64_t, value));
WEFT_EFFECT(void, unrelated);

static int64_t on_get(void *state)
{
	return *(int64_t *)state;
}

static void on_put(void *state, int64_t value)
{
	*(int64_t *)state = value;
}

static inline void *on_get_general(void *state, weft_resumption_t *k)
{
	return weft_tail_continue(get, k, *(int64_t *)state);
}

static inline void *on_put_general(void *state, weft_resumption_t *k, int64_t value)
{
	*(int64_t *)state = value;
	return weft_tail_continue(put, k);
}

static void on_unrelated(void *unused)
{
	(void)unused;
}

/* ---- without effects ------------------------------------------------------------------------------------------- */

static int64_t global;

static LAB_NOINLINE int64_t get_native(void)
{
	return global;
}

static LAB_NOINLINE void put_native(int64_t value)
{
	global = value;
}

static void countdown_native(void)
{
	int64_t s;

	while ((s = get_native()) > 0)
		put_native(s - 1);
}

/* Returns the depth, so that no compiler turns the recursion into a loop. */
static LAB_NOINLINE int64_t descend_native(int64_t depth)
{
	int64_t below;

	if (depth == 0) {
		lab_start();
		countdown_native();
		lab_stop();
		return 0;
	}
	below = descend_native(depth - 1);
	LAB_HIDE(below);
	return below + 1;
}

static int64_t run_native(int64_t s, int64_t depth)
{
	global = s;
	descend_native(depth);
	return global;
}

/* ---- with effects ---------------------------------------------------------------------------------------------- */

WEFT_HANDLER(by_tail, weft_tail(get, on_get), weft_tail(put, on_put));
WEFT_HANDLER(by_general, weft_general(get, on_get_general), weft_general(put, on_put_general));
WEFT_HANDLER(by_other, weft_tail(unrelated, on_unrelated));

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

static void countdown_hot(void)
{
	int64_t s;

	while ((s = weft_perform_hot(get, on_get)) > 0)
		weft_perform_hot(put, on_put, s - 1);
}

static const struct form {
	const char *name;
	void (*countdown)(void);
	const weft_handler_t *handler; /* NULL: a loop */
} forms[] = {
    {"loop", countdown, NULL},	   {"located", countdown_located, NULL}, {"general", countdown, &by_general},
    {"tail", countdown, &by_tail}, {"hot", countdown_hot, &by_tail},
};

struct level {
	int64_t depth;
	const struct form *form;
};

static weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k)
		lab_die("weft_create");
	return k;
}

static void *descend(void *arg);

/* Runs the rest under one more unrelated handler. */
static void descend_under_loop(struct level *next)
{
	weft_coro_t *k = make(descend, next);
	weft_request_t r;

	weft_handle (r, k, unrelated)
		;
	weft_delete(k);
}

static void *descend(void *arg)
{
	const struct level *level = arg;
	struct level next = {level->depth - 1, level->form};

	if (level->depth == 0) {
		lab_start();
		level->form->countdown();
		lab_stop();
	} else if (level->form->handler) {
		weft_run(&by_other, NULL, descend, &next);
	} else {
		descend_under_loop(&next);
	}
	return NULL;
}

static int64_t run_loop(int64_t s, struct level *level)
{
	weft_coro_t *k = make(descend, level);
	weft_request_t r;

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
	int64_t n = lab_number(argc, argv, "n", 5), result = n;
	int64_t depth = lab_number(argc, argv, "d", 0);
	struct level level = {depth, NULL};
	size_t i;

	if (lab_is(argc, argv, "form", "native"))
		return lab_report((uint64_t)(2 * n + 1), run_native(n, depth));
	for (i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (lab_is(argc, argv, "form", forms[i].name))
			level.form = &forms[i];
	if (!level.form)
		lab_die("form=native, loop, located, general, tail or hot");
	if (level.form->handler)
		weft_run(level.form->handler, &result, descend, &level);
	else
		result = run_loop(n, &level);
	return lab_report((uint64_t)(2 * n + 1), result);
}
