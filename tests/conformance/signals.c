/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Signals arrive between any two instructions, also of a switch, on the coroutine's stack or on an alternate stack. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "suite.h"

WEFT_EFFECT(uint64_t, tick, uint64_t, x);

static volatile sig_atomic_t signals;

/* Uses registers and stack as any handler may. */
static void on_alarm(int signal)
{
	volatile double x[64];

	for (int i = 0; i < 64; i++)
		x[i] = (double)i * (double)signal;
	signals += x[63] > 0;
}

static void *ticking(void *argument)
{
	uint64_t sum = 0, n = (uint64_t)argument;

	for (uint64_t i = 0; i < n; i++)
		sum += tick(i);
	return (void *)sum;
}

static void one_round(void)
{
	enum { TICKS = 500 };
	weft_coro_t *k = make(ticking, (void *)TICKS);
	weft_request_t r;
	double live = 0;

	weft_handle (r, k, tick) {
		live += 0.5;
		weft_reply(tick, r, 2 * weft_args(tick, r)->x);
	}
	CHECK((uint64_t)r.payload == (uint64_t)TICKS * (TICKS - 1) && live == 0.5 * TICKS);
	weft_delete(k);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void under_signals(int flags)
{
	struct sigaction action, before;
	struct itimerval often = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
	double end = now() + 0.15;

	memset(&action, 0, sizeof action);
	action.sa_handler = on_alarm;
	action.sa_flags = flags;
	signals = 0;
	sigaction(SIGALRM, &action, &before);
	setitimer(ITIMER_REAL, &often, NULL);
	while (now() < end || signals < 50)
		one_round();
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &before, NULL);
	CHECK(signals >= 50);
}

void test_signals(void)
{
	under_signals(SA_RESTART);
	under_signals(SA_RESTART | SA_ONSTACK);
}
