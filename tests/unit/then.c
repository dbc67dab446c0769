/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work that tail clauses defer until the answer (weft_on_answer): who does it, in which order, and that no record stays
 * behind if it is not done. tests/effects compares it with a model. */
#include "unit.h"

#include <errno.h>
#include <string.h>

WEFT_EFFECT(void, mark, int, digit);
WEFT_EFFECT(int, ask);
WEFT_EFFECT(bool, flip);
WEFT_EFFECT(void, many, long, times);
WEFT_EFFECT(void, wait_outside);
WEFT_EXCEPTION(escape, int, code);
WEFT_EXCEPTION(escape_further, int, code);

/* ---- a handler that appends digits to its answer ----------------------------------------------------------------- */

static void *append(void *state, void *answer, const int *digit)
{
	if (state)
		++*(int *)state;
	return (void *)((intptr_t)answer * 10 + *digit);
}

static void on_mark(void *state, int digit)
{
	(void)state;
	assert_int_equal(weft_on_answer(append, &digit), 0);
}

static void *on_result(void *state, void *result)
{
	(void)state;
	return (char *)result + 1;
}

static void *on_escape(void *state, int code)
{
	(void)state;
	return (void *)(intptr_t)code;
}

static weft_resumption_t kept;

static void *keeps(void *state, weft_resumption_t *k)
{
	(void)state;
	kept = weft_keep(k);
	return (void *)7;
}

static void *continues(void *state, weft_resumption_t *k)
{
	(void)state;
	return (void *)((intptr_t)weft_continue(flip, k, true) * 10);
}

WEFT_HANDLER(marking, weft_tail(mark, on_mark), weft_abort(escape, on_escape), weft_general(ask, keeps),
	     weft_general(flip, continues), weft_on_return(on_result));

static intptr_t run(weft_fn_t *body, void *arg)
{
	return (intptr_t)weft_run(&marking, NULL, body, arg);
}

static void *marks_123(void *result)
{
	mark(1), mark(2), mark(3);
	return result;
}

static void newest_first(void **state)
{
	int called = 0;

	(void)state;
	assert_int_equal((intptr_t)weft_run(&marking, &called, marks_123, (void *)4), 5321);
	assert_int_equal(called, 3);
}

/* ---- that nothing is lost -------------------------------------------------------------------------------------- */

enum { DEPTH = 4 };

static void *note_place(void *state, void *answer, const int *unused)
{
	(void)state;
	return (void *)((uintptr_t)answer + (uintptr_t)unused);
}

static void on_mark_note_place(void *state, int digit)
{
	(void)state;
	assert_int_equal(weft_on_answer(note_place, &digit), 0);
}

WEFT_HANDLER(noting, weft_tail(mark, on_mark_note_place));

static void *runs_more(void *depth)
{
	mark(1);
	return (intptr_t)depth ? weft_run(&noting, NULL, runs_more, (char *)depth - 1) : NULL;
}

/* Freed memory is reused before new memory: the set of addresses of some coroutines' records, in any order. */
static void *places_of_some(void)
{
	return weft_run(&noting, NULL, runs_more, (void *)DEPTH);
}

/* ---- runs within runs -------------------------------------------------------------------------------------------- */

static void *runs_inner(void *unused)
{
	intptr_t inner;

	mark(1);
	inner = run(marks_123, NULL);
	mark(2);
	return unused ? unused : (void *)inner;
}

static void inner_runs_have_their_own(void **state)
{
	(void)state;
	assert_int_equal(run(runs_inner, NULL), 132221);
}

static void *runs_meanwhile(void *state, void *answer, const int *digit)
{
	assert_int_equal(run(marks_123, NULL), 1321);
	assert_int_equal(*digit, (intptr_t)state);
	return (char *)answer + 1;
}

static void on_mark_run_later(void *state, int digit)
{
	(void)digit;
	assert_int_equal(weft_on_answer(runs_meanwhile, &(int){(int)(intptr_t)state}), 0);
}

WEFT_HANDLER(running, weft_tail(mark, on_mark_run_later));

static void records_stay_until_they_are_done(void **state)
{
	(void)state;
	assert_int_equal((intptr_t)weft_run(&running, (void *)99, marks_123, NULL), 3);
}

