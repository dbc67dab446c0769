/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timer slack: how late the kernel may wake a thread, by default 50 microseconds. Workers have the smallest slack, so
 * that timers are as exact as the kernel's. A child process inherits the slack of the thread that makes it, as its
 * default, and keeps it across exec: so a child gets the slack that the program had before its first runtime.
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <pthread.h>
#include <sys/prctl.h>

enum { EXACT = 1 };

static unsigned long usual; /* 0 means the thread's default */

void weft__slack_usual(void)
{
	if (prctl(PR_GET_TIMERSLACK) == EXACT)
		prctl(PR_SET_TIMERSLACK, usual);
}

static void begin(void)
{
	int slack = prctl(PR_GET_TIMERSLACK);

	usual = slack > EXACT ? (unsigned long)slack : 0;
	(void)pthread_atfork(NULL, NULL, weft__slack_usual);
}

void weft__slack_exact(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, begin);
	prctl(PR_SET_TIMERSLACK, (unsigned long)EXACT);
}
