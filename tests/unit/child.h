/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a function in a child process, and reports how it ended and its standard error. */
#ifndef WEFT_TESTS_CHILD_H
#define WEFT_TESTS_CHILD_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct outcome {
	int code;   /* exit code, -1 if it died by a signal */
	int signal; /* 0 if it exited */
	char text[8192];
};

enum { CHILD_SECONDS = 20, CHILD_FAILED = 99 };

/* In a child: ends the process if the condition does not hold. */
#define REQUIRE(condition)                                                                                             \
	((condition)                                                                                                   \
	     ? (void)0                                                                                                 \
	     : (fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition), _exit(CHILD_FAILED)))

/* An emulator of another architecture adds its own message about a program that dies. */
static inline void child_without_emulator(char *text)
{
	char *line = strstr(text, "qemu: uncaught target signal"), *end = line ? strchr(line, '\n') : NULL;

	if (end)
		memmove(line, end + 1, strlen(end));
}

static inline void child_read(int from, struct outcome *o)
{
	size_t length = 0;
	ssize_t n;

	while (length < sizeof o->text - 1 && (n = read(from, o->text + length, sizeof o->text - 1 - length)) > 0)
		length += (size_t)n;
	o->text[length] = 0;
	child_without_emulator(o->text);
	close(from);
}

static inline struct outcome in_child_with(void (*run)(const void *), const void *argument)
{
	struct outcome o = {.code = -1};
	const struct rlimit no_core = {0, 0};
	int ends[2], status;
	pid_t child;

	fflush(NULL);
	if (pipe(ends) || (child = fork()) < 0) {
		perror("child");
		exit(2);
	}
	if (!child) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setrlimit(RLIMIT_CORE, &no_core);
		/* The test framework catches these. */
		signal(SIGABRT, SIG_DFL), signal(SIGSEGV, SIG_DFL), signal(SIGBUS, SIG_DFL), signal(SIGILL, SIG_DFL);
		alarm(CHILD_SECONDS);
		run(argument);
		_exit(0);
	}
	close(ends[1]);
	child_read(ends[0], &o);
	waitpid(child, &status, 0);
	if (WIFEXITED(status))
		o.code = WEXITSTATUS(status);
	else
		o.signal = WTERMSIG(status);
	return o;
}

static inline void child_call(const void *run)
{
	(*(void (*const *)(void))run)();
}

static inline struct outcome in_child(void (*run)(void))
{
	return in_child_with(child_call, &run);
}

#endif
