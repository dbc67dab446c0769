/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * strings.c: two effects composed. A generator yields strings that it allocates, and defers freeing each of them. The
 * consumer handles `yield` and knows nothing of `defer`, which passes through it to the enclosing scope; so the
 * consumer may keep a string after the generator is deleted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin effects */
typedef void cleanup_fn_t(void *resource);

WEFT_EFFECT(void, defer, cleanup_fn_t *, cleanup, void *, resource);
WEFT_EFFECT(void, yield_string, const char *, string);
/* doc: end */

/* doc: begin generator */
static const char *const small[] = {"zero",	"one",	   "two",     "three",	   "four",     "five",	  "six",
				    "seven",	"eight",   "nine",    "ten",	   "eleven",   "twelve",  "thirteen",
				    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const tens[] = {"",	    "",	     "twenty",	"thirty", "forty",
				   "fifty", "sixty", "seventy", "eighty", "ninety"};

/* A string that lives as long as the scope. */
static char *scoped_string(const char *a, const char *dash, const char *b)
{
	char *string = malloc(strlen(a) + strlen(dash) + strlen(b) + 1);

	strcat(strcat(strcpy(string, a), dash), b);
	defer(free, string);
	return string;
}

/* Counts aloud to 99. */
static void *count_aloud(void *unused)
{
	for (int n = 0; n < 20; n++)
		yield_string(scoped_string(small[n], "", ""));
	for (int n = 20; n < 100; n++)
		yield_string(scoped_string(tens[n / 10], n % 10 ? "-" : "", n % 10 ? small[n % 10] : ""));
	return unused;
}
/* doc: end */

/* doc: begin consumer */
static void *longest(void *unused)
{
	weft_coro_t *generator = must(weft_create(count_aloud, NULL));
	const char *best = "";
	weft_request_t r;
	int count = 0;

	weft_handle (r, generator, yield_string) {
		const char *string = weft_args(yield_string, r)->string;

		if (count++ % 11 == 0)
			printf("%s\n", string);
		if (strlen(string) > strlen(best))
			best = string;
	}
	weft_delete(generator);
	printf("longest of %d: %s\n", count, best);
	return unused;
}
/* doc: end */

/* Returns how many cleanups it has run. */
static int run_scope(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(defer));
	cleanup_fn_t *cleanup;
	void *resource;
	int count;

	if (!weft_is(defer, r))
		return 0;
	cleanup = weft_args(defer, r)->cleanup;
	resource = weft_args(defer, r)->resource;
	count = run_scope(k);
	cleanup(resource);
	return count + 1;
}

int main(void)
{
	weft_coro_t *k = must(weft_create(longest, NULL));

	weft_set_failure_hook(must_not_fail);
	printf("freed at the end: %d\n", run_scope(k));
	weft_delete(k);
}
