/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Broken rules: each ends the process by SIGABRT with one line that names the remedy. The first coroutine is #1. */
#include "unit.h"

WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, tell, int, x);
WEFT_FAMILY(state, (int, get));
WEFT_EXCEPTION(oops, int, code);

static const weft_attr_t named = {.name = "worker"};
static weft_coro_t *the;

static void *once(void *argument)
{
	return argument;
}

static weft_coro_t *worker(weft_fn_t *fn)
{
	return the = weft_create_with(fn, NULL, &named);
}

static void resume(weft_coro_t *k)
{
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
}

/* ---- resuming ---------------------------------------------------------------------------------------------------- */

CASE(resume_finished, "weft: cannot resume coroutine \"worker\" (#1): it is finished; weft_reset starts it over")
{
	worker(once);
	resume(the);
	resume(the);
}

static void *resumes_itself(void *argument)
{
	resume(the);
	return argument;
}

CASE(resume_running,
     "weft: cannot resume coroutine \"worker\" (#1): it is running; only a suspended one can be resumed")
{
	resume(worker(resumes_itself));
}

static void *resumes_parent(void *argument)
{
	weft_coro_t *k = weft_create(resumes_itself, argument);

	resume(k);
	return argument;
}

CASE(resume_parent, "weft: cannot resume coroutine \"worker\" (#1): it is running; only a suspended one can be resumed")
{
	resume(worker(resumes_parent));
}

CASE(resume_deleted,
     "weft: cannot resume coroutine \"worker\" (#0): it was deleted, or never made; keep a weft_ref_t to notice")
{
	weft_delete(worker(once));
	resume(the);
}

CASE(resume_released,
     "weft: cannot resume coroutine \"worker\" (#0): it was deleted, or never made; keep a weft_ref_t to notice")
{
	static weft_coro_t k;

	if (weft_init(&k, once, NULL, &named))
		_exit(1);
	weft_release(&k);
	resume(&k);
}

static void *switches_to(void *argument)
{
	weft_switch(the, NULL);
	return argument;
}