static void *performs_meanwhile(void *state, void *answer, const int *digit)
{
	(void)state;
	mark(*digit); /* mark of the enclosing handler */
	return answer;
}

static void on_mark_pass_on(void *state, int digit)
{
	(void)state;
	assert_int_equal(weft_on_answer(performs_meanwhile, &digit), 0);
}

WEFT_HANDLER(passing_on, weft_tail(mark, on_mark_pass_on));

static void *runs_passing_on(void *unused)
{
	return weft_run(&passing_on, unused, marks_123, NULL);
}

static void they_see_the_handlers_outside(void **state)
{
	(void)state;
	assert_int_equal(run(runs_passing_on, NULL), 1123);
}

/* ---- with the other kinds of clauses ----------------------------------------------------------------------------- */

static void *marks_and_escapes(void *code)
{
	mark(1), mark(2);
	escape((int)(intptr_t)code);
}

static void done_with_an_abort_clause_s_answer(void **state)
{
	(void)state;
	assert_int_equal(run(marks_and_escapes, (void *)4), 421);
}

static void *marks_around_flip(void *unused)
{
	mark(1);
	flip();
	mark(2);
	return unused;
}

static void each_continue_has_its_own(void **state)
{
	(void)state;
	assert_int_equal(run(marks_around_flip, NULL), 1201);
}

static void *marks_around_ask(void *unused)
{
	mark(1);
	mark(ask());
	return unused;
}

static void *continues_kept(void *answer)
{
	mark(8);
	return weft_continue(ask, &kept, *(int *)answer);
}

static void kept_ones_begin_anew(void **state)
{
	int answer = 5;

	(void)state;
	if (weft_default_policy() == WEFT_COPY) /* the two bodies' frames need the same region */
		return;
	assert_int_equal(run(marks_around_ask, NULL), 71);
	assert_int_equal(run(continues_kept, &answer), 168); /* 0 + 1 and 5; + 1 and 8 */
}

static void *tries_both(void *state, weft_resumption_t *k)
{
	intptr_t first = (intptr_t)weft_continue(flip, k, true), second = (intptr_t)weft_continue(flip, k, false);

	(void)state;
	return (void *)(1000 * first + second);
}

WEFT_HANDLER(branching, weft_multi(flip, tries_both), weft_tail(mark, on_mark));

static void *marks_around_choice(void *unused)
{
	mark(9);
	mark(flip() ? 1 : 2);
	return unused;
}

static void each_branch_has_its_own(void **state)
{
	(void)state;
	assert_int_equal((intptr_t)weft_run(&branching, NULL, marks_around_choice, NULL), 10029);
}

/* ---- many, large and none ---------------------------------------------------------------------------------------- */

struct large {
	char filling[40000];
};

static void *add(void *state, void *answer, const long *n)
{
	(void)state;
	return (void *)((intptr_t)answer + *n);
}

static void *add_large(void *state, void *answer, struct large *large)
{
	(void)state;
	assert_int_equal(large->filling[0] + large->filling[sizeof large->filling - 1], 3);
	memset(large, 0xff, sizeof *large); /* the function owns it */
	return (void *)((intptr_t)answer + 1);
}

static void on_many(void *state, long times)
{
	static struct large large = {.filling = {[0] = 1, [sizeof large.filling - 1] = 2}};

	(void)state;
	if (times % 1000 == 0)
		assert_int_equal(weft_on_answer(add_large, &large), 0);
	else
		assert_int_equal(weft_on_answer(add, &times), 0);
}

WEFT_HANDLER(adding, weft_tail(many, on_many));

static void *performs_many(void *times)
{
	for (long i = 1; i <= (intptr_t)times; i++)
		many(i);
	return NULL;
}

static void a_million(void **state)
{
	const void *before = places_of_some();

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal((intptr_t)weft_run(&adding, NULL, performs_many, (void *)1000000),
				 500000500000 - 500500000 + 1000);
	assert_ptr_equal(places_of_some(), before);
}

/* ---- work that is not done leaves no record ---------------------------------------------------------------------- */

WEFT_HANDLER(outermost, weft_abort(escape_further, on_escape));

static void *marks_and_escapes_further(void *code)
{
	mark(1);
	escape_further((int)(intptr_t)code);
}

static void *runs_escaping(void *code)
{
	return weft_run(&marking, NULL, marks_and_escapes_further, code);
}

