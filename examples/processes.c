/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * processes.c: pipelines of child processes, each run by a task, all at the same time. A pipeline has a deadline; when
 * it ends early, for any reason, its processes are killed and reaped, so that none is left.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <weft/io.h>

#define MS 1000000ull

enum { COMMANDS = 3, TEXT = 1000 };

/* doc: begin pipeline */
struct pipeline {
	char *const *commands[COMMANDS + 1]; /* NULL ends them */
	uint64_t patience;		     /* milliseconds */
	pid_t processes[COMMANDS];
	int statuses[COMMANDS];
	int started, ended; /* number of processes started; number of these, from the first on, that were reaped */
	int error;
	size_t length;
	char output[TEXT];
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		weft_close(*fd);
}

/* Deferred, so it runs also if the task is cancelled. The cancellation must not prevent it from waiting here. */
static void end_all(struct pipeline **pipeline)
{
	struct pipeline *p = *pipeline;
	int i;

	weft_shield_begin();
	for (i = p->ended; i < p->started; i++)
		kill(p->processes[i], SIGKILL);
	for (i = p->ended; i < p->started; i++)
		(void)weft_waitpid(p->processes[i], NULL);
	weft_shield_end();
}

/* Starts the commands. Each reads the output of the command before. `from` is the output of the last command. */
static int start_all(struct pipeline *p, int *from)
{
	int ends[2];
	pid_t process;
	int error;

	for (; p->commands[p->started]; p->started++) {
		error = weft_pipe(ends);
		if (error)
			return error;
		process = weft_spawn_process(p->commands[p->started], NULL, (int[3]){*from, ends[1], -1});
		close_fd(from);
		weft_close(ends[1]);
		*from = ends[0];
		if (process < 0)
			return process;
		p->processes[p->started] = process;
	}
	return 0;
}

static int read_output(struct pipeline *p, int from, uint64_t deadline)
{
	ssize_t n = 1;

	while (n > 0 && p->length < sizeof p->output) {
		n = weft_read_until(from, p->output + p->length, sizeof p->output - p->length, deadline);
		p->length += n > 0 ? (size_t)n : 0;
	}
	return n > 0 ? -EMSGSIZE : (int)n;
}

static int wait_for_all(struct pipeline *p, uint64_t deadline)
{
	pid_t ended;

	for (; p->ended < p->started; p->ended++) {
		ended = weft_waitpid_until(p->processes[p->ended], &p->statuses[p->ended], deadline);
		if (ended < 0)
			return ended;
	}
	return 0;
}

static int run_pipeline(struct pipeline *p)
{
	uint64_t deadline = weft_now() + p->patience * MS;
	int error, from = -1;

	weft_defer(end_all, &p);
	weft_defer(close_fd, &from);
	error = start_all(p, &from);
	if (!error)
		error = read_output(p, from, deadline);
	if (!error)
		error = wait_for_all(p, deadline);
	return error;
}
/* doc: end */

static void *run_one(void *argument)
{
	struct pipeline *p = argument;

	p->error = run_pipeline(p);
	if (p->error && p->error != -ETIMEDOUT && p->error != -ENOENT)
		weft_task_fail(p->error);
	return NULL;
}

static void print_how_it_ended(const struct pipeline *p)
{
	int i;

	if (p->error) {
		printf(": %s\n", p->error == -ENOENT ? "no such program" : "out of time");
		return;
	}
	for (i = 0; i < p->ended; i++)
		if (WIFEXITED(p->statuses[i]))
			printf("%s %d", i ? "," : ": exit codes", WEXITSTATUS(p->statuses[i]));
		else
			printf("%s signal %d", i ? "," : ": exit codes", WTERMSIG(p->statuses[i]));
	printf("\n");
}

/* Programs differ in the blanks at the beginning of a line. */
static void print_output(const struct pipeline *p)
{
	bool begins = true;
	size_t i;

	for (i = 0; i < p->length; i++) {
		if (begins && p->output[i] == ' ')
			continue;
		printf("%s%c", begins ? "    " : "", p->output[i]);
		begins = p->output[i] == '\n';
	}
}

/* A process that was reaped is not a child any more. */
static int count_left(const struct pipeline *p)
{
	int i, left = 0;

	for (i = 0; i < p->started; i++)
		left += waitpid(p->processes[i], NULL, WNOHANG) >= 0;
	return left;
}

static void print(const struct pipeline *p)
{
	int i;

	for (i = 0; p->commands[i]; i++)
		printf("%s%s", i ? " | " : "", p->commands[i][0]);
	print_how_it_ended(p);
	if (!p->error)
		print_output(p);
}

static char *const words[] = {"printf", "pear\\nfig\\npear\\napple\\nfig\\npear\\n", NULL};
static char *const sort[] = {"sort", NULL};
static char *const count[] = {"uniq", "-c", NULL};
static char *const half[] = {"sh", "-c", "echo half of it; exit 3", NULL};
static char *const capitals[] = {"tr", "a-z", "A-Z", NULL};
static char *const wait_long[] = {"sleep", "1000", NULL};
static char *const copy[] = {"cat", NULL};
static char *const missing[] = {"no-such-program", NULL};

static void *run(void *unused)
{
	struct pipeline pipelines[] = {
	    {.commands = {words, sort, count}, .patience = 60000},
	    {.commands = {half, capitals}, .patience = 60000},
	    {.commands = {wait_long, copy}, .patience = 100},
	    {.commands = {wait_long, missing}, .patience = 60000},
	};
	int i, error = 0, left = 0, most = (int)(sizeof pipelines / sizeof *pipelines);

	WEFT_SCOPE(scope);
	for (i = 0; i < most && !error; i++)
		error = weft_scope_spawn(&scope, run_one, &pipelines[i]);
	if (error)
		weft_scope_cancel(&scope, error);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	for (i = 0; i < most; i++) {
		print(&pipelines[i]);
		left += count_left(&pipelines[i]);
	}
	printf("processes that are left: %d\n", left);
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "processes: %s\n", strerror(-error));
	return error != 0;
}
