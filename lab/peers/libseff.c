/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libseff: the lab's programs on libseff, for ./weft lab --peer libseff=DIR. case=NAME selects a program. located=1
 * finds the handlers of state once, before the loop. Handlers are loops around seff_resume.
 *
 * On segmented stacks, libc's code runs in whatever space is left in the current segment. Coroutines therefore do not
 * read the clocks themselves: they perform the effect `clocks`, and the main stack reads them.
 */
#include "suite.h"
#include <seff.h>

DEFINE_EFFECT(get, 0, int64_t, {});
DEFINE_EFFECT(put, 1, void, { int64_t value; });
DEFINE_EFFECT(unrelated, 2, void, {});
DEFINE_EFFECT(clocks, 3, void, { bool start; });
DEFINE_EFFECT(emit, 4, void, { int64_t value; });
DEFINE_EFFECT(done, 5, void, { int64_t value; });
DEFINE_EFFECT(read_char, 6, int64_t, {});
DEFINE_EFFECT(stop, 7, void, {});
DEFINE_EFFECT(operate, 8, void, { int64_t x; });
DEFINE_EFFECT(prime, 9, bool, { int64_t e; });

/* The payload of a request for the effect `name`. */
#define PAYLOAD(request, name) ((const EFF_PAYLOAD_T(name) *)(request).payload)

static seff_coroutine_t *make(seff_start_fun_t *fn, const void *arg)
{
	seff_coroutine_t *k = seff_coroutine_new(fn, (void *)arg);

	if (!k)
		lab_die("seff_coroutine_new");
	return k;
}

/* Resumes k until it returns. The body runs for each request for an effect in `set`; it may set `answer`. */
#define HANDLE(r, k, set, answer)                                                                                      \
	for (seff_request_t r = seff_resume(k, NULL, set); !seff_finished(r); r = seff_resume(k, (void *)(answer), set))

/* ---- micro ------------------------------------------------------------------------------------------------------- */

static void *yield_body(void *unused)
{
	seff_coroutine_t *self = seff_current_coroutine();
	intptr_t sum = 0;

	for (;;)
		sum += (intptr_t)seff_yield(self, EFF_ID(emit), (void *)sum);
	return unused;
}

static int64_t resume_yield(int64_t n)
{
	seff_coroutine_t *k = make(yield_body, NULL);
	seff_request_t r = {0};
	int64_t i;

	lab_start();
	for (i = 0; i <= n; i++)
		r = seff_resume(k, (void *)1, HANDLES(emit));
	lab_stop();
	return (intptr_t)r.payload;
}

static void *get_body(void *arg)
{
	int64_t *n = arg, sum = 0, i;

	for (i = 0; i < *n; i++)
		sum += PERFORM(get);
	*n = sum;
	return NULL;
}

static int64_t perform(int64_t n)
{
	seff_coroutine_t *k = make(get_body, &n);

	lab_start();
	HANDLE(r, k, HANDLES(get), 1);
	lab_stop();
	seff_coroutine_delete(k);
	return n;
}

/* ---- state under d handlers of another effect ------------------------------------------------- */

struct level {
	int64_t depth;
	bool located;
};

static void countdown(void)
{
	int64_t s;

	while ((s = PERFORM(get)) > 0)
		PERFORM(put, s - 1);
}

static void countdown_located(void)
{
	seff_coroutine_t *getting = seff_locate_handler(EFF_ID(get)), *putting = seff_locate_handler(EFF_ID(put));
	int64_t s;

	while ((s = YIELD(getting, get)) > 0)
		YIELD(putting, put, s - 1);
}

static void *descend(void *arg)
{
	const struct level *level = arg;
	struct level next = {level->depth - 1, level->located};
	seff_coroutine_t *k;

	if (level->depth > 0) {
		k = make(descend, &next);
		HANDLE(r, k, HANDLES(unrelated), 0);
		seff_coroutine_delete(k);
		return NULL;
	}
	PERFORM(clocks, true);
	if (level->located)
		countdown_located();
	else
		countdown();
	PERFORM(clocks, false);
	return NULL;
}

static int64_t state(int64_t s, int64_t depth, bool located)
{
	struct level level = {depth, located};
	seff_coroutine_t *k = make(descend, &level);
	int64_t answer = 0;

	HANDLE(r, k, HANDLES(get) | HANDLES(put) | HANDLES(clocks), answer)
	{
		if (r.effect == EFF_ID(get))
			answer = s;
		else if (r.effect == EFF_ID(put))
			s = PAYLOAD(r, put)->value;
		else if (PAYLOAD(r, clocks)->start)
			lab_start();
		else
			lab_stop();
	}
	seff_coroutine_delete(k);
	return s;
}

/* ---- the suite ---------------------------------------------------------------------------------------- */

static void *produce(void *arg)
{
	int64_t end = *(int64_t *)arg, i;

	for (i = 0; i <= end; i++)
		PERFORM(emit, i);
	return NULL;
}

static int64_t sum_of(seff_coroutine_t *k)
{
	int64_t sum = 0;

	HANDLE(r, k, HANDLES(emit), 0)
	sum += PAYLOAD(r, emit)->value;
	seff_coroutine_delete(k);
	return sum;
}

static int64_t iterator(int64_t n)
{
	return sum_of(make(produce, &n));
}

static void walk(const struct tree *tree)
{
	if (!tree)
		return;
	walk(tree->left);
	PERFORM(emit, tree->value);
	walk(tree->right);
}

static void *walk_body(void *tree)
{
	walk(tree);
	return NULL;
}