static void left_for_a_handler_further_out(void **state)
{
	const void *before = places_of_some();

	(void)state;
	assert_int_equal((intptr_t)weft_run(&outermost, NULL, runs_escaping, (void *)6), 6);
	assert_ptr_equal(places_of_some(), before);
}

static void *waits_in_clause(void *state, weft_resumption_t *k)
{
	wait_outside();
	weft_drop(k);
	return state;
}

WEFT_HANDLER(waiting, weft_tail(mark, on_mark), weft_general(ask, waits_in_clause));

static void *runs_waiting(void *unused)
{
	return weft_run(&waiting, unused, marks_around_ask, NULL);
}

static void run_until_it_waits(weft_coro_t *k)
{
	assert_true(weft_is(wait_outside, weft_resume(k, NULL, weft_handles(wait_outside))));
}

static void deleted_in_between(void **state)
{
	const void *before = places_of_some();
	weft_coro_t *k = weft_create(runs_waiting, NULL);

	(void)state;
	run_until_it_waits(k);
	weft_delete(k);
	assert_ptr_equal(places_of_some(), before);
}

static void *waits_in_body(void *unused)
{
	mark(1);
	wait_outside();
	return unused;
}

static void *runs_waiting_in_body(void *unused)
{
	return weft_run(&marking, NULL, waits_in_body, unused);
}

static void deleted_from_outside(void **state)
{
	const void *before = places_of_some();
	weft_coro_t *k = weft_create(runs_waiting_in_body, NULL);

	(void)state;
	run_until_it_waits(k);
	weft_reset(k, runs_waiting, NULL);
	assert_ptr_equal(places_of_some(), before);
	run_until_it_waits(k);
	weft_delete(k);
	assert_ptr_equal(places_of_some(), before);
}

/* A stack whose overflow ends the coroutine. */
static intptr_t run_on_little(weft_fn_t *body)
{
	const weft_attr_t little = {.policy = WEFT_COMMIT, .stack_size = 64 * 1024};

	return (intptr_t)weft_run_with(&marking, NULL, body, NULL, &little);
}

static int overflow(int n)
{
	volatile char room[1000];

	room[0] = (char)n;
	return n ? overflow(n + 1) + room[0] : 0;
}

static void *overflows(void *unused)
{
	mark(1);
	overflow(1);
	return unused;
}

static void done_without_an_answer(void **state)
{
	(void)state;
	assert_int_equal(run_on_little(overflows), 1); /* of NULL */
}

static void *overflows_in_clause(void *state, weft_resumption_t *k)
{
	overflow(1);
	weft_drop(k);
	return state;
}

WEFT_HANDLER(overflowing, weft_tail(mark, on_mark), weft_general(ask, overflows_in_clause));

static void *overflows_later(void *unused)
{
	mark(2);
	return weft_run(&overflowing, unused, marks_around_ask, NULL);
}

static void ended_by_the_runtime(void **state)
{
	const void *before = places_of_some();

	(void)state;
	assert_int_equal(run_on_little(overflows_later), 2);
	assert_ptr_equal(places_of_some(), before);
}

/* A kept multi resumption is continued without anything deferred. */
static void *keeps_copy(void *state, weft_resumption_t *k)
{
	kept = weft_keep(k);
	return state;
}

WEFT_HANDLER(copying, weft_tail(mark, on_mark), weft_multi(flip, keeps_copy));

static void *flips_then_leaves(void *unused)
{
	if (flip()) {
		mark(1);
		escape_further(3);
	}
	mark(2);
	wait_outside();
	return unused;
}

static void *continues_copy(void *answer)
{
	return weft_continue(flip, &kept, answer != NULL);
}

static void left_by_a_copy(void **state)
{
	const void *before = places_of_some();
	weft_coro_t *k;

	(void)state;
	if (weft_default_policy() == WEFT_COPY)
		return;
	assert_null(weft_run(&copying, NULL, flips_then_leaves, NULL));
	assert_int_equal((intptr_t)weft_run(&outermost, NULL, continues_copy, &kept), 3);
	k = weft_create(continues_copy, NULL);
	run_until_it_waits(k);
	weft_delete(k);
	weft_drop(&kept);
	assert_ptr_equal(places_of_some(), before);
}

