/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * trees.c: walks trees by recursion, and nevertheless one step at a time. A walker performs `visit` at each leaf; the
 * handler decides when the walk continues. Two walkers in lockstep compare the fringes of two trees of different shape,
 * and stop at the first difference; neither walker builds a list.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "must.h"

struct tree {
	int value; /* of a leaf: a node without children */
	struct tree *left, *right;
};

/* doc: begin walk */
WEFT_EFFECT(void, visit, int, value);

static void walk(const struct tree *tree)
{
	if (!tree->left) {
		visit(tree->value);
		return;
	}
	walk(tree->left);
	walk(tree->right);
}

static void *walker(void *tree)
{
	walk(tree);
	return NULL;
}
/* doc: end */

/* doc: begin sum */
/* Visits all leaves: a loop instead of a callback. */
static int sum(struct tree *tree)
{
	weft_coro_t *k = must(weft_create(walker, tree));
	weft_request_t r;
	int total = 0;

	weft_handle (r, k, visit)
		total += weft_args(visit, r)->value;
	weft_delete(k);
	return total;
}
/* doc: end */

/* doc: begin fringe */
/* Returns whether two trees have the same leaves, in the same order. `*visited` counts the compared pairs. */
static bool same_fringe(struct tree *one, struct tree *other, int *visited)
{
	weft_coro_t *a = must(weft_create(walker, one)), *b = must(weft_create(walker, other));
	weft_request_t ra, rb;
	int value = 0;
	bool same;

	*visited = 0;
	do {
		ra = weft_resume(a, NULL, weft_handles(visit));
		if (!weft_returned(ra))
			value = weft_args(visit, ra)->value; /* before b runs: on copied stacks b overwrites it */
		rb = weft_resume(b, NULL, weft_handles(visit));
		if (weft_returned(ra) || weft_returned(rb)) {
			same = weft_returned(ra) && weft_returned(rb);
			break;
		}
		++*visited;
		same = value == weft_args(visit, rb)->value;
	} while (same);
	weft_delete(a); /* possibly in the middle of its walk */
	weft_delete(b);
	return same;
}
/* doc: end */

static struct tree *node(int value, struct tree *left, struct tree *right)
{
	struct tree *tree = malloc(sizeof(*tree));

	*tree = (struct tree){value, left, right};
	return tree;
}

static struct tree *leaf(int value)
{
	return node(value, NULL, NULL);
}

static void free_tree(struct tree *tree)
{
	if (!tree)
		return;
	free_tree(tree->left);
	free_tree(tree->right);
	free(tree);
}

/* A balanced tree of the leaves from first to last. */
static struct tree *balanced(int first, int last)
{
	int middle = first + (last - first) / 2;

	if (first == last)
		return leaf(first);
	return node(0, balanced(first, middle), balanced(middle + 1, last));
}

/* A tree of the leaves from first to last that leans to the left; the leaf at `odd` is off by one. */
static struct tree *leaning(int first, int last, int odd)
{
	struct tree *tree = leaf(first + (first == odd));

	for (int i = first + 1; i <= last; i++)
		tree = node(0, tree, leaf(i + (i == odd)));
	return tree;
}

static void compare(const char *name, struct tree *one, struct tree *other)
{
	int visited;
	bool same = same_fringe(one, other, &visited);

	printf("%-20s %s after %d leaves\n", name, same ? "the same" : "different", visited);
}

int main(void)
{
	struct tree *trees[] = {balanced(1, 100), leaning(1, 100, 0), leaning(1, 100, 7), leaning(1, 99, 0)};

	weft_set_failure_hook(must_not_fail);
	printf("sum of the leaves: %d\n", sum(trees[0]));
	compare("balanced, leaning:", trees[0], trees[1]);
	compare("one leaf changed:", trees[0], trees[2]);
	compare("one leaf missing:", trees[0], trees[3]);
	for (size_t i = 0; i < sizeof(trees) / sizeof(*trees); i++)
		free_tree(trees[i]);
}
