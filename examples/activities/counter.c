/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * counter.c: two activities add to one counter and lose no addition, without a lock. Then three pay into one account by
 * a function that reads, waits, and writes: deposits are lost unless the caller makes the function atomic. With the
 * argument "threads" two threads add to the counter, and the program prints how many additions they lose.
 */
/* doc: begin head */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <weft/charcoal.h>

enum { TIMES = 1000000, DEPOSITS = 1000 };

static volatile long counter; /* volatile: so that each addition is made in memory */
static long balance;
/* doc: end */

/* doc: begin add */
static void *add(void *unused)
{
	for (int i = 0; i < TIMES; i++)
		counter++;
	return unused;
}

static void add_by_activities(void)
{
	activity_t a, b;

	activate(&a)
	{
		add(NULL);
	}
	activate(&b)
	{
		add(NULL);
	}
	activity_wait(&a);
	activity_wait(&b);
	printf("activities: %ld of %d additions\n", counter, 2 * TIMES);
}
/* doc: end */

/* doc: begin deposit */
static void deposit(long sum)
{
	long before = balance;

	yield_now(); /* or a call that waits: other activities run here */
	balance = before + sum;
}

static void deposit_interruptibly(void)
{
	for (int i = 0; i < DEPOSITS; i++)
		deposit(1);
}

static void deposit_atomically(void)
{
	for (int i = 0; i < DEPOSITS; i++)
		no_yield
		{
			deposit(1);
		}
}
/* doc: end */

/* doc: begin main */
static bool are_lost(void (*deposits)(void))
{
	activity_t all[3];

	balance = 0;
	for (int i = 0; i < 3; i++)
		activate(&all[i])
		{
			deposits();
		}
	for (int i = 0; i < 3; i++)
		activity_wait(&all[i]);
	return balance < 3 * DEPOSITS;
}

static int add_by_threads(void)
{
	pthread_t a, b;

	if (pthread_create(&a, NULL, add, NULL))
		return 1;
	if (!pthread_create(&b, NULL, add, NULL))
		pthread_join(b, NULL);
	pthread_join(a, NULL);
	printf("threads: %ld of %d additions\n", counter, 2 * TIMES);
	return 0;
}

int activity_main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "threads"))
		return add_by_threads();
	add_by_activities();
	printf("interruptible deposits: %s\n", are_lost(deposit_interruptibly) ? "some are lost" : "all arrive");
	printf("atomic deposits: %s\n", are_lost(deposit_atomically) ? "some are lost" : "all arrive");
	return 0;
}
/* doc: end */
