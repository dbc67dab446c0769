/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * philosophers.c: five philosophers, five forks. Each takes the fork with the lower number first. Built with -DGREEDY
 * each takes the left one first, and the simulator finds how they starve:
 *
 *   weft simulate --seeds 1000 -DGREEDY philosophers.c
 */
#include <stdio.h>
#include <string.h>
#include <weft/sync.h>

enum { SEATS = 5, MEALS = 100 };

struct table {
	weft_mutex_t forks[SEATS];
	int meals[SEATS];
};

struct seat {
	struct table *table;
	int number;
};

/* doc: begin philosopher */
static void *philosopher(void *argument)
{
	struct seat *s = argument;
	int left = s->number, right = (s->number + 1) % SEATS;
#ifdef GREEDY
	int first = left, second = right;
#else
	int first = left < right ? left : right, second = left + right - first;
#endif

	for (int i = 0; i < MEALS; i++) {
		weft_mutex_lock(&s->table->forks[first]);
		weft_mutex_lock(&s->table->forks[second]);
		s->table->meals[s->number]++;
		weft_task_yield();
		weft_mutex_unlock(&s->table->forks[second]);
		weft_mutex_unlock(&s->table->forks[first]);
	}
	return NULL;
}
/* doc: end */

static void *dinner(void *argument)
{
	struct table *table = argument;
	struct seat seats[SEATS];
	int error = 0;

	WEFT_SCOPE(scope);
	for (int i = 0; i < SEATS && !error; i++) {
		seats[i] = (struct seat){table, i};
		error = weft_scope_spawn(&scope, philosopher, &seats[i]);
	}
	if (!error)
		error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	return NULL;
}

int main(void)
{
	struct table table = {0};
	int error = weft_rt_run(NULL, dinner, &table, NULL);

	if (error) {
		fprintf(stderr, "philosophers: %s\n", strerror(-error));
		return 1;
	}
	for (int i = 0; i < SEATS; i++)
		printf("philosopher %d had %d meals\n", i, table.meals[i]);
}
