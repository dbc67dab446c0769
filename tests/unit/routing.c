/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which handler answers after a performer has moved: a tail clause waits, its coroutine is resumed under another
 * handler, then the clause forwards the perform, generalizes it, or defers work until the answer.
 */
#include "unit.h"

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_EFFECT(int, flip);

/* The argument of the clauses. The two handlers have states of different types. */
struct number {
	int magic, value;
};
struct text {
	char letter, padding[15];
};
enum { MAGIC = 0x1a1a, WRONG_STATE = -999, GENERALIZED = 1000, REQUESTED = -1 };

static int number_of(void *state)
{
	const struct number *number = state;

	return number->magic == MAGIC ? number->value : WRONG_STATE;
}

static int letter_of(void *state)
{
	return ((const struct text *)state)->letter;
}

static int waits_and_forwards(void *state)
{
	if (number_of(state) == WRONG_STATE)
		return WRONG_STATE;
	weft_suspend(NULL);
	return weft_forward();
}

static int waits_and_generalizes(void *state)
{
	if (number_of(state) == WRONG_STATE)
		return WRONG_STATE;
	weft_suspend(NULL);
	return GENERALIZED + weft_escalate(get);
}

static int waits_twice_and_forwards(void *state)
{
	weft_suspend(NULL);
	return waits_and_forwards(state);
}

static void *add(void *state, void *answer, const int *unused)
{
	(void)unused;
	return (char *)answer + number_of(state);
}

static int waits_and_leaves(void *state)
{
	int unused = 0;

	weft_suspend(NULL);
	return number_of(state) + weft_on_answer(add, &unused);
}

static void *general_get(void *state, weft_resumption_t *k)
{
	return weft_tail_continue(get, k, number_of(state));
}

static void *aborting_get(void *state)
{
	return (void *)(intptr_t)number_of(state);
}

WEFT_HANDLER(forwarding, weft_tail(get, waits_and_forwards));
WEFT_HANDLER(forwarding_later, weft_tail(get, waits_twice_and_forwards));
WEFT_HANDLER(generalizing, weft_tail(get, waits_and_generalizes), weft_general(get, general_get));
WEFT_HANDLER(leaving, weft_tail(get, waits_and_leaves));
WEFT_HANDLER(numbers, weft_tail(get, number_of));
WEFT_HANDLER(general_numbers, weft_general(get, general_get));
WEFT_HANDLER(texts, weft_tail(get, letter_of));
WEFT_HANDLER(nothing_of_it, weft_tail(flip, letter_of));
WEFT_HANDLER(a_set, weft_requested(flip)); /* stands for weft_handles(flip) */
WEFT_HANDLER(aborting, weft_abort(get, aborting_get));

static struct number one = {MAGIC, 1}, two = {MAGIC, 2};
static struct text letters = {'a', ""};
static weft_label_t left = WEFT_LABEL(state, "left"), right = WEFT_LABEL(state, "right");

static void *gets(void *label)
{
	return (void *)(intptr_t)(label ? weft_perform_on(get, (const weft_label_t *)label) : get());
}

struct under {
	const weft_handler_t *handler;
	void *state;
};

static weft_coro_t *waits_under(const weft_handler_t *handler, weft_label_t *label)
{
	/* Under "copy" frames are bound to the nesting depth at which they began. */
	const weft_attr_t fixed = {.policy = WEFT_FIXED};
	weft_coro_t *k = weft_create_with(gets, label, &fixed);
	weft_request_t r = weft_resume_under(k, NULL, handler, &one);

	if (r.effect != &weft_suspended)
		abort();
	return k;
}

struct way {
	weft_coro_t *k;
	const struct under *outer; /* the outermost handler first; the last handler is the coroutine's own */
};

static weft_request_t resume_by(weft_coro_t *k, const struct under *u)
{
	return u->handler == &a_set ? weft_resume(k, NULL, weft_handles(flip))
				    : weft_resume_under(k, NULL, u->handler, u->state);
}

/* The outermost level is a run, the other levels are resumes. */
static void *go(void *argument)
{
	struct way way = *(struct way *)argument;
	const struct under *u = way.outer++;
	weft_coro_t *k = way.outer->handler ? weft_create(go, &way) : way.k;
	weft_request_t r = resume_by(k, u);

	if (k != way.k)
		weft_delete(k);
	return weft_returned(r) ? r.payload : (void *)(intptr_t)REQUESTED;
}

/* Resumes the coroutine under these handlers. Returns its result. */
static int goes_on(weft_coro_t *k, const struct under *outer)
{
	struct way way = {k, outer + 1};
	int result = (int)(intptr_t)weft_run(outer->handler, outer->state, go, &way);

	weft_delete(k);
	return result;
}
#define GOES_ON(k, ...) goes_on(k, (const struct under[]){__VA_ARGS__, {NULL, NULL}})

/* ---- weft_forward ------------------------------------------------------------------------------------------------ */

