/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 resume_nontail: a loop performs n operators, then returns the seed; the handler has work to do after each resume,
 * so it is a recursive function. It runs 1000 times, and each result seeds the next run.
 *   form=table  a general clause with work after the resume
 *   form=then   a tail clause that defers the work until the answer is known
 *   form=hot    like then, and the performer guesses the clause
 *   plain=1     the recursion alone
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_EFFECT(void, operate, int64_t, x);

static int64_t op(int64_t x, int64_t y)
{
	return llabs(x - 503 * y + 37) % 1009;
}

static void *loop(void *arg)
{
	const int64_t *n = arg;
	int64_t i;

	for (i = *n; i > 0; i--)
		operate(i);
	return NULL;
}

static int64_t handle(weft_coro_t *k, int64_t seed)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(operate));
	int64_t x;

	if (weft_returned(r))
		return seed;
	x = weft_args(operate, r)->x;
	return op(x, handle(k, seed));
}

static int64_t run(int64_t n, int64_t seed)
{
	weft_coro_t *k = weft_create(loop, &n);
	int64_t result;

	if (!k)
		lab_die("weft_create");
	result = handle(k, seed);
	weft_delete(k);
	return result;
}

/* The state is the seed. */
static void *on_operate(void *seed, weft_resumption_t *k, int64_t x)
{
	(void)seed;
	return (void *)op(x, (int64_t)weft_continue(operate, k));
}

static void *on_return(void *seed, void *unused)
{
	(void)unused;
	return (void *)*(int64_t *)seed;
}

WEFT_HANDLER(operating, weft_general(operate, on_operate), weft_on_return(on_return));

static int64_t run_table(int64_t n, int64_t seed)
{
	return (int64_t)weft_run(&operating, &seed, loop, &n);
}

static void *on_end(void *seed, void *answer, const int64_t *x)
{
	(void)seed;
	return (void *)op(*x, (int64_t)answer);
}

static void on_operate_in_place(void *seed, int64_t x)
{
	(void)seed;
	if (weft_on_answer(on_end, &x))
		lab_die("weft_on_answer");
}

WEFT_HANDLER(operating_in_place, weft_tail(operate, on_operate_in_place), weft_on_return(on_return));

static void *loop_guessing(void *arg)
{
	const int64_t *n = arg;
	int64_t i;

	for (i = *n; i > 0; i--)
		weft_perform_hot(operate, on_operate_in_place, i);
	return NULL;
}

static int64_t run_in_place(weft_fn_t *body, int64_t n, int64_t seed)
{
	return (int64_t)weft_run(&operating_in_place, &seed, body, &n);
}

static int64_t run_then(int64_t n, int64_t seed)
{
	return run_in_place(loop, n, seed);
}

static int64_t run_hot(int64_t n, int64_t seed)
{
	return run_in_place(loop_guessing, n, seed);
}

static LAB_NOINLINE int64_t run_plain(int64_t n, int64_t seed)
{
	int64_t rest;

	if (n == 0)
		return seed;
	rest = run_plain(n - 1, seed);
	LAB_HIDE(rest);
	return op(n, rest);
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), s = 0;
	int64_t (*form)(int64_t n, int64_t seed) = run;
	int i;

	if (lab_number(argc, argv, "plain", 0))
		form = run_plain;
	else if (lab_is(argc, argv, "form", "table"))
		form = run_table;
	else if (lab_is(argc, argv, "form", "then"))
		form = run_then;
	else if (lab_is(argc, argv, "form", "hot"))
		form = run_hot;
	lab_start();
	for (i = 0; i < 1000; i++)
		s = form(n, s);
	lab_stop();
	return lab_report((uint64_t)(1000 * n), s);
}
