/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The common part of the programs of activities: a line of TAP for each case, and how the timer is set. */
#ifndef WEFT_TESTS_ACTIVITY_CASES_H
#define WEFT_TESTS_ACTIVITY_CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/charcoal.h>

static int cases_failed;

NO_YIELD static inline void expect(bool good, const char *name)
{
	printf("%s - %s\n", good ? "ok" : "not ok", name);
	cases_failed += !good;
}

/* Is WEFT_ACTIVITY_PERIOD this word? */
NO_YIELD static inline bool timer_is(const char *word)
{
	const char *said = getenv("WEFT_ACTIVITY_PERIOD");

	return said && !strcmp(said, word);
}

/* Wait for `count` activities. */
static inline void wait_all(activity_t *all, int count)
{
	for (int i = 0; i < count; i++)
		(void)activity_wait(&all[i]);
}

#endif
