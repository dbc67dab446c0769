/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handlers as values: each kind of clause once, and the messages about misuse. tests/effects has the rest. */
#include "unit.h"

#include <errno.h>

/* Words that programs may define, too: no macro of the library uses them. */
#define NONE (+)
#define SOME (+)
#define FOR (+)
#define YES (+)
#define NO (+)
#define EVEN (+)
#define ODD (+)
#define MANY (+)

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_EFFECT(int, flip);
WEFT_EFFECT(int, choose);
WEFT_EXCEPTION(oops, int, code);

static weft_resumption_t kept;

/* ---- each once --------------------------------------------------------------------------------------------------- */

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

static void *on_oops(void *state, int code)
{
	(void)state;
	return (void *)(intptr_t)code;
}

static void *on_flip(void *state, weft_resumption_t *k)
{
	(void)state;
	return weft_tail_continue(flip, k, 5);
}

static void *on_result(void *state, void *result)
{
	(void)state;
	return (char *)result + 1000;
}

WEFT_HANDLER(counter, weft_tail(get, on_get), weft_tail(put, on_put));
WEFT_HANDLER(flipping, weft_general(flip, on_flip), weft_abort(oops, on_oops), weft_on_return(on_result));

static void *counts(void *unused)
{
	while (get() > 0)
		put(get() - 1);
	return unused;
}

static void *flips(void *more)
{
	int sum = flip() + flip();

	if (more)
		oops(sum);
	return (void *)(intptr_t)sum;
}

static void tail_clauses(void **state)
{
	int n = 10, other = 3;

	(void)state;
	assert_ptr_equal(weft_run(&counter, &n, counts, &other), &other);
	assert_int_equal(n, 0);
}

static void general_clauses(void **state)
{
	(void)state;
	assert_int_equal((intptr_t)weft_run(&flipping, NULL, flips, NULL), 1010);
}

static void abort_clauses(void **state)
{
	int x;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&flipping, NULL, flips, &x), 10);
}

/* More clauses than the table's own loop examines, of several kinds. Each clause notes its name. */
WEFT_FAMILY(letters, (int, a), (int, b), (int, c), (int, d), (int, e), (int, f), (int, g), (int, h));

