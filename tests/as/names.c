/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Symbols of every kind: weak, aliases, hidden, indirect functions, weak references, and functions that the
 * linker renames.
 */
#include "check.h"
#include "outside.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

int names_global(int x);
int names_alias(int x);
int names_weak(int x);
int names_hidden(int x);
int names_chosen(int x);
int names_missing(int x) __attribute__((weak));
int names_outer(int x); /* in names2.c */
int names_overridden(int x);

NOINLINE int names_global(int x)
{
	return x > 100 ? (int)out_pointer(x) : names_alias(x + 100);
}

int names_alias(int x) __attribute__((alias("names_global")));

NOINLINE __attribute__((weak)) int names_weak(int x)
{
	return names_global(x) - 1;
}

/* names2.c has a definition that is not weak. */
NOINLINE __attribute__((weak)) int names_overridden(int x)
{
	return x;
}

NOINLINE __attribute__((visibility("hidden"))) int names_hidden(int x)
{
	return names_weak(x) - 1;
}

static int chosen(int x)
{
	volatile char a[500];

	a[0] = 3;
	return x + a[0];
}

/* Runs before any relocation. */
__attribute__((used)) static int (*choose(void))(int)
{
	return chosen;
}

int names_chosen(int x) __attribute__((ifunc("choose")));

static volatile sig_atomic_t got;

static void handler(int signo)
{
	got = signo;
}

static void *thread(void *arg)
{
	return (char *)arg + 1;
}

static void renamed(void)
{
	int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *) = pthread_create;
	struct sigaction act = {.sa_handler = handler};
	pthread_t id;
	void *result = NULL;

	CHECK(pthread_create(&id, NULL, thread, (void *)41) == 0 && pthread_join(id, &result) == 0);
	CHECK((intptr_t)result == 42);
	CHECK(create(&id, NULL, thread, (void *)42) == 0 && pthread_join(id, &result) == 0);
	CHECK((intptr_t)result == 43);
	sigaction(SIGUSR1, &act, NULL);
	raise(SIGUSR1);
	CHECK(got == SIGUSR1);
	signal(SIGUSR2, handler);
	raise(SIGUSR2);
	CHECK(got == SIGUSR2);
}

int checks(void)
{
	int (*volatile f)(int) = names_alias;

	check_failures = 0;
	CHECK(names_global(1) == -101 && names_alias(2) == -102 && f(3) == -103);
	CHECK(names_weak(1) == -102 && names_hidden(1) == -103);
	CHECK(names_chosen(4) == 7);
	CHECK(!names_missing || names_missing(1));
	CHECK(names_outer(5) == -106 - 1000);
	CHECK(names_overridden(5) == 50);
	renamed();
	return check_failures;
}
