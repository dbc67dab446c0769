/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft lookahead --explain: the reports that weft-as leaves in objects, and their sum. */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

struct sum {
	size_t reports;
};

static void print_report(void *arg, const char *file, const char *bytes, size_t n)
{
	struct sum *s = arg;

	s->reports++;
	printf("%s:\n%.*s%s", file, (int)n, bytes, n && bytes[n - 1] != '\n' ? "\n" : "");
}

int explain(char *const *files)
{
	struct sum s = {0};

	for (; *files; files++) {
		size_t before = s.reports;

		if (!find_sections(*files, ".weft.lookahead", print_report, &s))
			die(EXIT_USAGE, "%s: cannot be read", *files);
		if (s.reports == before)
			die(EXIT_USAGE, "%s: was not made for look-ahead: compile it with 'weft cc --policy lookahead'",
			    *files);
	}
	return 0;
}