/* The consumer holds the generator and requests one value at a time. */
static bool next(seff_coroutine_t *k, int64_t *value)
{
	seff_request_t r = seff_resume(k, NULL, HANDLES(emit));

	if (seff_finished(r))
		return false;
	*value = PAYLOAD(r, emit)->value;
	return true;
}

static int64_t generator(int64_t n)
{
	seff_coroutine_t *k = make(walk_body, tree_make(n));
	int64_t sum = 0, value;

	while (next(k, &value))
		sum += value;
	seff_coroutine_delete(k);
	return sum;
}

static LAB_NOINLINE int64_t product(const struct list *xs)
{
	int64_t rest;

	if (!xs)
		return 1;
	if (xs->head == 0)
		PERFORM(done, 0);
	rest = product(xs->tail);
	LAB_HIDE(rest);
	return xs->head * rest;
}

static void *product_body(void *xs)
{
	return (void *)product(xs);
}

/* The recursion needs more than the 8 KB that a fixed stack has by default. */
static int64_t product_of(const struct list *xs)
{
#ifdef STACK_POLICY_SEGMENTED
	seff_coroutine_t *k = make(product_body, xs);
#else
	seff_coroutine_t *k = seff_coroutine_new_sized(product_body, (void *)xs, 128 * 1024);
#endif
	seff_request_t r = seff_resume(k, NULL, HANDLES(done));
	int64_t result = seff_finished(r) ? (int64_t)r.payload : PAYLOAD(r, done)->value;

	seff_coroutine_delete(k);
	return result;
}

static int64_t product_early(int64_t n)
{
	const struct list *xs = list_make();
	int64_t sum = 0, i;

	for (i = 0; i < n; i++)
		sum += product_of(xs);
	return sum;
}

static void *parse(void *unused)
{
	int64_t count = 0, c;

	while ((c = PERFORM(read_char)) != EOF) {
		if (c == '$') {
			count++;
		} else {
			PERFORM(emit, count);
			count = 0;
		}
	}
	PERFORM(stop);
	return unused;
}

/* Answers read_char: line after line, then stops. */
static void *answering(void *arg)
{
	struct feed feed = {0, 0, *(int64_t *)arg};
	seff_coroutine_t *k = make(parse, NULL);
	int64_t answer = 0;

	HANDLE(r, k, HANDLES(read_char), answer)
	{
		if (feed_ends(&feed))
			PERFORM(stop);
		answer = feed_next(&feed);
	}
	seff_coroutine_delete(k);
	return NULL;
}

static void *catching(void *arg)
{
	seff_coroutine_t *k = make(answering, arg);

	seff_resume(k, NULL, HANDLES(stop));
	seff_coroutine_delete(k);
	return NULL;
}

static int64_t parsing_dollars(int64_t n)
{
	return sum_of(make(catching, &n));
}

static void *operate_body(void *arg)
{
	int64_t i;

	for (i = *(int64_t *)arg; i > 0; i--)
		PERFORM(operate, i);
	return NULL;
}

/* The handler computes after each resume, so it is recursive. */
static int64_t operations(seff_coroutine_t *k, int64_t seed)
{
	seff_request_t r = seff_resume(k, NULL, HANDLES(operate));
	int64_t x;

	if (seff_finished(r))
		return seed;
	x = PAYLOAD(r, operate)->x;
	return op(x, operations(k, seed));
}

static int64_t resume_nontail(int64_t n)
{
	seff_coroutine_t *k;
	int64_t seed = 0;
	int i;

	for (i = 0; i < 1000; i++) {
		k = make(operate_body, &n);
		seed = operations(k, seed);
		seff_coroutine_delete(k);
	}
	return seed;
}

struct search {
	int64_t from, end, sum;
};

static void *search(void *arg);

/* Answers for the multiples of p while the search continues beyond it. */
static void search_beyond(int64_t p, struct search *s)
{
	seff_coroutine_t *k = make(search, s);
	int64_t e;
	bool answer = false;

	HANDLE(r, k, HANDLES(prime), (uintptr_t)answer)
	{
		e = PAYLOAD(r, prime)->e;
		answer = e % p != 0 && PERFORM(prime, e);
	}
	seff_coroutine_delete(k);
}

static void *search(void *arg)
{
	struct search *s = arg;
	int64_t i;

	for (i = s->from; i < s->end; i++) {
		if (PERFORM(prime, i)) {
			s->sum += i;
			s->from = i + 1;
			search_beyond(i, s);
			break;
		}
	}
	return NULL;
}

static int64_t handler_sieve(int64_t n)
{
	struct search s = {2, n, 0};
	seff_coroutine_t *k = make(search, &s);

	HANDLE(r, k, HANDLES(prime), (uintptr_t) true);
	seff_coroutine_delete(k);
	return s.sum;
}

static const struct suite_case cases[] = {{"resume_yield", resume_yield, false},
					  {"perform", perform, false},
					  {"iterator", iterator, true},
					  {"generator", generator, true},
					  {"product_early", product_early, true},
					  {"parsing_dollars", parsing_dollars, true},
					  {"resume_nontail", resume_nontail, true},
					  {"handler_sieve", handler_sieve, true},
					  {NULL, NULL, false}};

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), d = lab_number(argc, argv, "d", 0);

	if (lab_is(argc, argv, "case", "state"))
		return lab_report((uint64_t)(2 * n + 1), state(n, d, lab_number(argc, argv, "located", 0)));
	return suite_main(argc, argv, cases);
}
