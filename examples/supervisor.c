/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * supervisor.c: a task that fails is restarted, up to a maximum number of attempts; a deadline ends a task that hangs.
 * See docs/reference/tasks.md.
 */
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

#define MS 1000000

/* doc: begin worker */
struct job {
	const char *name;
	int attempts, works_at; /* number of the attempt that succeeds; 0: it hangs */
};

static void says_goodbye(struct job *job)
{
	printf("%s: attempt %d ends\n", job->name, job->attempts);
}

static void *attempt(void *argument)
{
	struct job *job = argument;

	job->attempts++;
	weft_defer(says_goodbye, job);
	if (!job->works_at)
		weft_sleep(1000000ull * MS);
	if (job->attempts < job->works_at)
		weft_task_fail(-EIO);
	return NULL;
}
/* doc: end */

static bool is_for_lack_of_memory(int error)
{
	return error == -ENOMEM || error == -EDQUOT;
}

/* doc: begin supervise */
static int supervise(struct job *job)
{
	int error, tries;

	for (tries = 0; tries < 3; tries++) {
		WEFT_SCOPE_UNTIL(scope, weft_now() + 100 * MS);
		error = weft_scope_spawn(&scope, attempt, job);
		if (!error)
			error = weft_scope_wait(&scope);
		if (!error || is_for_lack_of_memory(error))
			break;
	}
	return error;
}
/* doc: end */

static void *run(void *unused)
{
	struct job jobs[] = {{"good", 0, 1}, {"flaky", 0, 3}, {"hopeless", 0, 9}, {"hanging", 0, 0}};
	int error;

	for (unsigned i = 0; i < sizeof jobs / sizeof *jobs; i++) {
		error = supervise(&jobs[i]);
		if (is_for_lack_of_memory(error))
			weft_task_fail(error);
		printf("%s: %s\n", jobs[i].name, error ? strerror(-error) : "done");
	}
	return unused;
}

int main(void)
{
	int error = weft_rt_run(NULL, run, NULL, NULL);

	if (error)
		fprintf(stderr, "supervisor: %s\n", strerror(-error));
	return error != 0;
}
