/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Uses the library. With -DYIELDING as a program of activities, else as plain C that knows nothing of them. */
#include <stdio.h>

#include "library.h"

static int failed;

static void say(int good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	failed += !good;
}

#ifndef YIELDING
static long twice(long n)
{
	return 2 * n;
}

int main(void)
{
	say(library_sum(10) == 45 && library_map(twice, 10) == 90, "a plain program calls plain functions");
	say(library_group(10) == 20, "activities of the library in a plain program");
	return failed != 0;
}
#else
#include <weft/charcoal.h>

static int runs;

static long twice(long n)
{
	yield_now();
	return 2 * n;
}

int activity_main(void)
{
	activity_t a, b;
	long sum = 0, mapped = 0, between = 0, atomic = 0;

	activate(&a)
	{
		sum = library_sum(10);
		between = runs;
	}
	activate(&b)
	{
		runs = 1;
		mapped = library_map(twice, 10);
		runs = 2;
	}
	activity_wait(&a);
	activity_wait(&b);
	say(sum == 45 && mapped == 90, "what the library's functions compute");
	say(between > 0, "others run while a function of the library does");
	say(runs == 2, "and while it calls back");

	runs = 0;
	activate(&a)
	{
		no_yield
		{
			sum = library_sum(10) + library_map(twice, 10);
		}
		atomic = runs;
	}
	activate(&b)
	{
		runs = 1;
	}
	activity_wait(&a);
	activity_wait(&b);
	say(sum == 135 && atomic == 0, "nobody runs in no_yield");
	return failed != 0;
}
#endif
