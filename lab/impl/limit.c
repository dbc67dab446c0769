/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* limit: the programs that a bare switch (limit.h) can run. ./limit case=NAME n=COUNT. Built once for each form of
 * limit.h. */
#include "limit.h"
#include "lab.h"
#include "tree.h"

enum { STACK = 64 * 1024 };

static intptr_t number(void *value)
{
	return (intptr_t)value;
}

static void *pointer(intptr_t value)
{
	return (void *)value;
}

/* A coroutine yields this when it has no value left. */
#define DONE pointer(INTPTR_MIN)

/* ---- micro ------------------------------------------------------------------------------------------------- */

static void yield_body(struct limit *k, void *unused)
{
	intptr_t sum = 0;

	(void)unused;
	for (;;)
		sum += number(limit_yield(k, pointer(sum)));
}

static LAB_NOINLINE intptr_t one_deep(struct limit *k, intptr_t sum)
{
	intptr_t value = number(limit_yield(k, pointer(sum)));

	LAB_HIDE(value);
	return value;
}

static void deep_body(struct limit *k, void *unused)
{
	intptr_t sum = 0;

	(void)unused;
	for (;;)
		sum += one_deep(k, sum);
}

static int64_t pairs(void (*body)(struct limit *, void *), int64_t n)
{
	struct limit k;
	intptr_t sum = 0;
	int64_t i;

	limit_make(&k, STACK, body, NULL);
	lab_start();
	for (i = 0; i <= n; i++)
		sum = number(limit_resume(&k, pointer(1)));
	lab_stop();
	return sum;
}

static int64_t resume_yield(int64_t n)
{
	return pairs(yield_body, n);
}

static int64_t yield_deep(int64_t n)
{
	return pairs(deep_body, n);
}

enum { LIVE = 200 };

/* The compiler must not know that these bytes are not used elsewhere. */
static LAB_NOINLINE void move(char *to, const char *from)
{
	memcpy(to, from, LIVE);
	LAB_KEEP(to);
}

/* The minimum for coroutines that keep their live bytes in one place in turns: copying these bytes in and out. */
static int64_t alternate(int64_t n)
{
	static char place[LIVE], kept[2][LIVE];
	struct limit k[2];
	intptr_t out[2] = {0};
	int64_t i;

	limit_make(&k[0], STACK, yield_body, NULL);
	limit_make(&k[1], STACK, yield_body, NULL);
	lab_start();
	for (i = 0; i < n + 2; i++) {
		move(place, kept[i & 1]);
		out[i & 1] = number(limit_resume(&k[i & 1], pointer(1)));
		move(kept[i & 1], place);
	}
	lab_stop();
	return out[0] + out[1];
}

static void short_body(struct limit *k, void *counter)
{
	++*(int64_t *)counter;
	limit_yield(k, DONE);
}

static int64_t life_warm(int64_t n)
{
	struct limit k;
	int64_t done = 0, i;

	limit_make(&k, STACK, short_body, &done);
	lab_start();
	for (i = 0; i < n; i++) {
		limit_rearm(&k, STACK, short_body, &done);
		limit_resume(&k, NULL);
	}
	lab_stop();
	return done;
}

/* ---- state ------------------------------------------------------------------------------------------------- */

/* A request as a user of the bare switch would pass it: by pointer, on the requester's stack. */
struct request {
	bool put;
	int64_t value;
};

static void countdown_body(struct limit *k, void *unused)
{
	struct request get = {false, 0}, put = {true, 0};

	(void)unused;
	while (limit_yield(k, &get), get.value > 0) {
		put.value = get.value - 1;
		limit_yield(k, &put);
	}
	limit_yield(k, NULL);
}

static int64_t countdown(int64_t s)
{
	struct limit k;
	struct request *r;

	lab_start();
	limit_make(&k, STACK, countdown_body, NULL);
	while ((r = limit_resume(&k, NULL))) {
		if (r->put)
			s = r->value;
		else
			r->value = s;
	}
	lab_stop();
	return s;
}

struct count {
	int64_t n, sum;
};

