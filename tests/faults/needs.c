/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * needs [DISTRIBUTION]: under commit, coroutines of one function whose depths follow a distribution are suspended at
 * their deepest, many at once. Each line has the number of faults of a coroutine, and the ratio of committed to
 * resident memory. Bounds: the target is one fault, and 1.3.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weft.h>

enum { COROUTINES = 1000, WAVES = 4, ALONE = 200, MOST = 50 };

static uint64_t random_state;

static double uniform(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (double)(random_state >> 11) / (double)((uint64_t)1 << 53);
}

/* Pages that coroutine number i needs. */
typedef int depth_t(int i);

static int constant(int i)
{
	(void)i;
	return 20;
}

static int just_more(int i)
{
	(void)i;
	return 6; /* doubling opens 11 */
}

static int bimodal(int i)
{
	(void)i;
	return uniform() < 0.1 ? 40 : 4;
}

static int seldom_deep(int i)
{
	(void)i;
	return uniform() < 0.1 ? 40 : 2;
}

static int heavy_tailed(int i)
{
	double depth = 1 / (1 - uniform());

	(void)i;
	return depth < MOST ? (int)depth + 1 : MOST;
}

static int growing(int i)
{
	return 3 + i * (MOST - 3) / (WAVES * COROUTINES);
}

/* Two functions that a third function calls: see trampoline. */
static int two(int i)
{
	return i % 2 ? 130 : 6;
}

/* A frame of a page for each level except the first, which shares its page with the object. */
static __attribute__((noinline)) void descend(int pages)
{
	volatile char frame[4096 - 64];

	frame[0] = 1;
	if (pages > 2)
		descend(pages - 1);
	else
		weft_suspend(NULL);
	(void)frame[0];
}

static void *body(void *argument)
{
	int pages = (int)(intptr_t)argument % 100;

	if (pages < 2)
		weft_suspend(NULL);
	else
		descend(pages);
	return NULL;
}

static void *trampoline(void *argument)
{
	weft__stands_for(weft_current(), (intptr_t)argument < 100 ? "shallow" : "deep");
	return body(argument);
}

struct result {
	double faults, committed;
};

static struct result wave(weft_fn_t *function, depth_t *depth, int first, int count)
{
	static weft_coro_t *k[COROUTINES];
	weft_attr_t attr = {.policy = WEFT_COMMIT};
	weft_stack_stats_t before, after;
	struct result r;

	weft_stack_stats(WEFT_COMMIT, &before);
	for (int i = 0; i < count; i++) {
		k[i] = weft_create_with(function, (void *)(intptr_t)depth(first + i), &attr);
		if (!k[i])
			exit(2);
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
	}
	weft_stack_stats(WEFT_COMMIT, &after);
	r.faults = (double)(after.faults - before.faults) / count;
	r.committed = (double)after.committed / (double)weft_stack_resident(WEFT_COMMIT);
	for (int i = 0; i < count; i++) {
		(void)weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		weft_delete(k[i]);
	}
	weft_stack_trim();
	return r;
}

static const struct {
	const char *name;
	depth_t *depth;
	weft_fn_t *function;
	struct result most;
	bool alone; /* each in the slot of the coroutine before, whose memory was dropped */
} distributions[] = {
    {"constant", constant, body, {1.02, 1.02}, false},
    {"just more", just_more, body, {1.02, 1.02}, false},
    {"bimodal", bimodal, body, {1.25, 1.1}, false},
    {"seldom deep", seldom_deep, body, {0.15, 1.1}, false},
    {"heavy-tailed", heavy_tailed, body, {1.05, 1.3}, false},
    {"growing", growing, body, {1.2, 1.1}, false},
    {"behind one function", two, trampoline, {1.05, 1.05}, false},
    {"one at a time", constant, body, {1.05, 1.2}, true},
};

int main(int argc, char **argv)
{
	int failed = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t d = 0; d < sizeof distributions / sizeof *distributions; d++) {
		struct result sum = {0, 0}, most = distributions[d].most;
		int count = distributions[d].alone ? 1 : COROUTINES, waves = distributions[d].alone ? ALONE : WAVES;

		if (argc > 1 && !strstr(distributions[d].name, argv[1]))
			continue;
		random_state = 1;
		for (int w = 0; w < waves; w++) {
			struct result r = wave(distributions[d].function, distributions[d].depth, w * count, count);

			sum.faults += r.faults / waves;
			sum.committed += r.committed / waves;
		}
		if (sum.faults > most.faults || sum.committed > most.committed) {
			printf("not ok - %s: %.2f faults, %.2f committed for 1 used; at most %.2f, %.2f\n",
			       distributions[d].name, sum.faults, sum.committed, most.faults, most.committed);
			failed = 1;
		} else {
			printf("ok - %s: %.2f faults, %.2f committed for 1 used\n", distributions[d].name, sum.faults,
			       sum.committed);
		}
	}
	return failed;
}
