/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 tree_explore without effects. The continuation of a choice is the rest of a path, including the way back, and must
 * run once for each branch: the recursion carries the values that the way back needs.
 */
#include "lab.h"
#include "tree.h"

enum { DEEPEST = 64, RUNS = 10 };

static int64_t state;
static uint64_t choices;

static int64_t operator(int64_t x, int64_t y)
{
	return llabs(x - 503 * y + 37) % 1009;
}

/* At a leaf: computes the way back through the path's nodes. */
static int64_t finish(const int64_t *values, int depth)
{
	int64_t result = state;

	while (depth > 0)
		result = operator(values[--depth], result);
	return result;
}

static int64_t explore(const struct tree *tree, int64_t *values, int depth)
{
	int64_t one, other;

	if (!tree)
		return finish(values, depth);
	choices++;
	values[depth] = tree->value;
	state = operator(state, tree->value);
	one = explore(tree->left, values, depth + 1);
	state = operator(state, tree->value);
	other = explore(tree->right, values, depth + 1);
	return one > other ? one : other;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5);
	const struct tree *tree = tree_make(n);
	int64_t values[DEEPEST];
	int i;

	if (n > DEEPEST)
		lab_die("n");
	lab_start();
	for (i = 0; i < RUNS; i++)
		state = explore(tree, values, 0);
	lab_stop();
	return lab_report(choices, state);
}