static void perform_body(struct limit *k, void *arg)
{
	struct count *c = arg;
	struct request get = {false, 0};
	int64_t sum = 0, i;

	for (i = 0; i < c->n; i++) {
		limit_yield(k, &get);
		sum += get.value;
	}
	c->sum = sum;
	limit_yield(k, NULL);
}

static int64_t perform(int64_t n)
{
	struct count c = {n, 0};
	struct limit k;
	struct request *r;

	limit_make(&k, STACK, perform_body, &c);
	lab_start();
	while ((r = limit_resume(&k, NULL)))
		r->value = 1;
	lab_stop();
	return c.sum;
}

/* ---- generators -------------------------------------------------------------------------------------------- */

static void iterator_body(struct limit *k, void *arg)
{
	int64_t i, n = *(int64_t *)arg;

	for (i = 0; i <= n; i++)
		limit_yield(k, pointer(i));
	limit_yield(k, DONE);
}

/* Sums the values that the body yields. */
static int64_t drain(void (*body)(struct limit *, void *), const void *arg)
{
	struct limit k;
	int64_t sum = 0;
	void *out;

	limit_make(&k, STACK, body, (void *)arg);
	while ((out = limit_resume(&k, NULL)) != DONE)
		sum += number(out);
	return sum;
}

static int64_t iterator(int64_t n)
{
	int64_t sum;

	lab_start();
	sum = drain(iterator_body, &n);
	lab_stop();
	return sum;
}

static void walk(struct limit *k, const struct tree *tree)
{
	if (!tree)
		return;
	walk(k, tree->left);
	limit_yield(k, pointer(tree->value));
	walk(k, tree->right);
}

static void walk_body(struct limit *k, void *tree)
{
	walk(k, tree);
	limit_yield(k, DONE);
}

/*
 * The consumer calls a function that resumes: see generator_apart.c. The walk is not inlined into itself, as gcc does
 * with walk(), because then most of its returns, which cause the cost, would be gone. With clang half of them are gone,
 * because it turns the second call into a loop. In generator.c it does not, because an effect's arguments are in the
 * frame.
 */
static LAB_NOINLINE void walk_by_calls(struct limit *k, const struct tree *tree)
{
	if (!tree)
		return;
	walk_by_calls(k, tree->left);
	limit_yield(k, pointer(tree->value));
	walk_by_calls(k, tree->right);
}

static void walk_by_calls_body(struct limit *k, void *tree)
{
	walk_by_calls(k, tree);
	limit_yield(k, DONE);
}

static LAB_NOINLINE void *resume_apart(struct limit *k)
{
	return limit_resume(k, NULL);
}

static int64_t generator_apart(int64_t n)
{
	const struct tree *tree = tree_make(n);
	struct limit k;
	int64_t sum = 0;
	void *out;

	lab_start();
	limit_make(&k, STACK, walk_by_calls_body, (void *)tree);
	while ((out = resume_apart(&k)) != DONE)
		sum += number(out);
	lab_stop();
	return sum;
}

static int64_t generator(int64_t n)
{
	const struct tree *tree = tree_make(n);
	int64_t sum;

	lab_start();
	sum = drain(walk_body, tree);
	lab_stop();
	return sum;
}

/* Counts a walk of at least n values. */
static void count_walk(struct limit *k, const struct tree *tree)
{
	if (!tree)
		return;
	count_walk(k, tree->left);
	limit_yield(k, pointer(1));
	count_walk(k, tree->right);
}

static void count_body(struct limit *k, void *tree)
{
	count_walk(k, tree);
	limit_yield(k, DONE);
}

static int64_t recursive(int64_t n)
{
	int64_t height = 1, sum;
	const struct tree *tree;

	while ((INT64_C(1) << height) - 1 < n)
		height++;
	tree = tree_make(height);
	lab_start();
	sum = drain(count_body, tree);
	lab_stop();
	return sum;
}

/* ---- C1…C3 ------------------------------------------------------------------------------------------------- */

