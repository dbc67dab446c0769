/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Conformance: properties that must hold on every policy, with every compiler and flag. `suite` runs all; `suite guard`
 * prints the guard mechanism in force.
 */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

static unsigned long checks, failures;

void suite_check(bool holds, const char *text, const char *file, int line)
{
	__atomic_fetch_add(&checks, 1, __ATOMIC_RELAXED); /* a statistic */
	if (holds)
		return;
	if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 20)
		fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, text);
}

weft_coro_t *make(weft_fn_t *fn, void *arg)
{
	weft_coro_t *k = weft_create(fn, arg);

	if (!k) {
		perror("weft_create");
		exit(2);
	}
	return k;
}

void *run_out(weft_coro_t *k)
{
	weft_request_t r;

	do
		r = weft_resume(k, NULL, WEFT_HANDLE_ALL);
	while (!weft_returned(r));
	return r.payload;
}

int main(int count, char **arguments)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {{"registers", test_registers},
		     {"frames", test_frames},
		     {"effects", test_effects},
		     {"many", test_many},
		     {"signals", test_signals}};
	weft_stack_stats_t stats;

	if (count > 1 && !strcmp(arguments[1], "guard")) {
		puts(weft_guard_mechanism());
		return 0;
	}
	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (count < 2 || !strcmp(arguments[1], tests[i].name))
			tests[i].run();
	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	CHECK(stats.live == 0);
	printf("%lu checks, %lu failed\n", checks, failures);
	return failures || checks < 10;
}
