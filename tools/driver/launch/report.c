/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft lookahead --explain: the reports that weft-as leaves in objects, and their sum. Lines of a report:
 *
 *	unit NAME: functions F, edges E, checkpoints C, largest bound B
 *	checkpoint NAME: bound B: REASON
 *	function NAME: …
 */
#include "launch.h"

#include <stdlib.h>
#include <string.h>

struct reason {
	char *name;
	size_t checkpoints;
};

struct sum {
	size_t reports, units, functions, edges, checkpoints, bound;
	struct reason *reasons;
	size_t n;
};

static size_t number_after(const char *line, const char *word)
{
	const char *at = strstr(line, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

static void add_unit(struct sum *s, const char *line)
{
	size_t bound = number_after(line, ", largest bound ");

	s->units++;
	s->functions += number_after(line, ": functions ");
	s->edges += number_after(line, ", edges ");
	s->checkpoints += number_after(line, ", checkpoints ");
	s->bound = bound > s->bound ? bound : s->bound;
}

/* The reason follows the last colon. */
static void add_checkpoint(struct sum *s, const char *line)
{
	const char *name = strrchr(line, ':');
	size_t i = 0;

	if (!name || name[1] != ' ')
		return;
	name += 2;
	while (i < s->n && strcmp(s->reasons[i].name, name) != 0)
		i++;
	if (i == s->n) {
		s->reasons = realloc(s->reasons, ++s->n * sizeof *s->reasons);
		if (!s->reasons)
			die(EXIT_BUG, "out of memory");
		s->reasons[i] = (struct reason){text("%s", name), 0};
	}
	s->reasons[i].checkpoints++;
}

static void print_report(void *arg, const char *file, const char *bytes, size_t n)
{
	struct sum *s = arg;
	char *report = text("%.*s", (int)n, bytes), *rest = report, *line;

	s->reports++;
	printf("%s:\n", file);
	while ((line = strsep(&rest, "\n"))) {
		if (!*line)
			continue;
		puts(line);
		if (starts(line, "unit "))
			add_unit(s, line);
		else if (starts(line, "checkpoint "))
			add_checkpoint(s, line);
	}
	free(report);
}

static void print_sum(const struct sum *s)
{
	printf("in all: units %zu, functions %zu, edges %zu, checkpoints %zu, largest bound %zu\n", s->units,
	       s->functions, s->edges, s->checkpoints, s->bound);
	for (size_t i = 0; i < s->n; i++)
		printf("checkpoints because %s: %zu\n", s->reasons[i].name, s->reasons[i].checkpoints);
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
	print_sum(&s);
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