static void c1_body(struct limit *k, void *arg)
{
	struct count *c = arg;
	int64_t sum = 0, i;

	for (i = 0; i < c->n; i++)
		sum += number(limit_yield(k, pointer(i)));
	c->sum = sum;
	limit_yield(k, DONE);
}

static int64_t c1(int64_t n)
{
	struct count ca = {n, 0}, cb = {n, 0};
	struct limit a, b;
	void *va = NULL, *vb = NULL;

	limit_make(&a, STACK, c1_body, &ca);
	limit_make(&b, STACK, c1_body, &cb);
	do {
		va = limit_resume(&a, va);
		vb = limit_resume(&b, vb);
	} while (va != DONE && vb != DONE);
	free(a.stack);
	free(b.stack);
	return ca.sum + cb.sum;
}

static int64_t c1_laps(int64_t n, int64_t laps)
{
	int64_t sum = 0, i;

	lab_start();
	for (i = 0; i < laps; i++)
		sum = c1(n);
	lab_stop();
	return sum;
}

static void leaves(struct limit *k, int64_t node, int64_t depth)
{
	if (depth == 0) {
		limit_yield(k, pointer(node));
		return;
	}
	leaves(k, 2 * node, depth - 1);
	leaves(k, 2 * node + 1, depth - 1);
}

static void c2_body(struct limit *k, void *depth)
{
	leaves(k, 0, *(int64_t *)depth);
	limit_yield(k, DONE);
}

static int64_t c2(int64_t n)
{
	int64_t sum;

	lab_start();
	sum = drain(c2_body, &n);
	lab_stop();
	return sum;
}

static void count_up(struct limit *k, void *unused)
{
	int64_t i;

	(void)unused;
	for (i = 2;; i++)
		limit_yield(k, pointer(i));
}

struct filter {
	struct limit k, *source;
	int64_t prime;
};

static void filter_body(struct limit *k, void *arg)
{
	struct filter *f = arg;
	int64_t i;

	for (;;) {
		i = number(limit_resume(f->source, NULL));
		if (i % f->prime != 0)
			limit_yield(k, pointer(i));
	}
}

static int64_t c3(int64_t n)
{
	struct filter *filters = malloc((size_t)n * sizeof(*filters));
	struct limit source, *last = &source;
	int64_t i, prime = 0;

	if (!filters)
		lab_die("malloc");
	lab_start();
	limit_make(&source, STACK, count_up, NULL);
	for (i = 0; i < n; i++) {
		prime = number(limit_resume(last, NULL));
		filters[i].source = last;
		filters[i].prime = prime;
		limit_make(&filters[i].k, STACK, filter_body, &filters[i]);
		last = &filters[i].k;
	}
	lab_stop();
	return prime;
}

static const struct {
	const char *name;
	int64_t (*run)(int64_t n);
} cases[] = {
    {"resume_yield", resume_yield},
    {"yield_deep", yield_deep},
    {"alternate", alternate},
    {"life_warm", life_warm},
    {"countdown", countdown},
    {"perform", perform},
    {"iterator", iterator},
    {"generator", generator},
    {"generator_apart", generator_apart},
    {"recursive", recursive},
    {"c2", c2},
    {"c3", c3},
};

/* Operations per unit of n, as the programs with Weft count them. */
static uint64_t operations(const char *name, int64_t n)
{
	if (!strcmp(name, "countdown"))
		return (uint64_t)(2 * n + 1);
	if (!strcmp(name, "iterator"))
		return (uint64_t)(n + 1);
	if (!strcmp(name, "generator") || !strcmp(name, "generator_apart"))
		return (UINT64_C(1) << n) - 1;
	if (!strcmp(name, "c2"))
		return UINT64_C(1) << n;
	return (uint64_t)n;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), laps = lab_number(argc, argv, "laps", 1);
	size_t i;

	if (lab_is(argc, argv, "case", "c1"))
		return lab_report((uint64_t)(2 * n * laps), c1_laps(n, laps));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (lab_is(argc, argv, "case", cases[i].name))
			return lab_report(operations(cases[i].name, n), cases[i].run(n));
	lab_die("no such case");
}