#define ON(letter, number)                                                                                             \
	static inline void *on_##letter(void *state, weft_resumption_t *k)                                             \
	{                                                                                                              \
		strcat((char *)state, #letter);                                                                        \
		return weft_tail_continue(letter, k, number);                                                          \
	}                                                                                                              \
	static void *stop_##letter(void *state)                                                                        \
	{                                                                                                              \
		strcat((char *)state, "!");                                                                            \
		return state;                                                                                          \
	}
ON(a, 1)
ON(b, 2)
ON(c, 3)
ON(d, 4)
ON(e, 5)
ON(f, 6)
ON(g, 7)
ON(h, 8)

static int a_at_once(void *state)
{
	strcat((char *)state, "A");
	return 1;
}

static void *b_waits(void *state, weft_resumption_t *k)
{
	void *rest;

	strcat((char *)state, "(");
	rest = weft_continue(b, k, 2);
	strcat((char *)state, ")");
	return rest;
}

WEFT_HANDLER(spelling, weft_on_return(on_result), weft_tail(a, a_at_once), weft_general(a, on_a),
	     weft_general(b, b_waits), weft_general(b, on_b), weft_general(c, on_c), weft_abort(d, stop_d),
	     weft_general(d, on_d), weft_general(e, on_e), weft_general(f, on_f), weft_general(g, on_g),
	     weft_general(h, on_h));
WEFT_HANDLER(spelling_on, weft_general(d, on_d), weft_abort(d, stop_d), weft_abort(a, stop_a), weft_abort(b, stop_b),
	     weft_abort(c, stop_c), weft_abort(e, stop_e), weft_abort(f, stop_f), weft_abort(g, stop_g),
	     weft_general(h, on_h), weft_abort(h, stop_h));

static void *spells(void *ends)
{
	int sum = a() + b() + h() + c() + b() + e() + f() + g() + h();

	return (void *)(intptr_t)(ends ? sum + d() : sum);
}

static void *spells_on(void *unused)
{
	return (void *)(intptr_t)(d() + h() + d() + (unused ? g() : 0));
}

static void many_clauses(void **state)
{
	char text[32] = "";

	(void)state;
	assert_int_equal((intptr_t)weft_run(&spelling, text, spells, NULL), 1000 + 1 + 2 + 8 + 3 + 2 + 5 + 6 + 7 + 8);
	assert_string_equal(text, "A(hc(efgh))");
	*text = '\0';
	assert_ptr_equal(weft_run(&spelling, text, spells, text), text);
	assert_string_equal(text, "A(hc(efgh!))");
	*text = '\0';
	assert_int_equal((intptr_t)weft_run(&spelling_on, text, spells_on, NULL), 4 + 8 + 4);
	assert_string_equal(text, "dhd");
	*text = '\0';
	assert_ptr_equal(weft_run(&spelling_on, text, spells_on, text), text);
	assert_string_equal(text, "dhd!");
}

static void *keeps(void *state, weft_resumption_t *k)
{
	(void)state;
	kept = weft_keep(k);
	return NULL;
}

WEFT_HANDLER(keeping, weft_general(flip, keeps));

static void kept_ones(void **state)
{
	(void)state;
	assert_null(weft_run(&keeping, NULL, flips, NULL));
	assert_true(weft_is_valid(&kept));
	assert_null(weft_continue(flip, &kept, 1)); /* and kept a second time */
	assert_true(weft_is_valid(&kept));
	assert_int_equal((intptr_t)weft_continue(flip, &kept, 2), 3);
	assert_false(weft_is_valid(&kept));
	assert_null(weft_run(&keeping, NULL, flips, NULL));
	weft_drop(&kept);
	assert_false(weft_is_valid(&kept));
}

/* The body overwrites the kept resumption that continues it. */
static void *flips_and_clears(void *unused)
{
	int sum = flip();

	memset(&kept, 0x5a, sizeof kept);
	return (char *)unused + sum;
}

static void kept_place_is_reused(void **state)
{
	(void)state;
	assert_null(weft_run(&keeping, NULL, flips_and_clears, NULL));
	assert_int_equal((intptr_t)weft_tail_continue(flip, &kept, 7), 7);
	for (size_t i = 0; i < sizeof kept; i++)
		assert_int_equal(((unsigned char *)&kept)[i], 0x5a);
}

/* A clause that waits in weft_continue for the decision of another clause. */
struct within {
	enum { TAIL, CONTINUE, KEEP, DROP, ABORT, NOTHING, IGNORE } how;
	int waiting;
};

static void *waits(void *within, weft_resumption_t *k)
{
	struct within *w = within;
	intptr_t answer;

	w->waiting++;
	answer = (intptr_t)weft_continue(flip, k, 1);
	assert_false(weft_is_valid(k));
	return (void *)(answer * 10 + w->waiting--);
}

static void *decides(void *within, weft_resumption_t *k)
{
	switch (((struct within *)within)->how) {
	case TAIL:
		return weft_tail_continue(choose, k, 2);
	case CONTINUE:
		return (char *)weft_continue(choose, k, 3) + 50;
	case KEEP:
		kept = weft_keep(k);
		return (void *)4;
	case DROP:
		weft_drop(k);
		return (void *)5;
	case ABORT:
		oops(6);
		break;
	case NOTHING:
		break;
	case IGNORE:
		return (char *)weft_tail_continue(choose, k, 7) + 1;
	}
	return NULL;
}

WEFT_HANDLER(waiting, weft_general(flip, waits), weft_general(choose, decides), weft_abort(oops, on_oops));

static void *performs_within(void *aborts)
{
	int sum = flip() * 100;

	sum += choose();
	sum += flip() * 100;
	sum += choose();
	if (aborts)
		oops(8);
	return (void *)(intptr_t)sum;
}

static intptr_t run_within(struct within *w, void *aborts)
{
	intptr_t answer = (intptr_t)weft_run(&waiting, w, performs_within, aborts);

	assert_int_equal(w->waiting, 0);
	return answer;
}

/* The clause performs an exception, for an enclosing handler. */
static void *runs_within(void *w)
{
	return (void *)run_within(w, NULL);
}

static void decided_within(void **state)
{
	struct within w = {TAIL, 0}, left = {ABORT, 0};

	(void)state;
	assert_int_equal(run_within(&w, NULL), 20421);
	assert_int_equal(run_within(&w, &w), 821);
	w.how = CONTINUE;
	assert_int_equal(run_within(&w, NULL), 26121);
	w.how = KEEP;
	assert_int_equal(run_within(&w, NULL), 41);
	w.how = TAIL;
	assert_int_equal((intptr_t)weft_continue(choose, &kept, 9), 2111);
	w.how = DROP;
	assert_int_equal(run_within(&w, NULL), 51);
	assert_int_equal((intptr_t)weft_run(&flipping, NULL, runs_within, &left), 6);
}

static void *tries_both(void *state, weft_resumption_t *k)
{
	intptr_t first = (intptr_t)weft_continue(flip, k, 1), second = (intptr_t)weft_continue(flip, k, 2);

	(void)state;
	return (void *)(first * 100 + second);
}

static void *flips_once(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)flip();
}

