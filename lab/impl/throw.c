/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * throw: `n` times, a handler is installed, a recursion goes `frames` deep and is left by an exception.
 *
 *   by=exception  an exception effect; the coroutine that the recursion runs in is reset for the next time
 *   by=create     like exception, with a new coroutine each time
 *   by=abort      a handler with an abort clause is run each time
 *   by=longjmp    plain C: setjmp and longjmp
 */
#include "lab.h"
#include <setjmp.h>
#include <weft/weft.h>

WEFT_EXCEPTION(fail, int64_t, code);

static sigjmp_buf target;
static int64_t failed;

/* The way in which the innermost frame leaves the recursion. */
static void (*leave)(int64_t code);

static LAB_NOINLINE int64_t descend(int64_t frames)
{
	int64_t rest;

	if (frames <= 1) {
		leave(frames);
		return 0;
	}
	rest = descend(frames - 1);
	LAB_HIDE(rest);
	return rest + 1;
}

static void *body(void *frames)
{
	descend(*(int64_t *)frames);
	return NULL;
}

static void by_effect(int64_t code)
{
	fail(code);
}

static int64_t handle(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(fail));

	return weft_args(fail, r)->code;
}

static int64_t reset(int64_t n, int64_t frames)
{
	weft_coro_t *k = weft_create(body, &frames);
	int64_t caught = 0, i;

	if (!k)
		lab_die("weft_create");
	for (i = 0; i < n; i++) {
		weft_reset(k, body, &frames);
		caught += handle(k);
	}
	weft_delete(k);
	return caught;
}

static int64_t create(int64_t n, int64_t frames)
{
	int64_t caught = 0, i;

	for (i = 0; i < n; i++) {
		weft_coro_t *k = weft_create(body, &frames);

		if (!k)
			lab_die("weft_create");
		caught += handle(k);
		weft_delete(k);
	}
	return caught;
}

static void *on_fail(void *caught, int64_t code)
{
	*(int64_t *)caught += code;
	return NULL;
}

WEFT_HANDLER(failing, weft_abort(fail, on_fail));

static int64_t abort_clause(int64_t n, int64_t frames)
{
	int64_t caught = 0, i;

	for (i = 0; i < n; i++)
		weft_run(&failing, &caught, body, &frames);
	return caught;
}

static void by_longjmp(int64_t code)
{
	failed = code;
	siglongjmp(target, 1);
}

static int64_t jump(int64_t n, int64_t frames)
{
	volatile int64_t caught = 0, i;

	for (i = 0; i < n; i++) {
		if (!sigsetjmp(target, 0))
			descend(frames);
		else
			caught += failed;
	}
	return caught;
}

static const struct {
	const char *name;
	int64_t (*run)(int64_t n, int64_t frames);
	void (*leave)(int64_t code);
} ways[] = {
    {"exception", reset, by_effect},
    {"create", create, by_effect},
    {"abort", abort_clause, by_effect},
    {"longjmp", jump, by_longjmp},
};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), frames = lab_number(argc, argv, "frames", 1), caught;
	size_t i;

	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!lab_is(argc, argv, "by", ways[i].name))
			continue;
		leave = ways[i].leave;
		lab_start();
		caught = ways[i].run(n, frames);
		lab_stop();
		return lab_report((uint64_t)n, caught);
	}
	lab_die("by=exception, create, abort or longjmp");
}