CASE(switch_to_finished, "weft: cannot resume coroutine \"worker\" (#1): it is finished; weft_reset starts it over")
{
	resume(worker(once));
	resume(weft_create(switches_to, NULL));
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

static void *deletes_itself(void *argument)
{
	weft_delete(the);
	return argument;
}

CASE(delete_running, "weft: cannot delete coroutine \"worker\" (#1): it is running; let it yield or exit first")
{
	resume(worker(deletes_itself));
}

static void *resets_itself(void *argument)
{
	weft_reset(the, once, NULL);
	return argument;
}

CASE(reset_running, "weft: cannot reset coroutine \"worker\" (#1): it is running; let it yield or exit first")
{
	resume(worker(resets_itself));
}

CASE(delete_deleted, "weft: cannot delete coroutine \"worker\" (#0): it was deleted before, or never made")
{
	weft_delete(worker(once));
	weft_delete(the);
}

CASE(reset_deleted, "weft: cannot reset coroutine \"worker\" (#0): it was deleted before, or never made")
{
	weft_delete(worker(once));
	weft_reset(the, once, NULL);
}

CASE(delete_embedded, "weft: cannot delete coroutine \"worker\" (#1): it was made by weft_init; use weft_release")
{
	static weft_coro_t k;

	if (weft_init(&k, once, NULL, &named))
		_exit(1);
	weft_delete(&k);
}

static void *releases_itself(void *argument)
{
	weft_release(argument);
	return argument;
}

CASE(release_running, "weft: cannot release coroutine \"worker\" (#1): it is running; let it yield or exit first")
{
	static weft_coro_t k;

	if (weft_init(&k, releases_itself, &k, &named))
		_exit(1);
	resume(&k);
}

/* ---- effects ----------------------------------------------------------------------------------------------------- */

static void *asks(void *argument)
{
	ask();
	return argument;
}

#define OR_ELSE ", run it under a handler, or set a default handler with weft_set_default"

CASE(unhandled, "weft: unhandled effect \"ask\" in coroutine \"worker\" (#1): resume with weft_handles(ask)" OR_ELSE)
{
	weft_resume(worker(asks), NULL, weft_handles(tell, state));
}

CASE(unhandled_outside,
     "weft: unhandled effect \"ask\" outside of any coroutine: resume with weft_handles(ask)" OR_ELSE)
{
	ask();
}

CASE(unhandled_exception,
     "weft: unhandled effect \"oops\" outside of any coroutine: resume with weft_handles(oops)" OR_ELSE)
{
	oops(1);
}

static void returns(int code)
{
	(void)code;
}

CASE(default_returned,
     "weft: the default handler of exception \"oops\" returned: it must end the program, or the exception be handled")
{
	__typeof__(&oops) handler = (__typeof__(&oops))returns; /* its type claims not to return */

	weft_set_default(oops, handler);
	oops(1);
}

CASE(wrong_request, "weft: request \"ask\" taken for \"tell\": ask weft_is first")
{
	weft_request_t r = weft_resume(worker(asks), NULL, weft_handles(ask));

	weft_reply(tell, r, 1);
}

CASE(wrong_return, "weft: request \"return\" taken for \"ask\": ask weft_is first")
{
	weft_request_t r = weft_resume(worker(once), NULL, weft_handles(ask));

	(void)weft_args(ask, r);
}

/* ---- suspending -------------------------------------------------------------------------------------------------- */

CASE(suspend_outside, "weft: weft_suspend called outside of any coroutine: only code that weft_resume runs can call it")
{
	weft_suspend(NULL);
}

CASE(suspend_outside_attached,
     "weft: weft_suspend called outside of any coroutine: only code that weft_resume runs can call it")
{
	resume(worker(once));
	weft_suspend(NULL);
}

static int suspending_ask(void *state)
{
	weft_suspend(state);
	return 0;
}

WEFT_HANDLER(suspending, weft_tail(ask, suspending_ask));

static void *asks_far(void *argument)
{
	return (char *)argument + ask();
}

static void *resumes_worker(void *argument)
{
	resume(worker(asks_far));
	return argument;
}

CASE(suspend_in_far_clause,
     "weft: cannot suspend coroutine \"worker\" (#2): it executes a tail clause of a handler further out than its "
     "resumer; make that a general clause, or suspend outside of it")
{
	weft_run(&suspending, NULL, resumes_worker, NULL);
}

CASE(switch_outside, "weft: weft_switch called outside of any coroutine: only code that weft_resume runs can call it")
{
	weft_switch(worker(once), NULL);
}

CASE(switch_from_outside,
     "weft: weft_switch called outside of any coroutine: only code that weft_resume runs can call it")
{
	weft_coro_t *self = weft_current();

	weft_switch_from(&self, worker(once), NULL);
}

static void *exits_other(void *argument)
{
	weft_exit(the, &weft_suspended, argument);
}

CASE(exit_other, "weft: cannot suspend or leave coroutine \"worker\" (#1): the current code does not run inside it; "
		 "pass weft_current() or "
		 "an ancestor of it")
{
	worker(once);
	resume(weft_create(exits_other, NULL));
}

CASE(exit_outside, "weft: cannot suspend or leave coroutine \"worker\" (#1): the current code does not run inside it; "
		   "pass weft_current() or "
		   "an ancestor of it")
{
	worker(once);
	weft_exit(the, &weft_suspended, NULL);
}

#if WEFT_DEBUG
static void *yields_to_other(void *argument)
{
	weft_yield(the, &weft_suspended, argument);
	return argument;
}

CASE(yield_to_other,
     "weft: cannot suspend or leave coroutine \"worker\" (#1): the current code does not run inside it; pass "
     "weft_current() or an ancestor of it")
{
	worker(once);
	resume(weft_create(yields_to_other, NULL));
}

static int yielding_ask(void *state)
{
	weft_yield(the, &weft_suspended, state);
	return 0;
}

WEFT_HANDLER(yielding, weft_tail(ask, yielding_ask));

/* `the` is the current coroutine, or its resumer. */
static void *asks_further_in(void *argument)
{
	if (!argument)
		the = weft_current();
	return (char *)argument + ask();
}

static void *resumes_asking(void *argument)
{
	the = weft_current();
	resume(weft_create(asks_further_in, argument));
	return argument;
}

CASE(yield_in_far_clause,
     "weft: cannot suspend coroutine #2: it executes a tail clause of a handler further out than its "
     "resumer; make that a general clause, or suspend outside of it")
{
	weft_run(&yielding, NULL, resumes_asking, NULL);
}

static void *runs_asking(void *argument)
{
	weft_coro_t *k = weft_create(resumes_asking, argument);

	resume(k);
	return argument;
}

CASE(yield_in_between, "weft: cannot suspend coroutine #2: it executes a tail clause of a handler further out than its "
		       "resumer; make that a general clause, or suspend outside of it")
{
	weft_run(&yielding, NULL, runs_asking, &the);
}

static void *performs_at_other(void *argument)
{
	weft_perform_at(ask, the);
	return argument;
}

static void *switches_from_other(void *argument)
{
	weft_switch_from(&the, argument, NULL);
	return argument;
}

CASE(switch_from_other,
     "weft: cannot switch from coroutine \"worker\" (#1): it is not the current coroutine; pass what "
     "weft_current() said in this function")
{
	worker(once);
	resume(weft_create(switches_from_other, weft_create(once, NULL)));
}

CASE(perform_at_other,
     "weft: cannot suspend or leave coroutine \"worker\" (#1): the current code does not run inside it; pass "
     "weft_current() or an ancestor of it")
{
	worker(once);
	resume(weft_create(performs_at_other, NULL));
}

static int answers(void *state)
{
	return *(int *)state;
}

WEFT_HANDLER(answering, weft_tail(ask, answers));

static void *locates(void *argument)
{
	the = weft_locate(ask);
	return argument;
}

static void *performs_at_ended(void *argument)
{
	weft_run(&answering, NULL, locates, NULL);
	return performs_at_other(argument);
}

CASE(perform_at_ended, "weft: cannot suspend or leave coroutine #0: the current code does not run inside it; pass "
		       "weft_current() or an ancestor of it")
{
	weft_run(&answering, NULL, performs_at_ended, NULL);
}

static void *locates_and_waits(void *argument)
{
	weft_suspend(locates(argument));
	return performs_at_other(argument);
}

CASE(perform_at_moved, "weft: cannot perform \"ask\" at coroutine \"worker\" (#1): its resumer does not handle the "
		       "effect; call weft_locate after each suspension")
{
	weft_resume(worker(locates_and_waits), NULL, weft_handles(ask));
	resume(the);
}

static void *performs_at_nothing(void *argument)
{
	the = NULL;
	return performs_at_other(argument);
}

CASE(perform_at_nothing,
     "weft: unhandled effect \"ask\" in coroutine \"worker\" (#1): resume with weft_handles(ask)" OR_ELSE)
{
	resume(worker(performs_at_nothing));
}
#endif

/* A name that is too long for the line is cut, and the line still ends. */
static void long_name(void)
{
	static char name[1000];
	weft_attr_t attr = {.name = name};

	memset(name, 'x', sizeof name - 1);
	the = weft_create_with(once, NULL, &attr);
	resume(the);
	resume(the);
}

static void test_long_name(void **state)
{
	struct outcome o = in_child(long_name);

	(void)state;
	assert_int_equal(o.signal, SIGABRT);
	assert_int_equal(strncmp(o.text, "weft: cannot resume coroutine \"xxxx", 35), 0);
	assert_ptr_equal(strchr(o.text, '\n'), o.text + strlen(o.text) - 1);
}

/* Never created: zero bytes. */
CASE(resume_zeros, "weft: cannot resume coroutine #0: it was deleted, or never made; keep a weft_ref_t to notice")
{
	weft_delete(weft_create(once, NULL));
	the = weft_create(once, NULL);
	weft_delete(the);
	weft_stack_trim();
	resume(the);
}

CASE(resume_never_made, "weft: cannot resume coroutine #0: it was never made; call weft_init first, and look at "
			"what it returns")
{
	static weft_coro_t k;

	resume(&k);
}

static void *switches_to_zeros(void *argument)
{
	static weft_coro_t k;

	weft_switch(&k, NULL);
	return argument;
}

CASE(switch_to_never_made, "weft: cannot resume coroutine #0: it was never made; call weft_init first, and look "
			   "at what it returns")
{
	resume(weft_create(switches_to_zeros, NULL));
}

#if WEFT_DEBUG
CASE(resume_null,
     "weft: weft_resume(NULL): there is no coroutine; weft_create returns NULL when it fails, and errno says why")
{
	resume(NULL);
}
#endif

#if WEFT_DEBUG
static void *switches_to_null(void *argument)
{
	weft_switch(NULL, argument);
	return argument;
}

CASE(switch_to_null,
     "weft: weft_switch(NULL): there is no coroutine; weft_create returns NULL when it fails, and errno says why")
{
	resume(weft_create(switches_to_null, NULL));
}
#endif

/* Functions of coro.h and copy.h that examine the coroutine. */
#define NULL_CASE(function, call)                                                                                      \
	CASE(function##_of_null,                                                                                       \
	     "weft: weft_" #function                                                                                   \
	     "(NULL): there is no coroutine; weft_create returns NULL when it fails, and errno says why")              \
	{                                                                                                              \
		weft_coro_t *k = NULL;                                                                                 \
		char bytes[8];                                                                                         \
		void *place;                                                                                           \
                                                                                                                       \
		(void)bytes, (void)place;                                                                              \
		__asm__("" : "+r"(k));                                                                                 \
		(void)call;                                                                                            \
	}

NULL_CASE(reset, (weft_reset(k, once, NULL), 0))
NULL_CASE(release, (weft_release(k), 0))
NULL_CASE(init, weft_init(k, once, NULL, NULL))
NULL_CASE(reserve, weft_reserve(k, 8))
NULL_CASE(trim, weft_trim(k))
NULL_CASE(parent, weft_parent(k))
NULL_CASE(name, weft_name(k))
NULL_CASE(policy, weft_policy(k))
NULL_CASE(stack_usable, weft_stack_usable(k))
NULL_CASE(on_stack, weft_on_stack(k, &k))
NULL_CASE(backtrace, weft_backtrace(k, &place, 1))
NULL_CASE(clone, weft_clone(k))
NULL_CASE(clone_into, weft_clone_into(k, NULL))
NULL_CASE(checkpoint, weft_checkpoint(k))
NULL_CASE(checkpoint_restore, weft_checkpoint_restore(k))
NULL_CASE(checkpoint_restore_last, weft_checkpoint_restore_last(k))
NULL_CASE(checkpoint_drop, weft_checkpoint_drop(k))
NULL_CASE(peek, weft_peek(k, bytes, bytes, 1))
NULL_CASE(poke, weft_poke(k, bytes, bytes, 1))

CASE(exit_null, "weft: weft_exit or weft_yield(NULL): there is no coroutine; weft_create returns NULL when it fails, "
		"and errno says why")
{
	weft_exit(NULL, &weft_suspended, NULL);
}

#define NO_RESUMPTION                                                                                                  \
	"pass weft_continue, weft_keep or weft_drop the one that the clause got, or that weft_keep returned"

CASE(drop_null, "weft: a resumption is NULL: " NO_RESUMPTION)
{
	weft_drop(NULL);
}

CASE(keep_null, "weft: a resumption is NULL: " NO_RESUMPTION)
{
	(void)weft_keep(NULL);
}

/* ---- throwing into a suspended coroutine ------------------------------------------------------------------------- */

static void throw_into(weft_coro_t *k)
{
	weft_resume_throw(k, WEFT_HANDLE_NONE, oops, 1);
}

static void *waits(void *argument)
{
	return weft_suspend(argument);
}

static void *throws_into_itself(void *argument)
{
	throw_into(the);
	return argument;
}

CASE(throw_unhandled,
     "weft: unhandled effect \"oops\" in coroutine \"worker\" (#1): resume with weft_handles(oops), run it under a "
     "handler, or set a default handler with weft_set_default")
{
	resume(worker(waits));
	throw_into(the);
}

CASE(throw_before_begun, "weft: cannot throw into coroutine \"worker\" (#1): it has not begun, and waits nowhere yet; "
			 "resume it first, or delete it")
{
	throw_into(worker(waits));
}

CASE(throw_after_end, "weft: cannot resume coroutine \"worker\" (#1): it is finished; weft_reset starts it over")
{
	resume(worker(once));
	throw_into(the);
}

CASE(throw_while_running,
     "weft: cannot resume coroutine \"worker\" (#1): it is running; only a suspended one can be resumed")
{
	resume(worker(throws_into_itself));
}

CASE(throw_after_deletion,
     "weft: cannot resume coroutine \"worker\" (#0): it was deleted, or never made; keep a weft_ref_t to notice")
{
	resume(worker(waits));
	weft_delete(the);
	throw_into(the);
}

CASE(throw_null, "weft: weft_resume_throw(NULL): there is no coroutine; weft_create returns NULL when it fails, and "
		 "errno says why")
{
	throw_into(NULL);
}

CASE(throw_under_null,
     "weft: weft_resume_throw(NULL): there is no coroutine; weft_create returns NULL when it fails, and "
     "errno says why")
{
	weft_resume_throw_under(NULL, NULL, NULL, oops, 1);
}

/* ---- longjmp out of a coroutine ---------------------------------------------------------------------------------- */

#define JUMPED                                                                                                         \
	": longjmp left it, or its resumer, while it was running; leave a coroutine by weft_exit, an exception "       \
	"effect "                                                                                                      \
	"or a C++ exception"

static jmp_buf outside;

static void *jumps_out(void *argument)
{
	longjmp(outside, 1);
	return argument;
}

static void jump_out(void)
{
	worker(jumps_out);
	if (!setjmp(outside))
		resume(the);
}

CASE(resume_jumped_out_of, "weft: cannot resume coroutine \"worker\" (#1)" JUMPED)
{
	jump_out();
	resume(the);
}

CASE(delete_jumped_out_of, "weft: cannot delete coroutine \"worker\" (#1)" JUMPED)
{
	jump_out();
	weft_delete(the);
}

CASE(reset_jumped_out_of, "weft: cannot reset coroutine \"worker\" (#1)" JUMPED)
{
	jump_out();
	weft_reset(the, once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		C(resume_never_made),
		C(reset_of_null),
		C(release_of_null),
		C(init_of_null),
		C(reserve_of_null),
		C(trim_of_null),
		C(parent_of_null),
		C(name_of_null),
		C(policy_of_null),
		C(stack_usable_of_null),
		C(on_stack_of_null),
		C(backtrace_of_null),
		C(clone_of_null),
		C(clone_into_of_null),
		C(checkpoint_of_null),
		C(checkpoint_restore_of_null),
		C(checkpoint_restore_last_of_null),
		C(checkpoint_drop_of_null),
		C(peek_of_null),
		C(poke_of_null),
		C(exit_null),
		C(drop_null),
		C(keep_null),
		C(switch_to_never_made),
#if WEFT_DEBUG
		C(resume_null),
		C(switch_to_null),
#endif
		C(throw_null),
		C(throw_under_null),
		C(throw_unhandled),
		C(throw_before_begun),
		C(throw_after_end),
		C(throw_while_running),
		C(throw_after_deletion),
		C(resume_jumped_out_of),
		C(delete_jumped_out_of),
		C(reset_jumped_out_of),
		C(resume_finished),
		C(resume_running),
		C(resume_parent),
		C(resume_deleted),
		C(resume_released),
		C(switch_to_finished),
		C(delete_running),
		C(reset_running),
		C(delete_deleted),
		C(reset_deleted),
		C(delete_embedded),
		C(release_running),
		C(unhandled),
		C(unhandled_outside),
		C(unhandled_exception),
		C(default_returned),
		C(wrong_request),
		C(wrong_return),
		C(suspend_outside),
		C(suspend_outside_attached),
		C(suspend_in_far_clause),
		C(switch_outside),
		C(switch_from_outside),
		C(exit_other),
		C(exit_outside),
#if WEFT_DEBUG
		C(yield_to_other),
		C(yield_in_far_clause),
		C(yield_in_between),
		C(switch_from_other),
		C(perform_at_other),
		C(perform_at_ended),
		C(perform_at_moved),
		C(perform_at_nothing),
#endif
		C(long_name),
		C(resume_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
