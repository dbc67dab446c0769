/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * lazy.c: a table that the first of four users makes, without a lock: carelessly; atomically; and, if making it takes
 * long or has to wait, by one activity for which the other users wait.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weft/charcoal.h>

enum { USERS = 4, SIZE = 256 };

static int times_made;

static int *make_table(void)
{
	int *made = malloc(SIZE * sizeof *made);

	if (!made)
		exit(1);
	times_made++;
	for (int i = 0; i < SIZE; i++)
		made[i] = i * i;
	yield_now(); /* other activities run while the table is made */
	return made;
}

/* doc: begin lazy */
/* Other activities run between the test and the assignment, because make_table yields. */
static int *careless_table(void)
{
	static int *table;

	if (!table)
		table = make_table();
	return table;
}

/* No other activity runs between the test and the assignment. Code that must not yield can be marked so: all other
 * activities stand still until the table is made. */
static NO_YIELD int *atomic_table(void)
{
	static int *table;

	if (!table)
		table = make_table();
	return table;
}

/* The first user activates the maker. Between `if` and `asked = true` there is no call and no loop, so no other
 * activity runs. */
static int *patient_table(void)
{
	static int *table;
	static activity_t maker;
	static int asked;

	if (!asked) {
		asked = 1;
		activate(&maker)
		{
			usleep(1000); /* stands for reading a file */
			table = make_table();
		}
	}
	activity_wait(&maker);
	return table;
}
/* doc: end */

static void show(const char *how, int *(*table)(void))
{
	activity_t users[USERS];
	int i, sum = 0;

	times_made = 0;
	for (i = 0; i < USERS; i++)
		activate(&users[i], i)
		{
			sum += table()[i + 1];
		}
	for (i = 0; i < USERS; i++)
		activity_wait(&users[i]);
	printf("%s: sum %d, made %s\n", how, sum, times_made == 1 ? "once" : "more than once");
}

int activity_main(void)
{
	show("careless", careless_table);
	show("atomic", atomic_table);
	show("patient", patient_table);
	return 0;
}