static void *throws(void *state, weft_resumption_t *k)
{
	(void)state;
	return weft_continue_throw(k, oops, 4);
}

static void *throws_then_flips(void *state, weft_resumption_t *k)
{
	intptr_t thrown = (intptr_t)weft_continue_throw(k, oops, 4), again = (intptr_t)weft_continue(flip, k, 2);

	(void)state;
	return (void *)(thrown * 1000 + again * 100 + (intptr_t)weft_continue_throw(k, oops, 5));
}

WEFT_HANDLER(throwing, weft_general(flip, throws), weft_abort(oops, on_oops));
WEFT_HANDLER(keeping_oops, weft_general(flip, keeps), weft_abort(oops, on_oops));
WEFT_HANDLER(many_throws, weft_multi(flip, throws_then_flips), weft_abort(oops, on_oops));

static void thrown_into(void **state)
{
	weft_resumption_t first;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&throwing, NULL, flips, NULL), 4);
	assert_null(weft_run(&keeping_oops, NULL, flips, NULL));
	first = kept;
	assert_int_equal((intptr_t)weft_continue_throw(&kept, oops, 6), 6);
	assert_false(weft_is_valid(&first));
	assert_int_equal((intptr_t)weft_run(&many_throws, NULL, flips_once, NULL), 4205);
}

static void *fails(void *state, int error)
{
	(void)state;
	return (void *)(intptr_t)-error;
}

WEFT_HANDLER(both, weft_multi(flip, tries_both));
WEFT_HANDLER(failing, weft_multi(flip, tries_both), weft_on_failure(fails));

static void multi_clauses(void **state)
{
	weft_attr_t fixed = {.policy = WEFT_FIXED};

	(void)state;
	assert_int_equal((intptr_t)weft_run(&both, NULL, flips_once, NULL), 102);
	errno = 0;
	assert_null(weft_run_with(&both, NULL, flips_once, NULL, &fixed));
	assert_int_equal(errno, EINVAL);
	assert_int_equal((intptr_t)weft_run_with(&failing, NULL, flips_once, NULL, &fixed), -EINVAL);
}

static void *gets_both(void *label)
{
	return (void *)(intptr_t)(weft_perform_on(get, (const weft_label_t *)label) * 100 + get() * 10 +
				  weft_perform_hot(get, on_get));
}

static void *runs_labelled(void *labels)
{
	const weft_label_t *label = labels;
	const weft_handler_t handler = weft_labelled(&counter, label);
	int n = 7;

	return weft_run(&handler, &n, gets_both, labels);
}

static void labels(void **state)
{
	static weft_label_t label = WEFT_LABEL(state, "left");
	int n = 2;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&counter, &n, runs_labelled, &label), 722);
}

static int generalizes(void *state)
{
	(void)state;
	return weft_escalate(flip) + 1;
}

