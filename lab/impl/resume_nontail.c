/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 resume_nontail: a loop performs n operators, then returns the seed; the handler has work to do after each resume,
 * so it is a recursive function. Run 1000 times, each result seeding the next. form=table: a general clause that goes
 * on after it has continued. plain=1: the recursion alone.
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
	int64_t n = lab_number(argc, argv, "n", 5), plain = lab_number(argc, argv, "plain", 0), s = 0;
	bool table = lab_is(argc, argv, "form", "table");
	int i;

	lab_start();
	for (i = 0; i < 1000; i++)
		s = plain ? run_plain(n, s) : table ? run_table(n, s) : run(n, s);
	lab_stop();
	return lab_report((uint64_t)(1000 * n), s);
}
