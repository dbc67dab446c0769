/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reports that a runtime makes unasked, or upon a signal.
 *
 * The attendant is a thread that a runtime has if its configuration or the environment asks for a dump upon a signal,
 * or for a report of tasks that do not let other tasks run. It does both, because no worker may be free: each may be in
 * such a task. The signal's handler only counts and wakes the attendants of all runtimes.
 *
 * A deadlock is certain if all workers and helpers sleep, no timer is armed, and the process has no other thread except
 * the thread that waits for the runtime to end: nothing is left that could make a task ready. The runtime checks this
 * once, when it has done nothing for a while, so that an idle runtime costs nothing.
 */
#define _GNU_SOURCE
#include "sched/queue.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "internal/bytes.h"
#include "internal/libc.h"
#include "internal/message.h"

/* ---- a dump upon a signal --------------------------------------------------------------------------------------- */

static _Atomic uint32_t turns;	     /* a futex: incremented when attendants have something to look at */
static _Atomic uint32_t dumps_asked; /* number of signals that asked for a dump */

static pthread_mutex_t signals_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	unsigned users;
	struct sigaction before;
} signals[NSIG];

static void wake_attendants(void)
{
	atomic_fetch_add(&turns, 1);
	syscall(SYS_futex, &turns, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void ask_for_dump(int number, siginfo_t *info, void *context)
{
	const struct sigaction *before = &signals[number].before;
	int error = errno;

	atomic_fetch_add(&dumps_asked, 1);
	wake_attendants();
	errno = error;
	if (before->sa_flags & SA_SIGINFO)
		before->sa_sigaction(number, info, context);
	else if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN)
		before->sa_handler(number);
}

/* On the alternate stack: the kernel's signal frame may be larger than a task's stack. */
static int take_signal(int number)
{
	struct sigaction ours = {.sa_sigaction = ask_for_dump, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	int error = 0;

	if (number < 1 || number >= NSIG)
		return -EINVAL;
	weft__mutex_lock(&signals_lock);
	if (!signals[number].users &&
	    (sigaction(number, NULL, &signals[number].before) || sigaction(number, &ours, NULL)))
		error = -errno;
	else
		signals[number].users++;
	weft__mutex_unlock(&signals_lock);
	return error;
}

/* If the program has installed a handler meanwhile, that handler stays. */
static void give_signal_back(int number)
{
	struct sigaction now;

	weft__mutex_lock(&signals_lock);
	if (--signals[number].users == 0 && !sigaction(number, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	    now.sa_sigaction == ask_for_dump)
		sigaction(number, &signals[number].before, NULL);
	weft__mutex_unlock(&signals_lock);
}

/* ---- tasks that do not let other tasks run ---------------------------------------------------------------------- */

static void name_stuck(struct weft__rt *rt, unsigned i, struct weft__task *task, uint64_t since)
{
	struct weft__line line;

	weft__line_begin(&line);
	if (!weft__dump_name(rt, task, &line))
		return; /* the task has ended */
	weft__line_text(&line, " has run for ");
	weft__line_number(&line, (weft__clock() - since) / 1000000);
	weft__line_text(&line, " ms on worker ");
	weft__line_number(&line, i);
	weft__line_text(
	    &line, " without a wait or a yield: weft_task_yield() in its loop, or weft_blocking { }, lets others run");
	weft__line_write(&line);
}

static void look_at_worker(struct weft__rt *rt, unsigned i)
{
	struct weft__worker *w = &rt->worker[i];
	struct weft__run *run = &rt->attendant.runs[i];
	uint64_t switches = __atomic_load_n(&w->switches, __ATOMIC_RELAXED), now = weft__clock();
	struct weft__task *task = __atomic_load_n(&w->current, __ATOMIC_RELAXED);

	if (!task || run->task != task || run->switches != switches) {
		*run = (struct weft__run){task, switches, now, false};
	} else if (!run->told && now - run->since >= rt->attendant.stuck_after) {
		run->told = true;
		name_stuck(rt, i, task, run->since);
	}
}

/* ---- the attendant ---------------------------------------------------------------------------------------------- */

static void *attend(void *argument)
{
	struct weft__rt *rt = argument;
	struct weft__attendant *a = &rt->attendant;
	uint32_t turn, asked, answered = a->asked_before;
	unsigned i;

	prctl(PR_SET_NAME, "weft-attendant");
	for (;;) {
		turn = atomic_load(&turns);
		if (atomic_load(&a->over))
			return NULL;
		asked = atomic_load(&dumps_asked);
		if (a->signal && asked != answered) {
			answered = asked;
			(void)weft_rt_dump(rt, STDERR_FILENO);
		}
		for (i = 0; a->stuck_after && i < rt->workers; i++)
			look_at_worker(rt, i);
		weft__futex_wait((uint32_t *)&turns, turn,
				 a->stuck_after ? weft__clock() + a->stuck_after / 4 + 1 : WEFT_NEVER);
	}
}

static uint64_t stuck_after; /* from the environment */
static bool dumps;

static void read_environment(void)
{
	const char *said = getenv("WEFT_DUMP");

	stuck_after = weft__stuck_after();
	dumps = said && !strcmp(said, "1");
	if (said && *said && !dumps && strcmp(said, "0") != 0)
		weft__say_ignored("WEFT_DUMP", said, "say 1 for a list of tasks upon SIGQUIT");
}

static void configure(struct weft__attendant *a, const weft_rt_config_t *config)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_environment);
	if (config) {
		a->signal = config->dump_signal;
		a->stuck_after = config->stuck_after;
	}
	if (!a->signal && dumps)
		a->signal = SIGQUIT;
	if (!a->stuck_after)
		a->stuck_after = stuck_after;
}

int weft__attendant_start(struct weft__rt *rt, const weft_rt_config_t *config)
{
	struct weft__attendant *a = &rt->attendant;
	int error = 0;

	configure(a, config);
	if (!a->signal && !a->stuck_after)
		return 0;
	a->runs = calloc(rt->workers, sizeof *a->runs);
	if (!a->runs)
		return -ENOMEM;
	a->asked_before = atomic_load(&dumps_asked);
	if (a->signal)
		error = take_signal(a->signal);
	if (!error) {
		error = -pthread_create(&a->thread, NULL, attend, rt);
		if (error && a->signal)
			give_signal_back(a->signal);
	}
	a->runs_thread = !error;
	if (error)
		weft__attendant_stop(rt);
	return error;
}

void weft__attendant_stop(struct weft__rt *rt)
{
	struct weft__attendant *a = &rt->attendant;

	if (a->runs_thread) {
		atomic_store(&a->over, true);
		wake_attendants();
		pthread_join(a->thread, NULL);
		if (a->signal)
			give_signal_back(a->signal);
	}
	free(a->runs);
	a->runs = NULL;
}

/* ---- deadlock --------------------------------------------------------------------------------------------------- */

/* The number of threads of the process; 0: unknown. */
static unsigned threads(void)
{
	struct stat tasks;

	return stat("/proc/self/task", &tasks) ? 0 : (unsigned)tasks.st_nlink - 2;
}

/* The number of helpers; -1: a helper is in a task. */
static int sleeping_helpers(struct weft__rt *rt)
{
	int helpers;

	weft__mutex_lock(&rt->helpers_lock);
	helpers = rt->helpers == rt->helpers_idle && !rt->blocking ? (int)rt->helpers : -1;
	weft__mutex_unlock(&rt->helpers_lock);
	return helpers;
}

/* Do all workers sleep, and is no task ready? */
static bool all_sleep(struct weft__rt *rt)
{
	struct weft__worker *w;
	bool sleep = !atomic_load(&rt->shared.count) && !atomic_load(&rt->spawned.count) && !atomic_load(&rt->stop) &&
		     atomic_load(&rt->live);
	unsigned i;

	weft__spin_lock(&rt->park_lock);
	for (i = 0; sleep && i < rt->workers; i++) {
		w = &rt->worker[i];
		sleep = w->is_parked && !atomic_load(&w->pinned) && !atomic_load(&w->slot) &&
			!weft__ring_count(&w->ring) && !weft__fresh_now(&w->fresh) &&
			__atomic_load_n(&w->wheel.next, __ATOMIC_RELAXED) == WEFT_NEVER;
	}
	weft__spin_unlock(&rt->park_lock);
	return sleep;
}

/* The threads are counted first: a thread that has ended by then has finished all its accesses to the runtime. */
static bool is_deadlocked(struct weft__rt *rt)
{
	unsigned count = threads();
	int helpers = sleeping_helpers(rt);

	if (WEFT_CANARY(threads_are_not_counted))
		return all_sleep(rt);
	return helpers >= 0 && count == rt->workers + (unsigned)helpers + rt->attendant.runs_thread + 1 &&
	       all_sleep(rt) && sleeping_helpers(rt) == helpers;
}

static void say(const char *text)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, text);
	weft__line_write(&line);
}

void weft__look_for_deadlock(struct weft__rt *rt)
{
	if (rt->deadlocks > 1 || !is_deadlocked(rt))
		return;
	say(rt->deadlocks++
		? "deadlock again, of tasks that were cancelled and wait on. They are abandoned. The tasks:"
		: "deadlock: every task waits, and no thread is left to wake one. All are cancelled. The tasks:");
	(void)weft_rt_dump(rt, STDERR_FILENO);
	if (rt->deadlocks == 1)
		weft_rt_cancel(rt);
	else if (!rt->embedded)
		weft__workers_stop(rt);
}
