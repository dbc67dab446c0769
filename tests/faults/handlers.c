/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Handlers as values while allocations fail, in a library built with WEFT_INJECT_FAULTS and run with WEFT_FAIL_EVERY=n:
 * weft_run, weft_continue and weft_keep either succeed, or the failure clause gets ENOMEM; nothing leaks. Exits with 3
 * if nothing failed or nothing succeeded.
 */
#include <errno.h>

#include "internal/alloc_faults.h"
#include "scenario.h"

enum { ROUNDS = 3000, KB = 1024, ANSWER = 5, BASE = 1000, FOUR_WAYS = 10, ADDITIONS = 50 };

WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, pick);
WEFT_EFFECT(void, add_later, int, n);
WEFT_EXCEPTION(stop, int, code);

struct world {
	unsigned choice;
	bool failed; /* the failure clause was called, or a copy could not be made */
	weft_resumption_t kept;
	bool keeps;
};

static unsigned long right, failed;

static void *number(intptr_t n)
{
	return (void *)n;
}

/* ---- clauses ----------------------------------------------------------------------------------------------------- */

static void *on_failure(void *state, int error)
{
	struct world *w = state;

	REQUIRE(error == ENOMEM || error == EAGAIN);
	w->failed = true;
	return NULL;
}

static void *keep(struct world *w, weft_resumption_t *k)
{
	w->kept = weft_keep(k);
	w->keeps = weft_is_valid(&w->kept);
	w->failed |= !w->keeps;
	return NULL;
}

static void *on_ask(void *state, weft_resumption_t *k)
{
	struct world *w = state;

	switch (w->choice % 3) {
	case 0:
		return weft_tail_continue(ask, k, ANSWER);
	case 1:
		return weft_continue(ask, k, ANSWER);
	default:
		return keep(w, k);
	}
}

/* Returns the sum of the results of both. */
static void *on_pick(void *state, weft_resumption_t *k)
{
	struct world *w = state;
	intptr_t sum;

	if (w->choice % 5 == 0 && !w->keeps)
		keep(w, k);
	sum = (intptr_t)weft_continue(pick, k, 0);
	if (weft_is_valid(k))
		sum += (intptr_t)weft_continue(pick, k, 1);
	else
		REQUIRE(w->failed);
	return number(sum);
}

static void *on_stop(void *state, int code)
{
	(void)state;
	return number(-code);
}

static void *add(void *state, void *answer, const int *n)
{
	(void)state;
	return (char *)answer + *n;
}

static void on_add_later(void *state, int n)
{
	struct world *w = state;
	int error = weft_on_answer(add, &n);

	REQUIRE(!error || error == -ENOMEM);
	w->failed |= error != 0;
}

WEFT_HANDLER(linear, weft_general(ask, on_ask), weft_abort(stop, on_stop), weft_on_failure(on_failure),
	     weft_tail(add_later, on_add_later));
WEFT_HANDLER(branching, weft_multi(pick, on_pick), weft_on_failure(on_failure));

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static void *asks(void *argument)
{
	int n = (int)(intptr_t)argument, answer;

	use_stack((size_t)n % 60 * KB);
	answer = ask();
	for (int i = 0; i < ADDITIONS; i++)
		add_later(n % 3);
	use_stack((size_t)n % 50 * KB);
	if (n % 7 == 0)
		stop(n);
	return number(n + answer + BASE);
}

static void *picks(void *argument)
{
	int first = pick(), second = pick();

	(void)argument;
	return number(1 + 2 * first + second);
}

/* ---- rounds ------------------------------------------------------------------------------------------------------ */

static void expect(const struct world *w, void *result, intptr_t wanted)
{
	REQUIRE(w->failed || result == number(wanted));
	if (w->failed)
		failed++;
	else
		right++;
}

static void linear_round(struct world *w, int n)
{
	static const weft_policy_t policies[] = {WEFT_COMMIT, WEFT_OVERCOMMIT, WEFT_COPY, WEFT_FIXED};
	weft_attr_t attr = {.policy = policies[n % 4], .stack_size = 128 * KB};
	void *result = weft_run_with(&linear, w, asks, number(n), &attr);

	if (w->keeps && n % 2) {
		weft_drop(&w->kept);
		return;
	}
	if (w->keeps)
		result = weft_continue(ask, &w->kept, ANSWER);
	expect(w, result, (n % 7 ? n + ANSWER + BASE : -n) + ADDITIONS * (n % 3));
}

static void branching_round(struct world *w)
{
	void *result = weft_run(&branching, w, picks, NULL);

	expect(w, result, FOUR_WAYS);
	if (w->keeps)
		weft_drop(&w->kept);
}

int main(int arguments, char **argument)
{
	uint64_t state = arguments > 1 ? strtoul(argument[1], NULL, 0) : 1;

	alarm(60);
	for (int i = 0; i < ROUNDS; i++) {
		struct world w = {0};

		state = state * 6364136223846793005u + 1442695040888963407u;
		w.choice = (unsigned)(state >> 40);
		if (i % 3)
			linear_round(&w, i);
		else
			branching_round(&w);
		if (i % 64 == 0)
			weft_stack_trim();
	}
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		REQUIRE(stats_of((weft_policy_t)p).live == 0);
	printf("%lu faults: %lu went well, %lu failed\n", weft__injected_faults(), right, failed);
	return right && failed && weft__injected_faults() ? 0 : 3;
}