WEFT_HANDLER(either, weft_tail(flip, generalizes), weft_general(flip, on_flip));
WEFT_HANDLER(asked, weft_tail(flip, generalizes), weft_requested(flip));

static void generalized(void **state)
{
	weft_coro_t *k = weft_create(flips_once, NULL);
	weft_request_t r;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&either, NULL, flips, NULL), 12);
	r = weft_resume_under(k, NULL, &asked, NULL);
	assert_true(weft_is(flip, r));
	weft_reply(flip, r, 8);
	r = weft_resume_under(k, NULL, &asked, NULL);
	assert_true(weft_returned(r));
	assert_int_equal((intptr_t)r.payload, 9);
	weft_delete(k);
}

static int forwards(void *state)
{
	(void)state;
	return weft_forward();
}

WEFT_HANDLER(forwarding, weft_tail(get, forwards));

static void *gets(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)get();
}

WEFT_EFFECT(int, quit);

static int on_quit(void *state)
{
	weft_exit(weft_current(), &weft_suspended, state);
}

WEFT_HANDLER(quitting, weft_tail(quit, on_quit), weft_tail(get, on_get));

static void *quits(void *unused)
{
	quit();
	return unused;
}

static void *starts_over(void *unused)
{
	weft_coro_t *k = weft_create(quits, unused);

	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_reset(k, gets, NULL);
	unused = weft_resume(k, NULL, WEFT_HANDLE_NONE).payload;
	weft_delete(k);
	return unused;
}

/* A coroutine that ended in a tail clause is outside of the clause when it is restarted. */
static void ended_in_a_clause(void **state)
{
	int value = 7;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&quitting, &value, starts_over, NULL), 7);
}

static void *runs_forwarding(void *unused)
{
	return weft_run(&forwarding, NULL, gets, unused);
}

static void forwarded(void **state)
{
	int n = 6;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&counter, &n, runs_forwarding, NULL), 6);
}

/* The performing coroutine, as clauses of all kinds see it. */
static weft_coro_t *performers[3];

static int performer_in_place(void *state)
{
	performers[0] = weft_performer(NULL);
	return *(int *)state;
}

static void *performer_waiting(void *state, weft_resumption_t *k)
{
	performers[1] = weft_performer(k);
	(void)state;
	return weft_tail_continue(flip, k, 1);
}

static void *performer_kept(void *state, weft_resumption_t *k)
{
	kept = weft_keep(k);
	performers[2] = weft_performer(k);
	return state;
}

WEFT_HANDLER(asking_who, weft_tail(get, performer_in_place), weft_general(flip, performer_waiting),
	     weft_general(choose, performer_kept));

static void *performs_all(void *self)
{
	*(weft_coro_t **)self = weft_current();
	return (void *)(intptr_t)(get() + flip() + choose());
}

static void *performs_inside(void *self)
{
	return weft_run(&forwarding, NULL, performs_all, self);
}

static void who_performs(void **state)
{
	weft_coro_t *self = NULL;
	int n = 3;

	(void)state;
	assert_ptr_equal(weft_run(&asking_who, &n, performs_inside, &self), &n);
	assert_non_null(self);
	assert_ptr_equal(performers[0], self);
	assert_ptr_equal(performers[1], self);
	assert_null(performers[2]);
	assert_ptr_equal(weft_performer(&kept), self);
	assert_ptr_not_equal(kept.k, self);
	assert_int_equal((intptr_t)weft_continue(choose, &kept, 2), 6);
	assert_null(weft_performer(&kept));
	assert_null(weft_performer(NULL));
}

/* ---- misuse ------------------------------------------------------------------------------------------------------ */

CASE(continued_twice,
     "weft: resumption of effect \"flip\" used twice: it was continued before; only multi clauses can do that again")
{
	weft_resumption_t copy;

	weft_run(&keeping, NULL, flips, NULL);
	copy = kept;
	weft_continue(flip, &copy, 1);
	weft_continue(flip, &copy, 2);
}

