/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks the output of weft_activity_dump for activities that wait in several ways. */
#include <weft/charcoal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static activity_sem_t s;
static int p[2];
__attribute__((noinline)) static int waits_here(int n)
{
	activity_sem_wait(&s);
	return n + 1;
}
__attribute__((noinline)) static int middle(int n)
{
	return waits_here(n) + 1;
}
__attribute__((noinline)) static int reads(void)
{
	char c;
	return (int)read(p[0], &c, 1);
}
static void nothing(void *x)
{
	(void)x;
}
static int deep(int n)
{
	volatile char pad[100];
	pad[0] = 1;
	return n ? deep(n - 1) + pad[0] : waits_here(n);
}
#ifdef READS_FREED
__attribute__((noinline)) static int reads_freed(void)
{
	volatile int *x = malloc(sizeof *x);
	free((void *)x);
	return *x;
}
#else
static int reads_freed(void)
{
	return 0;
}
#endif
int activity_main(int argc, char **argv)
{
	(void)argv;
	activity_t mistaken;
	activate(&mistaken)
	{
		reads_freed();
	}
	activity_wait(&mistaken);
	activity_t a[5];
	activity_sem_init(&s, 0);
	(void)!pipe(p);
	int one = 1;
	activate(&a[0])
	{
		middle(1);
	}
	activate(&a[1])
	{
		reads();
	}
	activate(&a[2])
	{
		activity_sleep_ns(50000000);
	}
	activate(&a[3])
	{
		weft_defer(nothing, &one);
		middle(2);
	}
	activate(&a[4])
	{
		deep(2000);
	}
	yield_now();
	yield_now();
	weft_activity_dump(1);
	for (int i = 0; i < 3; i++)
		activity_sem_post(&s);
	(void)!write(p[1], "x", 1);
	for (int i = 0; i < 5; i++)
		activity_wait(&a[i]);
	return argc > 1;
}
