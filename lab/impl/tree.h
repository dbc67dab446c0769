/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tree.h: the suite's complete binary tree, a DAG: height 0 is a leaf; height h has value h and twice the tree below.
 */
#ifndef LAB_TREE_H
#define LAB_TREE_H

#include <stdint.h>
#include <stdlib.h>

struct tree {
	int64_t value;
	const struct tree *left, *right;
};

/* NULL is a leaf. The nodes are freed only by the end of the process. */
static inline const struct tree *tree_make(int64_t height)
{
	struct tree *nodes = (struct tree *)malloc((size_t)(height + 1) * sizeof(*nodes));
	int64_t h;

	if (!nodes)
		abort();
	nodes[0].left = nodes[0].right = NULL;
	for (h = 1; h <= height; h++) {
		nodes[h].value = h;
		nodes[h].left = nodes[h].right = h > 1 ? &nodes[h - 1] : NULL;
	}
	return height ? &nodes[height] : NULL;
}

#endif /* LAB_TREE_H */
