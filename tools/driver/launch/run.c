/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the programs that a compiler would have run, with one directory for all temporary files. */
#include "launch.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char directory[PATH_MAX];
static volatile sig_atomic_t child, caught;

/* A build signals this process, not its job: pass the signal on, and clean up when the job has ended. */
static void on_signal(int signal)
{
	caught = signal;
	if (child > 0)
		kill(child, signal);
}

static void catch_signals(void)
{
	static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
	struct sigaction action = {.sa_handler = on_signal}, old;

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
}

static char subdirectory[PATH_MAX + 64];

static void remove_one(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(path);
}

static void remove_directory(void)
{
	if (*subdirectory)
		remove_one(subdirectory);
	remove_one(directory);
}

void make_subdirectory(const char *name)
{
	snprintf(subdirectory, sizeof subdirectory, "%s/%s", directory, name);
	if (mkdir(subdirectory, 0700) < 0)
		die(EXIT_BUG, "cannot write to %s: %s", directory, strerror(errno));
}

void make_directory(void)
{
	const char *parent = getenv("TMPDIR");

	if (*directory)
		return;
	catch_signals();
	snprintf(directory, sizeof directory, "%s/weft-cc.XXXXXX", parent && *parent ? parent : "/tmp");
	if (!mkdtemp(directory))
		die(EXIT_BUG, "cannot write to %s: %s", parent && *parent ? parent : "/tmp", strerror(errno));
	atexit(remove_directory);
}

/* Starts a program; its standard error goes to `fd` unless that is -1. */
static void start(char *const *argv, int fd)
{
	child = fork();
	if (child < 0)
		die(EXIT_BUG, "cannot run '%s': %s", argv[0], strerror(errno));
	if (child)
		return;
	if (fd >= 0) {
		dup2(fd, 2);
		setenv("TMPDIR", directory, 1);
	}
	execvp(argv[0], argv);
	say("cannot run '%s': %s", argv[0], strerror(errno));
	_exit(127);
}

/* The exit code of the child. A signal to this process or to the child ends everything. */
static int await(const char *what)
{
	int status;

	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			die(EXIT_BUG, "lost '%s': %s", what, strerror(errno));
	child = 0;
	if (caught) {
		if (*directory)
			remove_directory();
		signal(caught, SIG_DFL);
		raise(caught);
	}
	if (WIFSIGNALED(status)) {
		say("%s: killed by signal %d (%s)", what, WTERMSIG(status), strsignal(WTERMSIG(status)));
		return EXIT_BUG;
	}
	return WEXITSTATUS(status);
}

int run(char *const *argv)
{
	start(argv, -1);
	return await(argv[0]);
}

int run_asking(char *const *argv, int fd)
{
	start(argv, fd);
	return await(argv[0]);
}
