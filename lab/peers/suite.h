/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* suite.h: the data of the suite's programs, and a main function, for peers in C. case=NAME selects a program. */
#ifndef LAB_PEERS_SUITE_H
#define LAB_PEERS_SUITE_H

#include "../impl/lab.h"
#include "../impl/tree.h"

/* product_early: descending numbers, the last is 0. */
struct list {
	int64_t head;
	const struct list *tail;
};

static inline const struct list *list_make(void)
{
	enum { LENGTH = 1001 };
	static struct list nodes[LENGTH];
	int64_t i;

	for (i = 0; i < LENGTH; i++)
		nodes[i] = (struct list){LENGTH - 1 - i, i + 1 < LENGTH ? &nodes[i + 1] : NULL};
	return nodes;
}

/* resume_nontail: computed after each resume. */
static inline int64_t op(int64_t x, int64_t y)
{
	return llabs(x - 503 * y + 37) % 1009;
}

/* parsing_dollars: line i has i dollar signs. */
struct feed {
	int64_t line, left, end;
};

static inline bool feed_ends(const struct feed *feed)
{
	return feed->line > feed->end;
}

static inline int64_t feed_next(struct feed *feed)
{
	if (feed->left) {
		feed->left--;
		return '$';
	}
	feed->left = ++feed->line;
	return '\n';
}

struct suite_case {
	const char *name;
	int64_t (*run)(int64_t n);
	bool whole; /* suite_main times the whole call; otherwise `run` calls lab_start and lab_stop */
};

static inline int64_t suite_operations(const char *name, int64_t n)
{
	if (!strcmp(name, "iterator"))
		return n + 1;
	if (!strcmp(name, "generator"))
		return (INT64_C(1) << n) - 1;
	if (!strcmp(name, "parsing_dollars"))
		return n * (n + 1) / 2 + n;
	if (!strcmp(name, "resume_nontail"))
		return 1000 * n;
	return !strcmp(name, "handler_sieve") ? 1 : n;
}

/* The last element of `cases` has no name. */
static inline int suite_main(int argc, char **argv, const struct suite_case *cases)
{
	int64_t n = lab_number(argc, argv, "n", 5), result;

	for (; cases->name; cases++) {
		if (!lab_is(argc, argv, "case", cases->name))
			continue;
		if (cases->whole)
			lab_start();
		result = cases->run(n);
		if (cases->whole)
			lab_stop();
		return lab_report((uint64_t)suite_operations(cases->name, n), result);
	}
	lab_die("no such case");
	return 2;
}

#endif /* LAB_PEERS_SUITE_H */
