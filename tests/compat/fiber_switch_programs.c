/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* fiber_switch.h: two fibers spell, ten take turns, a walker ends by switching; both forms of fiber_main. C and C++. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <fiber_switch.h>

/* ---- two fibers spell a greeting, letter by letter ---- */

static void *odd(void *arg, fiber_t from)
{
	static const char letters[] = "hlowrd";
	size_t i = (size_t)arg;

	do {
		putc(letters[i], stdout);
		i = (size_t)fiber_switch(from, (void *)i, &from);
	} while (from);
	puts("");
	return (void *)"spelled"; /* ends fiber_main */
}

static fiber_t odd_fiber;

static void *even(void *arg, fiber_t from)
{
	static const char letters[] = "el ol";
	size_t i = (size_t)arg;
	fiber_t other = odd_fiber = fiber_alloc(odd);

	i = (size_t)fiber_switch(other, (void *)i, &from);
	while (i < strlen(letters)) {
		assert(from == other);
		putc(letters[i++], stdout);
		i = (size_t)fiber_switch(other, (void *)i, &from);
	}
	fiber_switch_return(other, NULL);
}

static fiber_t even_fiber;

static void *spell(void *arg, fiber_t from)
{
	assert(arg == NULL && from == NULL);
	even_fiber = fiber_alloc(even);
	fiber_switch(even_fiber, NULL, &from);
	abort();
}

/* ---- ten workers, round robin; the last worker returns to the program ---- */

#define WORKERS 10

static fiber_t workers[WORKERS], program;
static int results[WORKERS];

static void *increment(void *arg, fiber_t from)
{
	int self = (int)(intptr_t)arg, next = (self + 1) % WORKERS;

	for (int i = 0; i < 1000; i++) {
		results[self]++;
		fiber_switch(workers[next], (void *)(intptr_t)next, &from);
	}
	fiber_switch_return(next ? workers[next] : program, (void *)(intptr_t)next);
}

static void *round_robin(int argc, char **argv)
{
	int sum = 0;
	fiber_t from = NULL;

	assert(argc == 1 && argv[0]);
	program = get_active_fiber();
	for (int i = 0; i < WORKERS; i++)
		workers[i] = fiber_sized_alloc(512, increment);
	fiber_switch(workers[0], NULL, &from);
	assert(from == NULL); /* the fiber that came back has ended */
	for (int i = 0; i < WORKERS; i++) {
		sum += results[i];
		fiber_free(workers[i]);
	}
	return (void *)(intptr_t)sum;
}

/* ---- a walker over a tree, which does not keep the identity of its asker ---- */

static bool walk_done;

static int walk(int depth, volatile fiber_t *caller)
{
	if (!depth) {
		fiber_switch(*caller, (void *)(intptr_t)1, caller);
		return 1;
	}
	return walk(depth - 1, caller) + walk(depth - 1, caller);
}

static void *walker(void *depth, fiber_t caller)
{
	volatile fiber_t back = caller;
	int leaves = walk((int)(intptr_t)depth, &back);

	walk_done = true;
	fiber_switch_return(back, (void *)(intptr_t)leaves);
}

static void *tree_sum(void *depth, fiber_t from)
{
	fiber_t k = fiber_alloc((fiber_entry_point_t)walker);
	void *value = fiber_switch(k, depth, &from);
	int sum = 0;

	while (!walk_done) {
		sum += (int)(intptr_t)value;
		value = fiber_switch(k, NULL, &from);
	}
	assert(value == (void *)(intptr_t)sum);
	fiber_free(k);
	return (void *)(intptr_t)sum;
}

int main(int argc, char **argv)
{
	const char *result = (const char *)fiber_main(spell, NULL);

	puts(result);
	fiber_free(odd_fiber);	/* it returned */
	fiber_free(even_fiber); /* it ended by switching */
	printf("%d\n", (int)(intptr_t)fiber_main(round_robin, argc, argv));
	printf("%d\n", (int)(intptr_t)fiber_main(tree_sum, (void *)(intptr_t)8));
	return 0;
}
