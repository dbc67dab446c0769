/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * clauses.c: the costs of each kind of clause. `weft run examples/clauses.c -- 100` measures, and prints the shortest
 * of a hundred short runs of each kind; without a number the program runs each kind once and counts.
 * docs/howto/choose-a-clause.md.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin performers */
WEFT_EFFECT(int, next, int, after);
WEFT_EFFECT(void, unrelated);
WEFT_EXCEPTION(stop, int, at);

enum { PERFORMS = 1000, CHOICES = 9, DEPTH = 100 };

/* At each perform, the library searches for the handler. */
static void *ask(void *unused)
{
	long i = 0;

	while (i < PERFORMS)
		i = next((int)i);
	return unused ? NULL : (void *)i;
}
/* doc: end */

/* doc: begin hot */
static int next_in_place(void *state, int after)
{
	*(long *)state += 1;
	return after + 1;
}

/* The performer guesses that the clause is next_in_place: if so, the clause is inlined. */
static void *ask_hot(void *unused)
{
	long i = 0;

	while (i < PERFORMS)
		i = weft_perform_hot(next, next_in_place, (int)i);
	return unused ? NULL : (void *)i;
}

/* The handler is searched for once. */
static void *ask_located(void *unused)
{
	weft_coro_t *k = weft_locate(next);
	long i = 0;

	while (i < PERFORMS)
		i = weft_perform_at(next, k, (int)i);
	return unused ? NULL : (void *)i;
}
/* doc: end */

/* ---- handlers ---------------------------------------------------------------------------------------------- */

static inline void *next_by_reply(void *state, weft_resumption_t *k, int after)
{
	*(long *)state += 1;
	return weft_tail_continue(next, k, after + 1);
}

static void *next_within(void *state, weft_resumption_t *k, int after)
{
	*(long *)state += 1;
	return weft_continue(next, k, after + 1);
}

static void *count_after(void *state, void *answer, const int *after)
{
	*(long *)state += *after != 0;
	return answer;
}

static int next_then(void *state, int after)
{
	int mine = after + 1;

	(void)state;
	return weft_on_answer(count_after, &mine) ? PERFORMS : mine;
}

struct keeper {
	long count;
	int after;
	weft_resumption_t kept;
};

static void *next_later(void *state, weft_resumption_t *k, int after)
{
	struct keeper *keeper = state;

	keeper->count++;
	keeper->after = after;
	keeper->kept = weft_keep(k);
	return NULL;
}

static int next_generalized(void *state, int after)
{
	(void)state;
	return weft_escalate(next, after);
}

static void *both_ways(void *state, weft_resumption_t *k, int after)
{
	*(long *)state += 2;
	weft_continue(next, k, after + 1);
	return weft_continue(next, k, after + 1);
}

static void *next_throws(void *state, weft_resumption_t *k, int after)
{
	*(long *)state += 1;
	return weft_continue_throw(k, stop, after);
}

static void *stopped(void *state, int at)
{
	*(long *)state += at;
	return state;
}

static void never(void *state)
{
	(void)state;
}

WEFT_HANDLER(by_tail, weft_tail(next, next_in_place), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_leaving, weft_tail(next, next_then), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_reply, weft_general(next, next_by_reply), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_nesting, weft_general(next, next_within), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_keeping, weft_general(next, next_later), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_decision, weft_tail(next, next_generalized), weft_general(next, next_by_reply),
	     weft_on_failure(must_have_memory));
WEFT_HANDLER(by_both, weft_multi(next, both_ways), weft_on_failure(must_have_memory));
WEFT_HANDLER(by_throwing, weft_general(next, next_throws), weft_abort(stop, stopped),
	     weft_on_failure(must_have_memory));
WEFT_HANDLER(by_abort, weft_abort(stop, stopped), weft_on_failure(must_have_memory));
WEFT_HANDLER(of_something_else, weft_tail(unrelated, never), weft_on_failure(must_have_memory));

/* ---- contenders: each returns the number of its operations ------------------------------------------------------- */

static int (*volatile pointer)(void *state, int after) = next_in_place;

static long plain_call(void)
{
	long count = 0, i = 0;

	while (i < PERFORMS)
		i = pointer(&count, (int)i);
	return count;
}

static long run_under(const weft_handler_t *handler, weft_fn_t *body)
{
	long count = 0;

	weft_run(handler, &count, body, NULL);
	return count;
}

static long tail(void)
{
	return run_under(&by_tail, ask);
}

static long tail_hot(void)
{
	return run_under(&by_tail, ask_hot);
}

static long tail_then(void)
{
	return run_under(&by_leaving, ask);
}

static long tail_located(void)
{
	return run_under(&by_tail, ask_located);
}

