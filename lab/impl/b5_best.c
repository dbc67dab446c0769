/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 as fast C code, with neither effects nor callbacks: every function is known where it is used, so the compiler can
 * inline everything. The work is the same, in the same order: values pass through a register that is opaque to the
 * compiler, because otherwise it would compute the answer in advance or remove work that decides nothing.
 *
 *   ./b5_best case=countdown n=5
 */
#include "lab.h"
#include "tree.h"

static int64_t countdown(int64_t s)
{
	while (s > 0) {
		s--;
		LAB_HIDE(s);
	}
	return s;
}

static int64_t iterator(int64_t n)
{
	int64_t sum = 0, i;

	for (i = 0; i <= n; i++) {
		int64_t value = i;

		LAB_HIDE(value);
		sum += value;
	}
	return sum;
}

static int64_t walk(const struct tree *tree)
{
	int64_t sum = 0;

	for (; tree; tree = tree->right)
		sum += walk(tree->left) + tree->value;
	return sum;
}

/* Its height is n. The tree is made outside of the timed part. */
static const struct tree *tree;

static int64_t generator(int64_t n)
{
	(void)n;
	return walk(tree);
}

enum { LENGTH = 1001 };

struct list {
	int64_t head;
	struct list *tail;
};

static struct list nodes[LENGTH];

static void make_list(void)
{
	int i;

	for (i = 0; i < LENGTH; i++)
		nodes[i] = (struct list){LENGTH - 1 - i, i + 1 < LENGTH ? &nodes[i + 1] : NULL};
}

static int64_t product(const struct list *xs)
{
	uint64_t result = 1; /* exceeds 2^64 long before the end */

	for (; xs; xs = xs->tail) {
		if (xs->head == 0)
			return 0;
		result *= (uint64_t)xs->head;
		LAB_HIDE(result);
	}
	return (int64_t)result;
}

static int64_t product_early(int64_t n)
{
	int64_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum += product(nodes);
	return sum;
}

/* Line i has i dollars. */
static int64_t parsing_dollars(int64_t lines)
{
	int64_t sum = 0, line, left;

	for (line = 0; line <= lines; line++) {
		int64_t count = 0;

		for (left = line; left >= 0; left--) {
			char c = left ? '$' : '\n';

			LAB_HIDE(c);
			if (c == '$') {
				count++;
			} else {
				sum += count;
				count = 0;
			}
		}
	}
	return sum;
}

/* The recursion's way back. Its way down needs no memory. */
static int64_t resume_nontail(int64_t n)
{
	int64_t s = 0, i;
	int run;

	for (run = 0; run < 1000; run++)
		for (i = 1; i <= n; i++)
			s = llabs(i - 503 * s + 37) % 1009;
	return s;
}

static int64_t handler_sieve(int64_t n)
{
	uint32_t *primes = malloc((size_t)n * sizeof(*primes)), found = 0, i, j;
	int64_t sum = 0;

	if (!primes)
		lab_die("malloc");
	for (i = 2; i < n; i++) {
		for (j = found; j > 0 && i % primes[j - 1] != 0; j--)
			;
		if (j > 0)
			continue;
		primes[found++] = i;
		sum += i;
	}
	free(primes);
	return sum;
}

static int64_t one(int64_t n)
{
	(void)n;
	return 1;
}

static int64_t double_and_one(int64_t n)
{
	return 2 * n + 1;
}

static int64_t and_one(int64_t n)
{
	return n + 1;
}

static int64_t itself(int64_t n)
{
	return n;
}

static int64_t thousand(int64_t n)
{
	return 1000 * n;
}

static int64_t of_tree(int64_t n)
{
	return (INT64_C(1) << n) - 1;
}

static int64_t characters(int64_t n)
{
	return n * (n + 1) / 2 + n;
}

static const struct {
	const char *name;
	int64_t (*run)(int64_t n), (*operations)(int64_t n);
} programs[] = {
    {"countdown", countdown, double_and_one},
    {"iterator", iterator, and_one},
    {"generator", generator, of_tree},
    {"product_early", product_early, itself},
    {"parsing_dollars", parsing_dollars, characters},
    {"resume_nontail", resume_nontail, thousand},
    {"handler_sieve", handler_sieve, one},
};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), result;
	size_t i;

	make_list();
	for (i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		if (!lab_is(argc, argv, "case", programs[i].name))
			continue;
		if (lab_is(argc, argv, "case", "generator"))
			tree = tree_make(n);
		lab_start();
		result = programs[i].run(n);
		lab_stop();
		return lab_report((uint64_t)programs[i].operations(n), result);
	}
	lab_die("no such case");
}
