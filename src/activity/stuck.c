/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * WEFT_STUCK=ms prints a line, and the calls of an activity that has let no other activity run for that time after the
 * timer has rung, because it is in no_yield or in plain code. The timer's thread interrupts the activity by a signal,
 * whose handler notes the calls. The timer's thread prints them.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "activity/activity.h"
#include "internal/bytes.h"
#include "internal/message.h"

enum { PLACES = 8, PATIENCE_MS = 200 };

static uint64_t after; /* nanoseconds; 0: never */
static int number;     /* the signal's number */

/* Only the timer's thread asks. */
static struct {
	_Atomic bool asked, answered;
	const void *pc;
	void *places[PLACES];
	size_t count;
	bool begun;
} calls;

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *unused)
{
	_Unwind_Ptr at = _Unwind_GetIP(context);

	(void)unused;
	calls.begun |= at == (_Unwind_Ptr)calls.pc;
	if (!calls.begun)
		return _URC_NO_REASON;
	if (calls.count == PLACES || _Unwind_GetRegionStart(context) == (_Unwind_Ptr)weft__activity_start)
		return _URC_END_OF_STACK;
	/* Places are return addresses: + 1 makes the interrupted address look like a return address. */
	calls.places[calls.count] = (void *)(at + !calls.count);
	calls.count++;
	return _URC_NO_REASON;
}

static void note(int signal, siginfo_t *info, void *context)
{
	(void)signal;
	(void)info;
	if (!atomic_exchange(&calls.asked, false))
		return;
	calls.pc = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	_Unwind_Backtrace(step, NULL);
	atomic_store(&calls.answered, true);
}

static void read_environment(void)
{
	struct sigaction action = {.sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	uint64_t wanted = weft__stuck_after();

	number = SIGRTMAX - 1;
	if (wanted && sigaction(number, &action, NULL) == 0)
		after = wanted;
}

bool weft__stuck_wanted(struct weft__activity_group *g)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	if (after)
		g->thread = (pid_t)syscall(SYS_gettid);
	return after;
}

static void write_calls(uint64_t ms)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "an activity has let no other run for ");
	weft__line_number(&line, ms);
	weft__line_place(&line, " ms: it is in no_yield, or in plain code,", calls.places[0]);
	weft__line_write(&line);
	for (size_t i = 1; i < calls.count; i++) {
		weft__line_begin(&line);
		weft__line_place(&line, "    called", calls.places[i]);
		weft__line_write(&line);
	}
}

static void ask(const struct weft__activity_group *g, uint64_t ms)
{
	static const struct timespec millisecond = {0, 1000000};

	calls.count = 0;
	calls.begun = false;
	atomic_store(&calls.answered, false);
	atomic_store(&calls.asked, true);
	if (syscall(SYS_tgkill, getpid(), g->thread, number))
		return;
	for (int i = 0; i < PATIENCE_MS && !atomic_load(&calls.answered); i++)
		nanosleep(&millisecond, NULL);
	if (atomic_exchange(&calls.asked, false) || !atomic_load(&calls.answered) || !calls.count)
		return;
	write_calls(ms);
}

/* The timer is about to ring for g. */
void weft__stuck_look(struct weft__activity_group *g, uint64_t time)
{
	if (!g->watched)
		return;
	if (!__atomic_load_n(&g->hot->flag, __ATOMIC_RELAXED)) {
		g->rung = time;
	} else if (g->rung && time - g->rung >= after) {
		ask(g, (time - g->rung) / 1000000);
		g->rung = 0; /* once */
	}
}
