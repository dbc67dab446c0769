/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Chains of coroutines for debuggers to walk. Each scenario ends in stop(name), where the lane examines the stack; the
 * expected stacks are in chains.golden. Arguments:
 *   walk, libunwind   examine its own stack instead, by backtrace() and _Unwind_Backtrace or by libunwind, and print it
 *   misuse, overflow  end badly: resume a finished coroutine; use up a stack
 *   spin              be busy inside a coroutine, for a profiler
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weft/weft.h>

#include "look.h"

WEFT_EFFECT(int, ask, int, what);

/* ---- frames ---------------------------------------------------------------------------------------------------- */

static const char *scenario;

FRAME int leaf(int depth);
FRAME int leaf(int depth)
{
	volatile char here[100];

	here[depth] = 1;
	if (!strcmp(scenario, "yielded"))
		(void)weft_suspend(NULL);
	else if (!strcmp(scenario, "performed") || !strcmp(scenario, "fostered"))
		(void)ask(depth);
	else if (!strcmp(scenario, "signalled"))
		raise(SIGUSR1);
	stop(scenario);
	return here[depth];
}

FRAME int branch(int depth);
FRAME int branch(int depth)
{
	volatile int sum = depth ? branch(depth - 1) : leaf(3);

	KEEP();
	return sum + 1;
}

FRAME void *innermost(void *arg);
FRAME void *innermost(void *arg)
{
	volatile int sum = branch(2);

	KEEP();
	(void)sum;
	return arg;
}

static weft_coro_t *make(weft_fn_t *fn, void *arg, unsigned flags)
{
	weft_attr_t attr = {.name = "chain", .flags = flags};
	weft_coro_t *k = weft_create_with(fn, arg, &attr);

	if (!k)
		exit(1);
	return k;
}

static unsigned flags_of_inner;

FRAME void *middle(void *arg);
FRAME void *middle(void *arg)
{
	weft_coro_t *k = make(innermost, NULL, flags_of_inner);
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	while (!weft_returned(r))
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	KEEP();
	return arg;
}

FRAME void *outermost(void *arg);
FRAME void *outermost(void *arg)
{
	weft_coro_t *k = make(middle, NULL, 0);

	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	KEEP();
	return arg;
}

/* ---- scenarios --------------------------------------------------------------------------------------------------- */

FRAME void run(const char *name, weft_fn_t *fn, unsigned flags);
FRAME void run(const char *name, weft_fn_t *fn, unsigned flags)
{
	weft_coro_t *k = make(fn, NULL, flags);
	weft_request_t r;

	scenario = name;
	flags_of_inner = flags;
	weft_handle (r, k, ask)
		weft_reply(ask, r, 1);
	weft_delete(k);
	KEEP();
}

FRAME void *foster(void *arg);
FRAME void *foster(void *arg)
{
	weft_request_t r = weft_resume(arg, NULL, weft_handles(ask));

	KEEP();
	return r.payload;
}

/* The chain is suspended by its first parent, and continued by another coroutine. */
FRAME void run_fostered(void);
FRAME void run_fostered(void)
{
	weft_coro_t *k = make(middle, NULL, 0), *parent = make(foster, k, 0);

	scenario = "fostered";
	flags_of_inner = 0;
	(void)weft_resume(k, NULL, weft_handles(ask));
	(void)weft_resume(parent, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	weft_delete(parent);
	KEEP();
}

FRAME void *sibling(void *arg);
FRAME void *sibling(void *arg)
{
	stop(scenario);
	KEEP();
	return arg;
}

FRAME void *switches(void *arg);
FRAME void *switches(void *arg)
{
	(void)weft_switch(arg, NULL);
	KEEP();
	return arg;
}

FRAME void run_sideways(const char *name, unsigned flags);
FRAME void run_sideways(const char *name, unsigned flags)
{
	weft_coro_t *to = make(sibling, NULL, flags), *from = make(switches, to, flags);

	scenario = name;
	(void)weft_resume(from, NULL, WEFT_HANDLE_NONE);
	weft_delete(from);
	weft_delete(to);
	KEEP();
}

FRAME void on_signal(int number);
FRAME void on_signal(int number)
{
	(void)number;
	stop("handler");
	KEEP();
}

FRAME void run_finished(void);
FRAME void run_finished(void)
{
	weft_coro_t *k = make(sibling, NULL, 0);

	scenario = "before";
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	KEEP();
}

FRAME void *misuses(void *arg);
FRAME void *misuses(void *arg)
{
	run_finished();
	KEEP();
	return arg;
}

FRAME int deep(volatile char *above);
FRAME int deep(volatile char *above)
{
	volatile char here[300];

	here[0] = *above;
	return here[0] ? 0 : deep(here) + here[0];
}

FRAME void *overflows(void *arg);
FRAME void *overflows(void *arg)
{
	volatile char here = 0;

	(void)deep(&here);
	KEEP();
	return arg;
}

FRAME void spin(double seconds);
FRAME void spin(double seconds)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	while (clock() < end)
		for (volatile int i = 0; i < 100000; i++)
			;
	KEEP();
}

FRAME void *spins(void *arg);
FRAME void *spins(void *arg)
{
	for (int i = 0; i < 5; i++) {
		spin(0.1);
		(void)ask(i);
	}
	KEEP();
	return arg;
}

static int run_as(const char *what)
{
	static const struct {
		const char *name;
		weft_fn_t *fn;
	} all[] = {{"misuse", misuses}, {"overflow", overflows}, {"spin", spins}};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(what, all[i].name)) {
			run(what, all[i].fn, 0);
			return 0;
		}
	fprintf(stderr, "usage: chains [walk | libunwind | misuse | overflow | spin]\n");
	return 2;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !look_by(argv[1]))
		return run_as(argv[1]);
	signal(SIGUSR1, on_signal);
	run("one", innermost, 0);
	run("two", middle, 0);
	run("three", outermost, 0);
	run("yielded", middle, 0);
	run("performed", outermost, 0);
	run("signalled", middle, 0);
	run("saving", middle, WEFT_SAVE_FPU);
	run_fostered();
	run_sideways("sideways", 0);
	run_sideways("sideways_saving", WEFT_SAVE_FPU);
	return 0;
}