static void forwards_to_a_handler_like_its_new_one(void **state)
{
	(void)state;
	assert_int_equal(GOES_ON(waits_under(&forwarding, NULL), {&numbers, &two}, {&texts, &letters},
				 {&texts, &letters}),
			 'a');
	assert_int_equal(GOES_ON(waits_under(&forwarding, NULL), {&numbers, &two}, {&texts, &letters}), 2);
}

static void forwards_without_a_label_past_labels(void **state)
{
	const weft_handler_t labelled = weft_labelled(&texts, &left);

	(void)state;
	assert_int_equal(GOES_ON(waits_under(&forwarding, NULL), {&numbers, &two}, {&labelled, &letters},
				 {&labelled, &letters}),
			 2);
}

static void forwards_with_its_label(void **state)
{
	const weft_handler_t first = weft_labelled(&forwarding, &left), last = weft_labelled(&numbers, &left),
			     other = weft_labelled(&texts, &right);

	(void)state;
	assert_int_equal(GOES_ON(waits_under(&first, &left), {&last, &two}, {&texts, &letters}, {&other, &letters},
				 {&other, &letters}),
			 2);
	assert_int_equal(GOES_ON(waits_under(&first, &left), {&last, &two}, {&texts, &letters}, {&texts, &letters}), 2);
}

/* When the clause forwards, its table has been replaced by a different table at the same address. */
static void forwards_after_its_table_has_changed(void **state)
{
	static weft_handler_t table;
	weft_coro_t *k;

	(void)state;
	table = forwarding_later;
	k = waits_under(&table, NULL);
	assert_ptr_equal(weft_resume_under(k, NULL, &nothing_of_it, &letters).effect, &weft_suspended);
	table = texts;
	assert_int_equal(GOES_ON(k, {&numbers, &two}, {&table, &letters}, {&table, &letters}), 'a');
}

/* ---- weft_escalate --------------------------------------------------------------------------------------------- */

static void generalizes_to_its_new_handler(void **state)
{
	(void)state;
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&numbers, &one}, {&general_numbers, &two}),
			 REQUESTED);
}

/* The new resumer does not handle the effect. */
static void generalizes_past_who_does_not_handle_it(void **state)
{
	const weft_handler_t labelled = weft_labelled(&general_numbers, &left);

	(void)state;
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&general_numbers, &two}, {&a_set, NULL}),
			 GENERALIZED + 2);
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&general_numbers, &two},
				 {&nothing_of_it, &letters}),
			 GENERALIZED + 2);
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&numbers, &two}, {&a_set, NULL}), GENERALIZED + 2);
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&aborting, &two}, {&a_set, NULL}), 2);
	assert_int_equal(GOES_ON(waits_under(&generalizing, NULL), {&general_numbers, &two}, {&labelled, &one}),
			 GENERALIZED + 2);
}

/* Runs the handler under its label again, in a new run. */
static void generalizes_on_its_label(void **state)
{
	const weft_handler_t first = weft_labelled(&generalizing, &left), again = weft_labelled(&generalizing, &left);

	(void)state;
	assert_int_equal(GOES_ON(waits_under(&first, &left), {&numbers, &one}, {&again, &two}), REQUESTED);
}

CASE(generalizes_on_a_label_that_is_gone,
     "weft: weft_escalate of effect \"get\" in coroutine #1: the coroutine was resumed under another handler "
     "while it executed a tail clause for a label, and the label is not known any more: use weft_forward, or "
     "weft_perform_on in the clause")
{
	const weft_handler_t first = weft_labelled(&generalizing, &left),
			     other = weft_labelled(&general_numbers, &right);

	GOES_ON(waits_under(&first, &left), {&numbers, &one}, {&other, &two});
}

CASE(generalizes_to_nobody, "weft: unhandled effect \"get\" in coroutine #1: resume with weft_handles(get), run "
			    "it under a handler, or set "
			    "a default handler with weft_set_default")
{
	GOES_ON(waits_under(&generalizing, NULL), {&nothing_of_it, &letters}, {&a_set, NULL});
}

/* ---- the body's cleanups before an abort clause ------------------------------------------------------------- */

static char order[16];

static void note(const char *what)
{
	order[strlen(order) + 1] = 0;
	order[strlen(order)] = *what;
}

static int generalizes_at_once(void *state)
{
	(void)state;
	return weft_escalate(get);
}

static void *notes_abort(void *state)
{
	(void)state;
	note("a");
	return order;
}

static void *continues(void *state, weft_resumption_t *k)
{
	void *answer = weft_continue(flip, k, 1);

	(void)state;
	note("g");
	return answer;
}

static void *continues_twice(void *state, weft_resumption_t *k)
{
	(void)weft_continue(flip, k, 1);
	return continues(state, k);
}

static weft_resumption_t kept;

static void *keeps(void *state, weft_resumption_t *k)
{
	kept = weft_keep(k);
	return state;
}

