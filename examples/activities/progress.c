/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * progress.c: a long computation that knows nothing of other activities, a line that shows its progress, and the key
 * Enter, which ends it. Argument: the limit.
 */
/* doc: begin head */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/charcoal.h>
/* doc: end */

/* doc: begin compute */
struct search {
	unsigned long limit, now, best;
	int steps; /* number of steps that `best` needs */
};

static int steps_to_one(unsigned long n)
{
	int steps = 1;

	for (; n != 1; steps++)
		n = n % 2 ? 3 * n + 1 : n / 2;
	return steps;
}

static void find_longest(struct search *s)
{
	for (s->now = 1; s->now < s->limit; s->now++) {
		int steps = steps_to_one(s->now);

		if (steps > s->steps) {
			s->best = s->now;
			s->steps = steps;
		}
	}
}
/* doc: end */

/* doc: begin beside */
static void show_progress(const struct search *s)
{
	for (;; usleep(100000))
		fprintf(stderr, "\r%3lu %%", 100 * s->now / s->limit);
}

static void end(activity_t *a)
{
	activity_cancel(a);
	activity_wait(a);
}

static int search(struct search *s)
{
	activity_t computation, progress, keyboard;
	int error;

	activate(&computation)
	{
		find_longest(s);
	}
	activate(&progress)
	{
		show_progress(s);
	}
	activate(&keyboard)
	{
		char key;

		if (read(STDIN_FILENO, &key, 1) == 1)
			activity_cancel(&computation);
	}
	error = activity_wait(&computation);
	end(&progress);
	end(&keyboard);
	return error;
}
/* doc: end */

/* doc: begin main */
int activity_main(int argc, char **argv)
{
	struct search s = {.limit = argc > 1 ? strtoul(argv[1], NULL, 10) : 300000};
	int error;

	if (s.limit < 2)
		return fprintf(stderr, "progress: the limit is too small\n"), 1;
	error = search(&s);
	fprintf(stderr, "\n");
	if (error)
		printf("ended early\n");
	else
		printf("of the numbers below %lu, %lu takes longest: %d steps\n", s.limit, s.best, s.steps);
	return 0;
}
/* doc: end */
