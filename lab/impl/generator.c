/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 generator: an in-order walk over a tree yields values to a consumer that keeps the generator and requests one
 * value at a time. plain=1: an ordinary recursive walk with a callback.
 */
#include "lab.h"
#include "tree.h"
#include <weft/weft.h>

#ifndef GENERATOR_NEXT
#define GENERATOR_NEXT
#endif

WEFT_EFFECT(void, produce, int64_t, value);

static void walk(const struct tree *tree)
{
	if (!tree)
		return;
	walk(tree->left);
	produce(tree->value);
	walk(tree->right);
}

static void *body(void *arg)
{
	walk(arg);
	return NULL;
}

struct generator {
	weft_coro_t *k;
};

static LAB_NOINLINE bool generator_make(struct generator *g, const struct tree *tree)
{
	g->k = weft_create(body, (void *)tree);
	return g->k != NULL;
}

static GENERATOR_NEXT bool generator_next(struct generator *g, int64_t *value)
{
	weft_request_t r = weft_resume(g->k, NULL, weft_handles(produce));

	if (weft_returned(r))
		return false;
	*value = weft_args(produce, r)->value;
	return true;
}

static int64_t run(const struct tree *tree)
{
	struct generator g;
	int64_t sum = 0, value;

	if (!generator_make(&g, tree))
		lab_die("weft_create");
	while (generator_next(&g, &value))
		sum += value;
	weft_delete(g.k);
	return sum;
}

static void walk_plain(const struct tree *tree, void (*visit)(void *, int64_t), void *data)
{
	if (!tree)
		return;
	walk_plain(tree->left, visit, data);
	visit(data, tree->value);
	walk_plain(tree->right, visit, data);
}

static LAB_NOINLINE void add(void *sum, int64_t value)
{
	*(int64_t *)sum += value;
}

static int64_t run_plain(const struct tree *tree)
{
	void (*visit)(void *, int64_t) = add;
	int64_t sum = 0;

	LAB_HIDE(visit);
	walk_plain(tree, visit, &sum);
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), sum;
	const struct tree *tree = tree_make(n);

	lab_start();
	sum = lab_number(argc, argv, "plain", 0) ? run_plain(tree) : run(tree);
	lab_stop();
	return lab_report((UINT64_C(1) << n) - 1, sum);
}
