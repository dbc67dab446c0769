/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 tree_explore: walk from the root of a tree to a leaf, asking choose() at each node; the handler resumes each
 * choice twice, so that all paths are taken, left first. A variable outside is changed on the way down; the result is
 * computed on the way back. The largest result of all paths starts the next of ten runs. Needs the policy "copy".
 */
#include "lab.h"
#include "tree.h"
#include <weft/weft.h>

enum { DEEPEST = 64, RUNS = 10 };

WEFT_EFFECT(bool, choose);

static int64_t state;
static uint64_t choices;

static int64_t operator(int64_t x, int64_t y)
{
	return llabs(x - 503 * y + 37) % 1009;
}

static int64_t explore(const struct tree *tree)
{
	const struct tree *next;

	if (!tree)
		return state;
	next = choose() ? tree->left : tree->right;
	state = operator(state, tree->value);
	return operator(tree->value, explore(next));
}

static void *body(void *tree)
{
	return (void *)(intptr_t)explore(tree);
}

/* Where k, the only one that runs, stood at each choice on the way. */
static weft_coro_t *nodes[DEEPEST];

static int64_t paths(weft_coro_t *k, int depth);

static int64_t path(weft_coro_t *k, weft_request_t r, bool left, int depth)
{
	weft_reply(choose, r, left); /* k lies where the request points */
	return paths(k, depth + 1);
}

/* The largest result of all paths from where k stands. */
static int64_t paths(weft_coro_t *k, int depth)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(choose));
	int64_t one, other;

	if (weft_returned(r))
		return (int64_t)(intptr_t)r.payload;
	choices++;
	if (weft_clone_into(nodes[depth], k))
		lab_die("weft_clone_into");
	one = path(k, r, true, depth);
	if (weft_clone_into(k, nodes[depth]))
		lab_die("weft_clone_into");
	other = path(k, r, false, depth);
	return one > other ? one : other;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5);
	weft_attr_t attr = {.policy = WEFT_COPY};
	void *tree = (void *)tree_make(n);
	weft_coro_t *k = weft_create_with(body, tree, &attr);
	int i;

	if (n > DEEPEST)
		lab_die("n");
	for (i = 0; i < n; i++)
		nodes[i] = weft_create_with(body, tree, &attr);
	if (!k || !nodes[n - 1])
		lab_die("weft_create_with");
	lab_start();
	for (i = 0; i < RUNS; i++) {
		weft_reset(k, body, tree);
		state = paths(k, 0);
	}
	lab_stop();
	for (i = 0; i < n; i++)
		weft_delete(nodes[i]);
	weft_delete(k);
	return lab_report(choices, state);
}
