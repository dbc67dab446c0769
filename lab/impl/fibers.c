/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * C1 to C3 by fiber.h, as programs that are timed as whole processes.
 *
 *   ./program case=itersum|treesum|sieve n=N
 */
#include "lab.h"
#include <compat/fiber.h>

static fiber_t make(fiber_entry_point_t entry)
{
	fiber_t fiber = fiber_alloc(entry);

	if (!fiber)
		lab_die("fiber_alloc");
	return fiber;
}

static void *resume(fiber_t fiber, int64_t value, fiber_result_t *status)
{
	void *result = fiber_resume(fiber, (void *)(intptr_t)value, status);

	if (*status == FIBER_ERROR)
		lab_die("fiber_resume");
	return result;
}

/* ---- C1: two fibers in a tight loop, sum += yield(i) ------------------------------------------------------------- */

static void *adds(void *n)
{
	intptr_t sum = 0, i;

	for (i = 0; i < (intptr_t)n; i++)
		sum += (intptr_t)fiber_yield((void *)i);
	return (void *)sum;
}

static int64_t itersum(int64_t n)
{
	fiber_t a = make(adds), b = make(adds);
	fiber_result_t of_a, of_b;
	intptr_t from_a = (intptr_t)resume(a, n, &of_a), from_b = (intptr_t)resume(b, n, &of_b);

	while (of_a == FIBER_YIELD && of_b == FIBER_YIELD) {
		from_a = (intptr_t)resume(a, from_a, &of_a);
		from_b = (intptr_t)resume(b, from_b, &of_b);
	}
	fiber_free(a);
	fiber_free(b);
	return from_a + from_b;
}

/* ---- C2: a tree in memory, in which both children of a node are the same subtree --------------------------------- */

struct node {
	int64_t value;
	struct node *left, *right; /* NULL: a leaf */
};

static void walk(const struct node *node)
{
	if (!node->left) {
		fiber_yield((void *)(intptr_t)node->value);
		return;
	}
	walk(node->left);
	walk(node->right);
}

static void *walks(void *root)
{
	walk(root);
	return NULL;
}

static int64_t treesum(int64_t depth)
{
	struct node *nodes = calloc((size_t)depth + 1, sizeof *nodes);
	fiber_t walker = make(walks);
	fiber_result_t status;
	int64_t sum = 0, i;
	void *value;

	if (!nodes)
		lab_die("calloc");
	nodes[0].value = depth;
	for (i = 1; i <= depth; i++)
		nodes[i].left = nodes[i].right = &nodes[i - 1];
	for (value = resume(walker, (intptr_t)&nodes[depth], &status); status == FIBER_YIELD;
	     value = resume(walker, 0, &status))
		sum += (intptr_t)value;
	fiber_free(walker);
	free(nodes);
	return sum;
}

/* ---- C3: a driver asks the filters in turn ----------------------------------------------------------------------- */

static void *filter(void *prime)
{
	intptr_t candidate = (intptr_t)fiber_yield(NULL);

	while (candidate)
		candidate = (intptr_t)fiber_yield((void *)(intptr_t)(candidate % (intptr_t)prime == 0));
	return NULL;
}

static bool is_prime(fiber_t *filters, int64_t count, int64_t candidate)
{
	fiber_result_t status;
	int64_t i;

	for (i = 0; i < count; i++)
		if (resume(filters[i], candidate, &status))
			return false;
	return true;
}

static int64_t sieve(int64_t n)
{
	fiber_t *filters = malloc((size_t)n * sizeof *filters);
	int64_t count = 0, candidate = 1, i;
	fiber_result_t status;

	if (!filters)
		lab_die("malloc");
	while (count < n)
		if (is_prime(filters, count, ++candidate)) {
			filters[count] = make(filter);
			resume(filters[count++], candidate, &status);
		}
	for (i = 0; i < n; i++) {
		resume(filters[i], 0, &status);
		fiber_free(filters[i]);
	}
	free(filters);
	return candidate;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5);

	fiber_init();
	if (lab_is(argc, argv, "case", "itersum"))
		return lab_report(1, itersum(n));
	if (lab_is(argc, argv, "case", "treesum"))
		return lab_report(1, treesum(n));
	if (lab_is(argc, argv, "case", "sieve"))
		return lab_report(1, sieve(n));
	fprintf(stderr, "usage: case=itersum|treesum|sieve n=N\n");
	return 2;
}