CASE(continued_after_drop,
     "weft: resumption of effect \"flip\" used after its end: it was dropped, or continued to the "
     "end of its body")
{
	weft_resumption_t copy;

	weft_run(&keeping, NULL, flips, NULL);
	copy = kept;
	weft_drop(&kept);
	weft_continue(flip, &copy, 1);
}

static void *undecided(void *state, weft_resumption_t *k)
{
	(void)k;
	return state;
}

WEFT_HANDLER(forgetful, weft_general(flip, undecided));

CASE(no_decision, "weft: handler \"forgetful\", effect \"flip\": its general clause returned without a decision: call "
		  "weft_tail_continue, weft_continue, weft_keep or weft_drop, once")
{
	weft_run(&forgetful, NULL, flips, NULL);
}

static void *ignores_result(void *state, weft_resumption_t *k)
{
	void *result = weft_tail_continue(flip, k, 1);

	return result ? state : result;
}

WEFT_HANDLER(ignoring, weft_general(flip, ignores_result));

CASE(tail_continue_not_returned, "weft: handler \"ignoring\", effect \"flip\": its clause did not return what "
				 "weft_tail_continue returned: return it")
{
	weft_run(&ignoring, NULL, flips, NULL);
}

CASE(no_decision_within,
     "weft: handler \"waiting\", effect \"choose\": its general clause returned without a decision: call "
     "weft_tail_continue, weft_continue, weft_keep or weft_drop, once")
{
	struct within w = {NOTHING, 0};

	run_within(&w, NULL);
}

CASE(tail_continue_not_returned_within, "weft: handler \"waiting\", effect \"choose\": its clause did not return what "
					"weft_tail_continue returned: return it")
{
	struct within w = {IGNORE, 0};

	run_within(&w, NULL);
}

WEFT_HANDLER(only_tail, weft_tail(flip, generalizes));

CASE(nothing_general, "weft: handler \"only_tail\", effect \"flip\": weft_escalate needs a general, multi or abort "
		      "clause beside the tail clause")
{
	weft_run(&only_tail, NULL, flips, NULL);
}

CASE(generalize_outside, "weft: weft_escalate: called outside of a tail clause, which it has to be part of")
{
	weft_escalate(flip);
}

WEFT_HANDLER(requesting, weft_requested(flip));

CASE(requested_under_run, "weft: handler \"requesting\", effect \"flip\": its clause is weft_requested, which needs a "
			  "loop around weft_resume_under")
{
	weft_run(&requesting, NULL, flips, NULL);
}

static void *suspends(void *unused)
{
	return weft_suspend(unused);
}

CASE(suspended_under_run,
     "weft: handler \"counter\", effect \"weft_suspended\": the body was suspended by weft_suspend "
     "or weft_yield, and nobody would resume it: resume a coroutine of your own by "
     "weft_resume_under instead")
{
	weft_run(&counter, NULL, suspends, NULL);
}

static void *suspends_in_clause(void *unused)
{
	return (char *)unused + get();
}

static int suspending_get(void *state)
{
	weft_suspend(state);
	return 7;
}

WEFT_HANDLER(suspending, weft_tail(get, suspending_get));

static void suspended_in_near_clause(void **state)
{
	weft_coro_t *k = weft_create(suspends_in_clause, NULL);
	weft_request_t r = weft_resume_under(k, NULL, &suspending, state);

	assert_ptr_equal(r.effect, &weft_suspended);
	assert_ptr_equal(r.payload, state);
	r = weft_resume_under(k, NULL, &suspending, state);
	assert_true(weft_returned(r));
	assert_int_equal((intptr_t)r.payload, 7);
	weft_delete(k);
}

static void *chooses_then_flips(void *unused)
{
	return (char *)unused + choose() + flip();
}

static void *keeps_flip(void *state, weft_resumption_t *k)
{
	kept = weft_keep(k);
	return state;
}

static void *continues_both_ways(void *state, weft_resumption_t *k)
{
	weft_resumption_t first;

	weft_continue(choose, k, 1);
	first = kept;
	weft_continue(choose, k, 2);
	weft_continue(flip, &first, 3);
	return state;
}

WEFT_HANDLER(both_ways, weft_multi(choose, continues_both_ways), weft_general(flip, keeps_flip));

