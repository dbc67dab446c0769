/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A profiler: a signal handler that walks the stack, wherever it interrupts activities: in the midst of a switch, while
 * frames are copied, on the way to another stack.
 */
#define _GNU_SOURCE
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weft/charcoal.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif
enum { PERIOD = 30000, FRAMES = 100 };
static const uint64_t duration = 1500000000;
static volatile long samples, deepest, sum;
static uint64_t end;

static void sample(int signal)
{
	void *places[FRAMES];
	long depth = backtrace(places, FRAMES);

	(void)signal;
	samples++;
	if (depth > deepest)
		deepest = depth;
}

static WEFT_NO_IMPLICIT_YIELD long deep(int n)
{
	volatile char room[200];

	room[0] = 1;
	return n ? deep(n - 1) + room[0] : 0;
}

static void ring(activity_sem_t *mine, activity_sem_t *next)
{
	while (weft_now() < end) {
		activity_sem_wait(mine);
		sum += deep(20);
		activity_sem_post(next);
	}
	activity_sem_post(next);
}

int activity_main(void)
{
	activity_sem_t sems[3];
	activity_t ringing[3], diving;

	end = weft_now() + duration;
	for (int i = 0; i < 3; i++)
		activity_sem_init(&sems[i], i == 0);
	for (int i = 0; i < 3; i++)
		activate(&ringing[i], i)
		{
			ring(&sems[i], &sems[(i + 1) % 3]);
		}
	activate(&diving)
	{
		while (weft_now() < end)
			sum += deep(3000); /* leaves the hot stack */
	}
	while (weft_now() < end) {
		activity_t passing;

		activate(&passing)
		{
			yield_now();
		}
		activity_wait(&passing);
	}
	for (int i = 0; i < 3; i++)
		activity_wait(&ringing[i]);
	activity_wait(&diving);
	return samples < 100 || deepest < FRAMES;
}

/* Before main: the first walk loads the unwinder, which a handler must not do. */
__attribute__((constructor)) static void profile(void)
{
	struct sigaction action = {.sa_handler = sample, .sa_flags = SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF};
	struct itimerspec often = {{0, PERIOD}, {0, PERIOD}};
	timer_t timer;
	void *place;

	(void)backtrace(&place, 1);
	event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
	if (sigaction(SIGPROF, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
	    timer_settime(timer, 0, &often, NULL))
		abort();
}
