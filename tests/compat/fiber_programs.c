/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fiber.h: sums by iteration and over a tree, the sieve, statuses. C and C++. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include <fiber.h>

static void *count(void *arg)
{
	int32_t max = (int32_t)(intptr_t)arg;

	for (int32_t i = 0; i < max; i++)
		fiber_yield((void *)(intptr_t)i);
	return NULL;
}

static int32_t iterative_sum(int32_t max)
{
	fiber_t generator = fiber_alloc(count);
	fiber_result_t status;
	int32_t sum = 0;
	void *value = fiber_resume(generator, (void *)(intptr_t)max, &status);

	while (status == FIBER_YIELD) {
		sum += (int32_t)(intptr_t)value;
		value = fiber_resume(generator, NULL, &status);
	}
	assert(status == FIBER_OK && !value);
	fiber_free(generator);
	return sum;
}

struct node {
	int depth;
};

static void walk(int depth)
{
	if (!depth) {
		fiber_yield((void *)(intptr_t)1);
		return;
	}
	walk(depth - 1);
	walk(depth - 1);
}

static void *walk_tree(struct node *tree)
{
	walk(tree->depth);
	return tree;
}

static int tree_sum(int depth)
{
	struct node tree = {depth};
	fiber_t walker = fiber_alloc((fiber_entry_point_t)(void *)walk_tree);
	fiber_result_t status;
	int sum = 0;

	for (;;) {
		void *value = fiber_resume(walker, &tree, &status);
		switch (status) {
		case FIBER_YIELD:
			sum += (int)(intptr_t)value;
			continue;
		case FIBER_OK:
			assert(value == &tree);
			fiber_free(walker);
			return sum;
		case FIBER_ERROR:
			abort();
		}
	}
}

static bool filter(int32_t prime)
{
	int32_t candidate = (int32_t)(intptr_t)fiber_yield(NULL);

	while (candidate > 0)
		candidate = (int32_t)(intptr_t)fiber_yield((void *)(intptr_t)(candidate % prime == 0));
	return false;
}

static void *filter_entry(void *prime)
{
	return (void *)(intptr_t)filter((int32_t)(intptr_t)prime);
}

static void sieve(uint32_t max)
{
	fiber_t *filters = (fiber_t *)malloc(sizeof(*filters) * max);
	fiber_result_t status;
	uint32_t found = 0;

	for (int32_t i = 2; found < max; i++) {
		bool divisible = false;
		for (uint32_t j = 0; j < found && !divisible; j++)
			divisible = fiber_resume(filters[j], (void *)(intptr_t)i, &status) != NULL;
		if (divisible)
			continue;
		printf("%d ", i);
		filters[found] = fiber_alloc(filter_entry);
		fiber_resume(filters[found++], (void *)(intptr_t)i, &status);
		assert(status == FIBER_YIELD);
	}
	puts("");
	for (uint32_t j = 0; j < found; j++) {
		fiber_resume(filters[j], NULL, &status);
		assert(status == FIBER_OK);
		fiber_free(filters[j]);
	}
	free(filters);
}

static void *echo(void *arg)
{
	for (int i = 0; i < 3; i++)
		arg = fiber_yield((void *)((intptr_t)arg + 1));
	return (void *)((intptr_t)arg * 100);
}

int main(void)
{
	fiber_result_t status;
	fiber_t k;
	intptr_t value = 0;

	fiber_init();
	printf("%d %d\n", iterative_sum(10000), tree_sum(10));
	sieve(20);
	k = fiber_alloc(echo);
	do {
		value = (intptr_t)fiber_resume(k, (void *)(value * 2), &status);
		printf("%d ", (int)value);
	} while (status == FIBER_YIELD);
	printf("%s\n", status == FIBER_OK ? "ok" : "?");
	assert(!fiber_resume(k, NULL, &status));
	printf("finished again: %s\n", status == FIBER_ERROR ? "error" : "?");
	fiber_free(k);
	fiber_finalize();
	return 0;
}
