/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * schedulers.c: the program decides which activity runs next: jobs by their priority, then jobs by their deadline. Each
 * job computes, and knows nothing of the other jobs.
 *
 *   ./weft run --activities examples/activities/schedulers.c
 */
#include <stdio.h>
#include <weft/charcoal.h>

enum { JOBS = 3, WORK = 200000 };

struct job {
	activity_t activity;
	const char *name;
	int priority;
	uint64_t deadline;
};

static struct job jobs[JOBS] = {{.name = "tidy up", .priority = 1, .deadline = 300},
				{.name = "answer", .priority = 3, .deadline = 200},
				{.name = "draw", .priority = 2, .deadline = 100}};

/* doc: begin queue */
static activity_t *waiting; /* linked by `next` */

/* An activity that is no job, for example the first one, comes last. */
static struct job *job_of(activity_t *a)
{
	for (int i = 0; i < JOBS; i++)
		if (a == &jobs[i].activity)
			return &jobs[i];
	return NULL;
}

static int is_before_by_priority(const struct job *a, const struct job *b)
{
	return a && (!b || a->priority > b->priority);
}

static int is_before_by_deadline(const struct job *a, const struct job *b)
{
	return a && (!b || a->deadline < b->deadline);
}

/* Inserts an activity behind all activities that it does not precede. */
static void ready(void *order, activity_t *a)
{
	int (*is_before)(const struct job *, const struct job *) =
	    *(int (**)(const struct job *, const struct job *))order;
	activity_t **at = &waiting;

	while (*at && !is_before(job_of(a), job_of(*at)))
		at = &(*at)->next;
	a->next = *at;
	*at = a;
}

static activity_t *next(void *order)
{
	activity_t *first = waiting;

	(void)order;
	if (first)
		waiting = first->next;
	return first;
}
/* doc: end */

static void work(const struct job *job)
{
	volatile int done = 0;

	for (int i = 0; i < WORK; i++)
		done++;
	printf("%s\n", job->name);
}

static void *all_jobs(void *unused)
{
	no_yield /* until all jobs are queued */
	{
		for (int i = 0; i < JOBS; i++)
			activate(&jobs[i].activity, i)
			{
				work(&jobs[i]);
			}
	}
	for (int i = 0; i < JOBS; i++)
		activity_wait(&jobs[i].activity);
	return unused;
}

int main(void)
{
	int (*orders[])(const struct job *, const struct job *) = {is_before_by_priority, is_before_by_deadline};
	const char *const names[] = {"by priority:", "by deadline:"};

	for (int i = 0; i < 2; i++) {
		weft_activity_scheduler_t scheduler = {.ready = ready, .next = next, .data = &orders[i]};
		weft_activity_config_t config = {.scheduler = &scheduler};

		printf("%s\n", names[i]);
		if (weft_activity_run(&config, all_jobs, NULL, NULL) != 0)
			return 1;
	}
	return 0;
}
