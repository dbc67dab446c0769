/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A child's standard error: WEFT_STUCK on a long no_yield block, WEFT_ACTIVITIES=profile on short calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <weft/charcoal.h>

static volatile int never;
static volatile long sum;

static __attribute__((noinline)) void hold(int ms)
{
	uint64_t end = weft_now() + (uint64_t)ms * 1000000;

	while (weft_now() < end)
		sum++;
}

/* May yield, and is short. */
static __attribute__((noinline)) int quick(int n)
{
	if (never)
		hold(n);
	return n + 1;
}

static void *works(void *unused)
{
	for (int i = 0; i < 20000; i++)
		sum += quick(i);
	no_yield hold(150);
	hold(50);
	return unused;
}

/* Reads the messages of a group whose environment has this variable. */
static NO_YIELD void said(const char *name, const char *value, char *text, size_t size)
{
	int p[2];
	size_t got = 0;
	ssize_t n;
	pid_t child;

	if (pipe(p) || (child = fork()) < 0)
		exit(2);
	if (!child) {
		dup2(p[1], STDERR_FILENO);
		setenv(name, value, 1);
		_exit(weft_activity_run(NULL, works, NULL, NULL) != 0);
	}
	close(p[1]);
	while (got < size - 1 && (n = read(p[0], text + got, size - 1 - got)) > 0)
		got += (size_t)n;
	text[got] = 0;
	close(p[0]);
	waitpid(child, NULL, 0);
}

static bool has(const char *text, const char *part)
{
	if (strstr(text, part))
		return true;
	fprintf(stderr, "'%s' is not in what was said:\n%s", part, text);
	return false;
}

int main(void)
{
	const char *form = getenv("WEFT_ACTIVITIES"), *period = getenv("WEFT_ACTIVITY_PERIOD");
	bool rings = period && *period >= '0' && *period <= '9';
	bool counts = (!form || !strcmp(form, "copied")) && (!period || strcmp(period, "every"));
	char text[8000];
	bool good = true;

	said("WEFT_STUCK", "100", text, sizeof text);
	if (rings)
		good = has(text, "an activity has let no other run for 1") && has(text, "    called") &&
		       !strstr(strstr(text, "let no other") + 1, "let no other");
	else
		good = !*text;
	said("WEFT_STUCK", "soon", text, sizeof text);
	good &= has(text, "WEFT_STUCK=soon is ignored");
	if (counts) {
		said("WEFT_ACTIVITIES", "profile", text, sizeof text);
		good &= has(text, " calls in yielding mode") && has(text, "write NO_YIELD before");
	}
	return !good;
}
