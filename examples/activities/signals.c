/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * signals.c: signals handled by an activity. The handling is code like any other: it may allocate, print, and wait, and
 * it never interrupts other code at a place without a yield. SIGHUP reloads the settings, SIGTERM ends the work.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <weft/charcoal.h>

/* The two numbers must always be consistent. */
struct settings {
	int width, area;
};

static struct settings *settings;

static void read_settings(int width)
{
	struct settings *new = malloc(sizeof *new);

	if (!new)
		return;
	new->width = width;
	usleep(1000); /* stands for reading a file */
	new->area = width *width;
	free(settings);
	settings = new;
}

/* doc: begin handle */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL); /* they stay pending until the descriptor is read */
	return signalfd(-1, &set, SFD_CLOEXEC);
}

static void handle_signals(int fd, activity_t *work)
{
	struct signalfd_siginfo signal;

	while (read(fd, &signal, sizeof signal) == sizeof signal) {
		if (signal.ssi_signo == SIGTERM)
			break;
		read_settings(settings->width + 1);
		printf("SIGHUP: the width is %d\n", settings->width);
	}
	printf("SIGTERM\n");
	activity_cancel(work);
}
/* doc: end */

/* Runs for ever. It sends the signals that come from outside in a real program, and works on meanwhile. */
static void work(void)
{
	int last = 0;

	for (;;) {
		no_yield
		{
			if (settings->area != settings->width * settings->width)
				printf("width %d, area %d\n", settings->width, settings->area);
		}
		if (last != settings->width) {
			last = settings->width;
			kill(getpid(), last < 4 ? SIGHUP : SIGTERM);
		}
		usleep(100);
	}
}

int activity_main(void)
{
	activity_t works, handles;
	int fd = open_signals();

	read_settings(1);
	if (fd < 0 || !settings)
		return perror("signals"), 1;
	activate(&handles)
	{
		handle_signals(fd, &works);
	}
	activate(&works)
	{
		work();
	}
	activity_wait(&works);
	activity_wait(&handles);
	close(fd);
	free(settings);
	return 0;
}
