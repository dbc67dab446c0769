/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * D2 unbalanced tree: a balanced binary tree `depth` deep, with a right spine of `spine` nodes below its largest key.
 * Recursive search; 3 of 10 searches look for the largest key, at the spine's end, the remaining searches for a random
 * key of the balanced part. t threads do n searches each, in one tree. The result is the sum of the depths of the found
 * keys.
 *
 * plain=1: in plain threads. build=1: each thread first builds its own tree, which is timed, and an operation is the
 * whole work of a thread. loop=1: compilers may turn the search into a loop, and gcc -O2 does.
 */
#include "threads.h"

struct node {
	struct node *left, *right;
	int64_t key;
};

struct job {
	struct lab_thread base;
	const struct node *root; /* NULL: the thread builds one */
	int64_t (*search)(const struct node *node, int64_t key);
	int64_t searches, depth, spine;
	uint64_t random;
	int64_t depths;
};

/* Nodes of the balanced part have the keys 1 … 2^depth - 1, laid out in order of their keys. */
static struct node *balanced(struct node *nodes, int64_t low, int64_t high)
{
	int64_t middle = (low + high) / 2;

	if (low > high)
		return NULL;
	nodes[middle] = (struct node){balanced(nodes, low, middle - 1), balanced(nodes, middle + 1, high), middle};
	return &nodes[middle];
}

static int64_t keys_of(int64_t depth)
{
	return (INT64_C(1) << depth) - 1;
}

static const struct node *build(int64_t depth, int64_t spine)
{
	int64_t keys = keys_of(depth), i;
	struct node *nodes = malloc((size_t)(keys + spine + 1) * sizeof(*nodes)), *root;

	if (!nodes)
		lab_die("malloc");
	root = balanced(nodes, 1, keys);
	for (i = keys + 1; i <= keys + spine; i++) {
		nodes[i] = (struct node){NULL, NULL, i};
		nodes[i - 1].right = &nodes[i];
	}
	return root;
}

/* Returns the number of nodes on the way to the key, including the key's node. */
static LAB_NOINLINE int64_t search(const struct node *node, int64_t key)
{
	int64_t below;

	if (node->key == key)
		return 1;
	below = search(key < node->key ? node->left : node->right, key);
	LAB_HIDE(below);
	return below + 1;
}

static LAB_NOINLINE int64_t search_by_loop(const struct node *node, int64_t key)
{
	return node->key == key ? 1 : 1 + search_by_loop(key < node->key ? node->left : node->right, key);
}

static uint64_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *state >> 33;
}

static void *work(void *arg)
{
	struct job *job = arg;
	int64_t keys = keys_of(job->depth), i, key, sum = 0;
	const struct node *root = job->root ? job->root : build(job->depth, job->spine);

	for (i = 0; i < job->searches; i++) {
		key = 1 + (int64_t)(next_random(&job->random) % (uint64_t)keys);
		sum += job->search(root, i % 10 < 3 ? keys + job->spine : key);
	}
	job->depths = sum;
	return NULL;
}

int main(int argc, char **argv)
{
	enum { FRAME = 16 }; /* a return address and alignment padding */
	static struct job jobs[LAB_MOST_THREADS];
	int64_t n = lab_number(argc, argv, "n", 10), t = lab_number(argc, argv, "t", 1), sum = 0, i;
	int64_t depth = lab_number(argc, argv, "depth", 20), spine = lab_number(argc, argv, "spine", 1000000);
	int64_t timed_build = lab_number(argc, argv, "build", 0), loop = lab_number(argc, argv, "loop", 0);
	const struct node *root = timed_build ? NULL : build(depth, spine);

	for (i = 0; i < t && i < LAB_MOST_THREADS; i++)
		jobs[i] = (struct job){.root = root,
				       .search = loop ? search_by_loop : search,
				       .searches = n,
				       .depth = depth,
				       .spine = spine,
				       .random = (uint64_t)i};
	lab_threads_run(jobs, sizeof(*jobs), t, (size_t)(depth + spine) * FRAME, lab_number(argc, argv, "plain", 0),
			work);
	for (i = 0; i < t; i++)
		sum += jobs[i].depths;
	return lab_report_growth((uint64_t)(timed_build ? t : n * t), sum);
}