static void *deeper(void *levels)
{
	int fewer = *(int *)levels - 1;

	if (fewer)
		return weft_run(&of_something_else, NULL, deeper, &fewer);
	for (int i = 0; i < 10; i++)
		ask(NULL);
	return NULL;
}

static void *deep(void *unused)
{
	int levels = DEPTH;

	(void)unused;
	return deeper(&levels);
}

static long tail_deep(void)
{
	return run_under(&by_tail, deep);
}

static long general_reply(void)
{
	return run_under(&by_reply, ask);
}

static long general_deep(void)
{
	return run_under(&by_reply, deep);
}

static long general_nested(void)
{
	return run_under(&by_nesting, ask);
}

static long general_kept(void)
{
	struct keeper keeper = {0};

	weft_run(&by_keeping, &keeper, ask, NULL);
	while (weft_is_valid(&keeper.kept))
		weft_continue(next, &keeper.kept, keeper.after + 1);
	return keeper.count;
}

static long generalized(void)
{
	return run_under(&by_decision, ask);
}

static void *choose(void *unused)
{
	for (int i = 0; i < CHOICES;)
		i = next(i);
	return unused;
}

static long multi(void)
{
	long count = run_under(&by_both, choose);

	if (!count) {
		perror("no multi clauses here");
		exit(1);
	}
	return count;
}

static void *stop_at_once(void *unused)
{
	(void)unused;
	stop(1);
}

static long aborts(void)
{
	long count = 0;

	for (int i = 0; i < PERFORMS; i++)
		weft_run(&by_abort, &count, stop_at_once, NULL);
	return count;
}

static void *nothing(void *unused)
{
	return unused;
}

static long runs(void)
{
	long count = 0;

	for (int i = 0; i < PERFORMS; i++)
		count += !weft_run(&by_tail, NULL, nothing, NULL);
	return count;
}

static void *ask_once(void *i)
{
	*(int *)i = next(*(int *)i);
	return NULL;
}

static long runs_that_ask(void)
{
	long count = 0;
	int i = 0;

	while (i < PERFORMS)
		weft_run(&by_tail, &count, ask_once, &i);
	return count;
}

static long throws(void)
{
	long count = 0;
	int i = 0;

	for (int n = 0; n < PERFORMS; n++)
		weft_run(&by_throwing, &count, ask_once, &i);
	return count;
}

static long requests(void)
{
	weft_coro_t *k = must(weft_create(ask, NULL));
	weft_request_t r;
	long count = 0;

	weft_handle (r, k, next) {
		count++;
		weft_reply(next, r, weft_args(next, r)->after + 1);
	}
	weft_delete(k);
	return count;
}

/* ---- measuring ----------------------------------------------------------------------------------------------- */

static const struct {
	const char *what;
	long (*run)(void);
} contenders[] = {
    {"plain C: a call by pointer", plain_call},
    {"tail, weft_perform_hot with the right guess", tail_hot},
    {"tail", tail},
    {"tail, 100 other handlers in between", tail_deep},
    {"tail, located before", tail_located},
    {"tail, with weft_on_answer and what it calls", tail_then},
    {"general, weft_tail_continue", general_reply},
    {"general, 100 other handlers in between", general_deep},
    {"a loop of weft_handle", requests},
    {"tail, then weft_escalate", generalized},
    {"general, weft_continue within one another", general_nested},
    {"general, weft_keep, continued later", general_kept},
    {"multi, each continuation", multi},
    {"weft_run of an empty body", runs},
    {"weft_run of one tail perform", runs_that_ask},
    {"weft_run, left by an abort clause", aborts},
    {"weft_run, left by weft_continue_throw", throws},
};

static double nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

enum { CONTENDERS = sizeof contenders / sizeof *contenders };

/* Contenders take turns, so that each has its share of the machine's quiet moments. */
static void measure(double least[], int runs)
{
	for (int run = 0; run < runs; run++)
		for (int i = 0; i < CONTENDERS; i++) {
			double before = nanoseconds();
			long count = contenders[i].run();
			double each = (nanoseconds() - before) / (double)count;

			if (run == 0 || each < least[i])
				least[i] = each;
		}
}

int main(int argc, char **argv)
{
	int runs = argc > 1 ? atoi(argv[1]) : 0;
	double least[CONTENDERS];

	weft_set_failure_hook(must_not_fail);
	if (runs > 0)
		measure(least, runs);
	for (int i = 0; i < CONTENDERS; i++)
		if (runs > 0)
			printf("%-44s %8.2f ns\n", contenders[i].what, least[i]);
		else
			printf("%-44s %6ld times\n", contenders[i].what, contenders[i].run());
}