CASE(kept_in_a_run_undone,
     "weft: resumption of effect \"flip\" used twice: it was continued before; only multi clauses can do that again")
{
	weft_run(&both_ways, NULL, chooses_then_flips, NULL);
}

CASE(thrown_used_twice,
     "weft: resumption of effect \"flip\" used twice: it was continued before; only multi clauses can do that again")
{
	weft_resumption_t first;

	weft_run(&keeping, NULL, flips, NULL);
	first = kept;
	weft_continue(flip, &kept, 1);
	weft_continue_throw(&first, oops, 1);
}

CASE(thrown_after_drop,
     "weft: resumption of effect \"flip\" used after its end: it was dropped, or continued to the end of its body")
{
	weft_resumption_t first;

	weft_run(&keeping, NULL, flips, NULL);
	first = kept;
	weft_drop(&kept);
	weft_continue_throw(&first, oops, 1);
}

CASE(label_of_another_family, "weft: effect \"flip\" is not of the family that label \"left\" was made for: give "
			      "WEFT_LABEL that family")
{
	static weft_label_t label = WEFT_LABEL(state, "left");

	weft_perform_on(flip, &label);
}

CASE(label_unhandled,
     "weft: unhandled effect \"get\" of \"left\" outside of any coroutine: run it under a handler made "
     "with weft_labelled for this label")
{
	static weft_label_t label = WEFT_LABEL(state, "left");

	weft_perform_on(get, &label);
}

/* ---- a table longer than a family -------------------------------------------------------------------------------- */

WEFT_FAMILY(digits, (int, d0), (int, d1), (int, d2), (int, d3), (int, d4), (int, d5), (int, d6), (int, d7), (int, d8),
	    (int, d9), (int, d10), (int, d11), (int, d12), (int, d13), (int, d14), (int, d15));

static int count_up(void *state)
{
	return ++*(int *)state;
}

static inline void *count_down(void *state, weft_resumption_t *k)
{
	return weft_continue(flip, k, --*(int *)state);
}

WEFT_HANDLER(long_table, weft_tail(d0, count_up), weft_tail(d1, count_up), weft_tail(d2, count_up),
	     weft_tail(d3, count_up), weft_tail(d4, count_up), weft_tail(d5, count_up), weft_tail(d6, count_up),
	     weft_tail(d7, count_up), weft_tail(d8, count_up), weft_tail(d9, count_up), weft_tail(d10, count_up),
	     weft_tail(d11, count_up), weft_tail(d12, count_up), weft_tail(d13, count_up), weft_tail(d14, count_up),
	     weft_tail(d15, count_up), weft_tail(get, on_get), weft_tail(put, on_put), weft_general(flip, count_down));

static void *uses_the_long_table(void *arg)
{
	assert_int_equal(d0() + d15(), 3);
	put(get() + 10);
	assert_int_equal(flip(), 11);
	assert_int_equal(d7(), 12);
	return arg;
}

static void long_tables(void **unused)
{
	int n = 0;

	(void)unused;
	assert_ptr_equal(weft_run(&long_table, &n, uses_the_long_table, &n), &n);
	assert_int_equal(n, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(tail_clauses),
	    T(ended_in_a_clause),
	    T(general_clauses),
	    T(abort_clauses),
	    T(many_clauses),
	    T(long_tables),
	    T(kept_ones),
	    T(kept_place_is_reused),
	    T(decided_within),
	    T(multi_clauses),
	    T(thrown_into),
	    T(labels),
	    T(generalized),
	    T(forwarded),
	    T(who_performs),

	    C(continued_twice),
	    C(continued_after_drop),
	    C(no_decision),
	    C(tail_continue_not_returned),
	    C(no_decision_within),
	    C(tail_continue_not_returned_within),
	    C(nothing_general),
	    C(generalize_outside),
	    C(requested_under_run),
	    C(suspended_under_run),
	    T(suspended_in_near_clause),
	    C(kept_in_a_run_undone),
	    C(thrown_used_twice),
	    C(thrown_after_drop),
	    C(label_of_another_family),
	    C(label_unhandled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