#define GIVES_UP weft_tail(get, generalizes_at_once), weft_abort(get, notes_abort)
WEFT_HANDLER(gives_up, GIVES_UP);
WEFT_HANDLER(gives_up_continued, weft_general(flip, continues), GIVES_UP);
WEFT_HANDLER(gives_up_twice, weft_multi(flip, continues_twice), GIVES_UP);
WEFT_HANDLER(gives_up_kept, weft_general(flip, keeps), GIVES_UP);

static void *flips_and_gets(void *unused)
{
	flip();
	weft_defer(note, "d");
	get();
	return unused;
}

static void *gets_with_cleanup(void *unused)
{
	weft_defer(note, "d");
	get();
	return unused;
}

static void cleanups_come_before_an_abort_clause(void **state)
{
	weft_coro_t *k = weft_create(gets_with_cleanup, NULL);

	(void)state;
	order[0] = 0;
	assert_ptr_equal(weft_run(&gives_up, NULL, gets_with_cleanup, NULL), order);
	assert_string_equal(order, "da");
	order[0] = 0;
	assert_ptr_equal(weft_run(&gives_up_continued, NULL, flips_and_gets, NULL), order);
	assert_string_equal(order, "dag");
	order[0] = 0;
	assert_ptr_equal(weft_run(&gives_up_kept, order, flips_and_gets, NULL), order);
	assert_ptr_equal(weft_continue(flip, &kept, 1), order);
	assert_string_equal(order, "da");
	order[0] = 0;
	assert_true(weft_is(get, weft_resume_under(k, NULL, &gives_up, NULL)));
	assert_int_equal(weft_state(k), WEFT_FINISHED);
	assert_string_equal(order, "d");
	weft_delete(k);
}

static void cleanups_come_before_an_abort_clause_each_time(void **state)
{
	(void)state;
	order[0] = 0;
	assert_ptr_equal(weft_run(&gives_up_twice, NULL, flips_and_gets, NULL), order);
	assert_string_equal(order, "dadag");
}

/* ---- the handlers that cleanups see ------------------------------------------------------------------------------ */

WEFT_EFFECT(int, where);
WEFT_EFFECT(void, hold_on);
WEFT_EXCEPTION(leave_all);

static char seen[16];

static void look(const char *who)
{
	seen[strlen(seen) + 1] = 0;
	seen[strlen(seen)] = *who;
	seen[strlen(seen) + 1] = 0;
	seen[strlen(seen)] = (char)('0' + where());
}

static int on_where(void *state)
{
	return *(int *)state;
}

static void *on_leave_all(void *state)
{
	return state;
}

static void *on_hold_on(void *state, weft_resumption_t *k)
{
	kept = weft_keep(k);
	return state;
}

WEFT_HANDLER(inner_place, weft_tail(where, on_where));
WEFT_HANDLER(outer_place, weft_tail(where, on_where), weft_abort(leave_all, on_leave_all),
	     weft_general(hold_on, on_hold_on));
static int places[] = {1, 2, 3};

static void *inner_body(void *how)
{
	weft_defer(look, "i");
	if (how)
		((void (*)(void))how)();
	return NULL;
}

static void *outer_body(void *how)
{
	weft_defer(look, "o");
	return weft_run(&inner_place, &places[0], inner_body, how);
}

static void *drops(void *unused)
{
	weft_drop(&kept);
	return unused;
}

static void cleanups_see(void **state)
{
	const weft_attr_t fixed = {.policy = WEFT_FIXED};

	(void)state;
	seen[0] = 0;
	weft_run(&outer_place, &places[1], outer_body, NULL);
	assert_string_equal(seen, "i1o2");
	seen[0] = 0;
	weft_run(&outer_place, &places[1], outer_body, (void *)leave_all);
	assert_string_equal(seen, "i1o2");
	seen[0] = 0;
	weft_run(&outer_place, &places[1], outer_body, (void *)hold_on);
	weft_run_with(&outer_place, &places[2], drops, NULL, &fixed);
	assert_string_equal(seen, "i1o3");
}

/* ---- weft_on_answer ---------------------------------------------------------------------------------------------- */

static void *switches(void *to)
{
	return weft_switch(to, NULL);
}

/* The run that would get the answer has another handler's state. */
CASE(leaves_for_another_handler, "weft: weft_on_answer in coroutine #1: the coroutine was resumed under another "
				 "handler while it executed the tail "
				 "clause; call weft_on_answer before the clause suspends")
{
	weft_run(&texts, &letters, switches, waits_under(&leaving, NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    /* First, because their messages contain coroutine numbers. */
	    C(generalizes_on_a_label_that_is_gone),
	    C(generalizes_to_nobody),
	    C(leaves_for_another_handler),
	    T(forwards_to_a_handler_like_its_new_one),
	    T(forwards_without_a_label_past_labels),
	    T(forwards_with_its_label),
	    T(forwards_after_its_table_has_changed),
	    T(generalizes_to_its_new_handler),
	    T(generalizes_past_who_does_not_handle_it),
	    T(generalizes_on_its_label),
	    T(cleanups_come_before_an_abort_clause),
	    T(cleanups_come_before_an_abort_clause_each_time),
	    T(cleanups_see),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
