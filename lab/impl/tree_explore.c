/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 tree_explore: walk from the root of a tree to a leaf, asking choose() at each node; the handler resumes each
 * choice twice, so that all paths are taken, left first. A global variable is changed on the way down; the result is
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

/* Returns the largest result of all paths. */
static int64_t paths(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(choose)), chosen = r;
	void *payloads[DEEPEST]; /* choices whose second branch remains */
	int depth = 0;
	int64_t largest = 0;

	for (;;) {
		if (weft_is(choose, r)) {
			choices++;
			if (weft_checkpoint(k))
				lab_die("weft_checkpoint");
			weft_reply(choose, r, true); /* the request points into k's stack, which is in place */
			payloads[depth++] = r.payload;
		} else {
			if ((intptr_t)r.payload > largest)
				largest = (intptr_t)r.payload;
			if (!depth)
				return largest;
			if (weft_checkpoint_restore_last(k))
				lab_die("weft_checkpoint_restore_last");
			chosen.payload = payloads[--depth];
			weft_reply(choose, chosen, false);
		}
		r = weft_resume(k, NULL, weft_handles(choose));
	}
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
	if (!k)
		lab_die("weft_create_with");
	lab_start();
	for (i = 0; i < RUNS; i++) {
		weft_reset(k, body, tree);
		state = paths(k);
	}
	lab_stop();
	weft_delete(k);
	return lab_report(choices, state);
}