/* ---- while a coroutine ends, and copies of one ------------------------------------------------------------------- */

static intptr_t in_cleanup;

static void runs_in_cleanup(void *unused)
{
	(void)unused;
	in_cleanup = run(runs_inner, NULL);
}

static void *runs_waiting_with_cleanup(void *unused)
{
	weft_defer(runs_in_cleanup, NULL);
	return runs_waiting_in_body(unused);
}

static void in_what_is_deferred(void **state)
{
	const void *before = places_of_some();
	weft_coro_t *k = weft_create(runs_waiting_with_cleanup, NULL);

	(void)state;
	run_until_it_waits(k);
	in_cleanup = 0;
	weft_delete(k);
	assert_int_equal(in_cleanup, 132221);
	assert_ptr_equal(places_of_some(), before);
}

static void leaves_again(void *unused)
{
	runs_in_cleanup(unused);
	runs_escaping((void *)5);
}

static void *leaves_twice(void *unused)
{
	weft_defer(leaves_again, unused);
	mark(1);
	escape(4);
}

static void *runs_leaving_twice(void *unused)
{
	return weft_run(&marking, NULL, leaves_twice, unused);
}

/* While the coroutine ends it runs another body, and then ends in a different way. */
static void in_what_is_deferred_and_leaves(void **state)
{
	const void *before = places_of_some();

	(void)state;
	in_cleanup = 0;
	assert_int_equal((intptr_t)weft_run(&outermost, NULL, runs_leaving_twice, NULL), 5);
	assert_int_equal(in_cleanup, 132221);
	assert_ptr_equal(places_of_some(), before);
}

static void no_copies_meanwhile(void **state)
{
	const weft_attr_t copied = {.policy = WEFT_COPY};
	const void *before = places_of_some();
	weft_coro_t *k = weft_create_with(runs_waiting, NULL, &copied);

	(void)state;
	assert_int_equal(weft_checkpoint(k), 0);
	run_until_it_waits(k);
	errno = 0;
	assert_null(weft_clone(k));
	assert_int_equal(errno, EBUSY);
	assert_int_equal(weft_checkpoint(k), -EBUSY);
	assert_int_equal(weft_checkpoint_restore(k), 0); /* to the point before anything was deferred */
	assert_int_equal(weft_checkpoint(k), 0);
	run_until_it_waits(k);
	weft_delete(k);
	assert_ptr_equal(places_of_some(), before);
}

static void *runs_inside(void *unused)
{
	return weft_run(&marking, NULL, runs_waiting, unused);
}

static void going_back_from_inside(void **state)
{
	const weft_attr_t copied = {.policy = WEFT_COPY};
	const void *before = places_of_some();
	weft_coro_t *k = weft_create_with(runs_inside, NULL, &copied);

	(void)state;
	assert_int_equal(weft_checkpoint(k), 0);
	run_until_it_waits(k);
	assert_int_equal(weft_checkpoint_restore(k), 0);
	assert_ptr_equal(places_of_some(), before);
	weft_delete(k);
}

/* ---- misuse ------------------------------------------------------------------------------------------------------ */

CASE(outside_of_a_clause, "weft: weft_on_answer: called outside of a tail clause, which it has to be part of")
{
	on_mark(NULL, 1);
}

CASE(under_a_loop,
     "weft: handler \"marking\": weft_on_answer under weft_resume_under, which returns requests and no answer: "
     "run the body by weft_run")
{
	weft_resume_under(weft_create(marks_123, NULL), NULL, &marking, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(newest_first),
	    T(inner_runs_have_their_own),
	    T(records_stay_until_they_are_done),
	    T(they_see_the_handlers_outside),
	    T(done_with_an_abort_clause_s_answer),
	    T(each_continue_has_its_own),
	    T(kept_ones_begin_anew),
	    T(each_branch_has_its_own),
	    T(a_million),
	    T(left_for_a_handler_further_out),
	    T(deleted_in_between),
	    T(deleted_from_outside),
	    T(done_without_an_answer),
	    T(ended_by_the_runtime),
	    T(left_by_a_copy),
	    T(in_what_is_deferred),
	    T(in_what_is_deferred_and_leaves),
	    T(no_copies_meanwhile),
	    T(going_back_from_inside),
	    C(outside_of_a_clause),
	    C(under_a_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
