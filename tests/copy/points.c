/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * points [TEST]: the promises of weft/copy.h about checkpoints, one test for each. Each test uses a coroutine that gets
 * its region exclusively, a coroutine that shares it, and a coroutine that keeps more state, which never gets it
 * exclusively.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unwind.h>

#include "copy.h"

WEFT_EFFECT(int, pick, int, choices);
WEFT_EFFECT(uint64_t, ask, uint64_t, x);

enum { ALONE, SHARING, SAVING, KINDS };

static int kind;
static weft_coro_t *neighbour;

static void *waits(void *argument)
{
	for (;;)
		weft_suspend(argument);
	return NULL;
}

/* Makes a coroutine of the kind under test, and, if it shares, a second coroutine in the same region. */
static weft_coro_t *make(weft_fn_t *fn, void *argument)
{
	weft_attr_t attr = {.policy = WEFT_COPY, .name = "searches", .flags = kind == SAVING ? WEFT_SAVE_FPU : 0};
	weft_coro_t *k = weft_create_with(fn, argument, &attr);

	REQUIRE(k);
	weft_delete(neighbour);
	neighbour = NULL;
	if (kind == SHARING) {
		neighbour = make_copied(waits, NULL, "neighbour");
		resume(neighbour, 0);
	}
	return k;
}

/* If the coroutine shares its region, moves its frames out. */
static void disturb(void)
{
	if (kind == SHARING)
		resume(neighbour, 0);
}

/* ---- searching ------------------------------------------------------------------------------------------------- */

static void *picks_three(void *argument)
{
	int first = pick(3), second = pick(first + 1), third = second ? pick(4) : 0;

	return (char *)argument + 100 * first + 10 * second + third;
}

/* Resumes it from its suspension once for each choice. `reply` while other coroutines may have run. */
static uint64_t sum_of_all(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(pick));
	uint64_t sum = 0;
	int choices;

	if (weft_returned(r))
		return (uint64_t)r.payload;
	choices = weft_args(pick, r)->choices;
	REQUIRE(!weft_checkpoint(k));
	for (int i = 0; i < choices; i++) {
		disturb();
		if (i)
			REQUIRE(!(i == choices - 1 ? weft_checkpoint_restore_last(k) : weft_checkpoint_restore(k)));
		else if (choices == 1)
			REQUIRE(!weft_checkpoint_drop(k));
		disturb();
		REQUIRE(weft_state(k) == WEFT_SUSPENDED && weft_coro_is_valid(k));
		REQUIRE(!weft_reply_to(k, pick, r, i));
		sum += sum_of_all(k);
	}
	return sum;
}

static uint64_t expected_sum(void)
{
	uint64_t sum = 0;

	for (int first = 0; first < 3; first++)
		for (int second = 0; second <= first; second++)
			for (int third = 0; third < (second ? 4 : 1); third++)
				sum += 1000 + 100 * first + 10 * second + third;
	return sum;
}

static void all_choices(void)
{
	weft_coro_t *k = make(picks_three, (void *)1000);

	for (int i = 0; i < 3; i++) {
		REQUIRE(sum_of_all(k) == expected_sum());
		REQUIRE(weft_checkpoint_restore(k) == -EINVAL &&
			weft_checkpoint_drop(k) == -EINVAL); /* all are used up */
		weft_reset(k, picks_three, (void *)1000);
	}
	weft_delete(k);
}

/* ---- one step at a time ---------------------------------------------------------------------------------------- */

static void *counts(void *argument)
{
	for (uintptr_t i = 1;; i++)
		if (weft_suspend((void *)i) == argument)
			return (void *)(i + 1000);
}

static uintptr_t go_on(weft_coro_t *k)
{
	return (uintptr_t)resume(k, 1).payload;
}

static void nested(void)
{
	weft_coro_t *k = make(counts, NULL);

	for (uintptr_t i = 1; i <= 5; i++) {
		REQUIRE(go_on(k) == i);
		REQUIRE(!weft_checkpoint(k));
		REQUIRE(!(k->flags & WEFT__SECLUDED) == (kind != ALONE));
	}
	for (uintptr_t i = 5; i >= 1; i--) {
		for (int again = 0; again < 3; again++) {
			disturb();
			REQUIRE(!weft_checkpoint_restore(k));
			REQUIRE(go_on(k) == i + 1 && go_on(k) == i + 2);
		}
		REQUIRE(i == 3 ? !weft_checkpoint_drop(k) : !weft_checkpoint_restore_last(k));
		REQUIRE(go_on(k) == (i == 3 ? i + 3 : i + 1));
	}
	REQUIRE(weft_checkpoint_restore(k) == -EINVAL);
	weft_delete(k);
}

/* Back from the end, and to before the beginning. */
static void ends(void)
{
	weft_coro_t *k = make(counts, NULL);

	REQUIRE(!weft_checkpoint(k));
	for (int i = 0; i < 3; i++) {
		REQUIRE(go_on(k) == 1 && go_on(k) == 2);
		REQUIRE(!weft_checkpoint(k));
		disturb();
		REQUIRE(weft_returned(resume(k, 0)) && weft_state(k) == WEFT_FINISHED);
		REQUIRE(weft_checkpoint(k) == -EINVAL);
		disturb();
		REQUIRE(!weft_checkpoint_restore_last(k) && go_on(k) == 3);
		REQUIRE(!weft_checkpoint_restore(k));
		REQUIRE(!weft_checkpoint_restore(k)); /* it has not run in between */
	}
	REQUIRE(!weft_checkpoint_restore_last(k) && go_on(k) == 1);
	weft_delete(k);
}

static void *looks_at_itself(void *argument)
{
	weft_coro_t *k = weft_current();

	weft_suspend(argument);
	REQUIRE(weft_checkpoint(k) == -EBUSY && weft_checkpoint_restore(k) == -EBUSY &&
		weft_checkpoint_restore_last(k) == -EBUSY);
	REQUIRE(!weft_checkpoint_drop(k) && weft_checkpoint_drop(k) == -EINVAL &&
		weft_checkpoint_restore(k) == -EINVAL);
	return argument;
}

static void refusals(void)
{
	weft_attr_t other = {.policy = WEFT_OVERCOMMIT};
	weft_coro_t *k = weft_create_with(counts, NULL, &other);

	REQUIRE(weft_checkpoint(k) == -ENOTSUP && weft_checkpoint_restore(k) == -ENOTSUP &&
		weft_checkpoint_drop(k) == -ENOTSUP);
	weft_delete(k);
	REQUIRE(weft_checkpoint(k) == -EINVAL && weft_checkpoint_restore(k) == -EINVAL &&
		weft_checkpoint_drop(k) == -EINVAL);
	k = make(looks_at_itself, NULL);
	REQUIRE(weft_checkpoint_restore(k) == -EINVAL && weft_checkpoint_drop(k) == -EINVAL);
	resume(k, 0);
	REQUIRE(!weft_checkpoint(k));
	REQUIRE(weft_returned(resume(k, 0)));
	weft_delete(k);
	REQUIRE(weft_checkpoint(k) == -EINVAL && weft_checkpoint_restore(k) == -EINVAL &&
		weft_checkpoint_drop(k) == -EINVAL);
}

/* ---- coroutines inside ----------------------------------------------------------------------------------------- */

static void *asks(void *argument)
{
	return (void *)ask((uint64_t)argument);
}

static weft_ref_t inner_ref;

static void *runs_inner(void *argument)
{
	weft_coro_t *k;
	weft_request_t r;
	uint64_t sum = 0;

	for (uint64_t i = 0; i < 3; i++) {
		weft_suspend(NULL);
		k = make_copied(asks, argument, "inner");
		inner_ref = weft_ref(k);
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		REQUIRE(weft_returned(r));
		sum += (uint64_t)r.payload;
		weft_delete(k);
	}
	return (void *)sum;
}

static void inside(void)
{
	weft_coro_t *k = make(runs_inner, (void *)5);
	weft_request_t r;

	resume(k, 0);
	for (int i = 0; i < 3; i++) {
		REQUIRE(!weft_checkpoint(k));
		for (int again = 0; again < 4; again++) {
			r = weft_resume(k, NULL, weft_handles(ask));
			REQUIRE(weft_is(ask, r) && weft_deref(inner_ref));
			REQUIRE(weft_checkpoint(k) == -EBUSY);
			disturb();
			REQUIRE(!weft_checkpoint_restore(k));
			REQUIRE(!weft_deref(inner_ref));
			if (again % 2)
				disturb();
		}
		r = weft_resume(k, NULL, weft_handles(ask));
		REQUIRE(!weft_reply_to(k, ask, r, 7));
		REQUIRE(weft_returned(weft_resume(k, NULL, weft_handles(ask))) == (i == 2));
	}
	REQUIRE(!weft_checkpoint_restore_last(k) && weft_is(ask, weft_resume(k, NULL, weft_handles(ask))));
	weft_delete(k);
}

static void *leaves_through(void *outer)
{
	weft_exit(outer, &weft_suspended, NULL);
}

static void *is_left(void *argument)
{
	weft_suspend(NULL);
	weft_resume(make_copied(leaves_through, weft_current(), NULL), NULL, WEFT_HANDLE_NONE);
	return argument;
}

/* The coroutine ended by an exit from below, which leaves coroutines without an owner behind. */
static void left(void)
{
	weft_coro_t *k = make(is_left, NULL);

	resume(k, 0);
	REQUIRE(!weft_checkpoint(k));
	for (int i = 0; i < 10; i++) {
		REQUIRE(resume(k, 0).effect == &weft_suspended && weft_state(k) == WEFT_FINISHED);
		disturb();
		REQUIRE(!weft_checkpoint_restore(k));
	}
	weft_delete(k);
}

/* A coroutine of the region, which runs on this thread, restores the region's second coroutine. */
static void *turns_back(void *k)
{
	REQUIRE(!weft_checkpoint_restore(k));
	weft_suspend(NULL);
	return NULL;
}

static void turned_back_inside(void)
{
	weft_coro_t *k = make(counts, NULL), *other = make_copied(turns_back, k, NULL);

	REQUIRE(go_on(k) == 1 && go_on(k) == 2 && !weft_checkpoint(k) && go_on(k) == 3);
	resume(other, 0);
	REQUIRE(go_on(k) == 3);
	resume(other, 0);
	REQUIRE(!weft_checkpoint_restore(k) && go_on(k) == 3 && go_on(k) == 4);
	weft_delete(other);
	weft_delete(k);
}

/* ---- together with clones -------------------------------------------------------------------------------------- */

static void clones(void)
{
	weft_coro_t *k = make(counts, NULL), *c, *d = make_copied(counts, NULL, NULL);

	REQUIRE(go_on(k) == 1 && !weft_checkpoint(k) && go_on(k) == 2 && !weft_checkpoint(k) && go_on(k) == 3);
	REQUIRE(c = weft_clone(k));
	REQUIRE(weft_checkpoint_restore(c) == -EINVAL);
	REQUIRE(go_on(c) == 4 && go_on(k) == 4 && !weft_checkpoint(c));
	REQUIRE(!weft_checkpoint_restore(k) && go_on(k) == 3 && go_on(c) == 5 && !weft_checkpoint_restore(c) &&
		go_on(c) == 5);
	if (kind != SAVING) {
		REQUIRE(!weft_clone_into(d, k) && go_on(d) == 4);
		REQUIRE(!weft_checkpoint(d) && !weft_clone_into(d, c));
		REQUIRE(weft_checkpoint_restore(d) == -EINVAL && go_on(d) == 6);
	}
	weft_delete(c);
	weft_delete(d);
	/* Alone again. */
	REQUIRE(!weft_checkpoint(k) && go_on(k) == 4 && !weft_checkpoint_restore_last(k) &&
		!weft_checkpoint_restore_last(k));
	REQUIRE(go_on(k) == 3 && !weft_checkpoint_restore_last(k) && go_on(k) == 2);
	weft_delete(k);
}

static void bounds(void)
{
	weft_coro_t *k = make(asks, (void *)1);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ask));
	char buffer[4096];

	REQUIRE(!weft_checkpoint(k) && !weft_trim(k));
	REQUIRE(weft_on_stack(k, r.payload) && weft_stack_usable(k) > 500000);
	REQUIRE(weft_peek(k, r.payload, buffer, sizeof buffer) == -EINVAL);
	REQUIRE(weft_peek(k, (char *)r.payload - 4096, buffer, 1) == -EINVAL);
	disturb();
	REQUIRE(!weft_reply_to(k, ask, r, 9) && resume(k, 0).payload == (void *)9);
	weft_delete(k);
}

/* ---- much of it ------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) uint64_t sink(uint64_t depth)
{
	volatile char frame[200];
	uint64_t below;

	frame[0] = frame[199] = (char)depth;
	if (depth % 100 == 0)
		weft_suspend((void *)depth);
	below = depth < 2400 ? sink(depth + 1) : 0;
	return below + (uint64_t)(frame[0] == (char)depth && frame[199] == (char)depth);
}

static void *sinks(void *argument)
{
	(void)argument;
	return (void *)sink(0);
}

/* Checkpoints of up to a megabyte, thirty megabytes in all. */
static void large(void)
{
	weft_coro_t *k = make(sinks, NULL);

	for (uint64_t depth = 0; depth <= 2400; depth += 100)
		REQUIRE((uint64_t)resume(k, 0).payload == depth && !weft_checkpoint(k));
	for (uint64_t depth = 2400;; depth -= 100) {
		disturb();
		REQUIRE(!weft_checkpoint_restore_last(k));
		if (depth < 2400)
			REQUIRE((uint64_t)resume(k, 0).payload == depth + 100);
		if (!depth)
			break;
	}
	for (uint64_t depth = 200; depth <= 2400; depth += 100)
		REQUIRE((uint64_t)resume(k, 0).payload == depth);
	REQUIRE(resume(k, 0).payload == (void *)2401);
	weft_delete(k);
}

/* Deleted with checkpoints: nothing is kept that grows. */
static void pending(void)
{
	weft_stack_stats_t before, after;

	for (int round = 0; round < 200; round++) {
		weft_coro_t *k = make(counts, NULL);

		for (uintptr_t i = 1; i < 200; i++)
			REQUIRE(go_on(k) == i && !weft_checkpoint(k));
		if (round % 2)
			weft_reset(k, counts, NULL);
		weft_delete(k);
		weft_stack_stats(WEFT_COPY, round < 10 ? &before : &after);
	}
	REQUIRE(after.reserved == before.reserved);
}

/* ---- threads --------------------------------------------------------------------------------------------------- */

static void *begins(void *k)
{
	REQUIRE(go_on(k) == 1 && go_on(k) == 2 && !weft_checkpoint(k) && go_on(k) == 3);
	return NULL;
}

static void *keeps_switching(void *stop)
{
	weft_coro_t *k[2] = {make_copied(counts, NULL, NULL), make_copied(counts, NULL, NULL)};

	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		for (int i = 0; i < 2; i++)
			resume(k[i], 1);
	for (int i = 0; i < 2; i++)
		weft_delete(k[i]);
	return NULL;
}

/* Begun by a thread that has ended, in a region that other threads use. */
static void other_threads(void)
{
	pthread_t thread, busy;
	int stop = 0;

	REQUIRE(!pthread_create(&busy, NULL, keeps_switching, &stop));
	for (int i = 0; i < 50; i++) {
		weft_coro_t *k = make(counts, NULL), *other = make_copied(counts, NULL, NULL);

		REQUIRE(!pthread_create(&thread, NULL, begins, k));
		pthread_join(thread, NULL);
		REQUIRE(go_on(other) == 1);
		for (int again = 0; again < 10; again++) {
			disturb();
			REQUIRE(!weft_checkpoint_restore(k) && go_on(k) == 3 && go_on(other) == 2 + (uintptr_t)again);
		}
		if (i % 2) {
			weft_coro_t *c = weft_clone(k);

			REQUIRE(c && go_on(c) == 4);
			weft_delete(c);
		}
		REQUIRE(!weft_checkpoint_restore_last(k) && go_on(k) == 3);
		weft_delete(other);
		weft_delete(k);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(busy, NULL);
}

/* Suspends twice, then runs until `told` is set. */
static void *stays(void *told)
{
	weft_suspend(NULL);
	weft_suspend(NULL);
	__atomic_store_n((int *)told, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n((int *)told, __ATOMIC_ACQUIRE) == 1)
		sched_yield();
	return told;
}

static void *ends_it(void *k)
{
	REQUIRE(weft_returned(resume(k, 0)));
	return NULL;
}

/* Restored to the state before its first resume, it has no frames, neither where another thread runs nor elsewhere. It
 * has clones. */
static void at_the_start(void)
{
	int told = 0;
	weft_coro_t *k = make(stays, &told), *runs, *c;
	pthread_t thread;

	REQUIRE(!weft_checkpoint(k) && !weft_returned(resume(k, 0)));
	runs = weft_clone(k);
	REQUIRE(runs && !weft_returned(resume(runs, 0)) && !weft_checkpoint_restore(k));
	REQUIRE(!pthread_create(&thread, NULL, ends_it, runs));
	while (!__atomic_load_n(&told, __ATOMIC_ACQUIRE))
		sched_yield();
	c = weft_clone(k);
	__atomic_store_n(&told, 2, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	REQUIRE(c && !weft_returned(resume(c, 0)) && !weft_returned(resume(k, 0)));
	weft_delete(runs);
	weft_delete(c);
	weft_delete(k);
}

static void *exits_thread(void *argument)
{
	weft_suspend(NULL);
	pthread_exit(argument);
}

static void note(void *seen)
{
	*(int *)seen = 1;
}

static __attribute__((noinline)) void resume_and_clean(weft_coro_t *k, int *seen)
{
	pthread_cleanup_push(note, seen);
	resume(k, 0);
	pthread_cleanup_pop(0);
}

static void *unwound(void *seen)
{
	weft_coro_t *k = make(exits_thread, seen);

	resume(k, 0);
	REQUIRE(!weft_checkpoint(k));
	resume_and_clean(k, seen);
	return NULL;
}

/* The unwinding of the thread's end passes through the coroutine. */
static void unwinding(void)
{
	pthread_t thread;
	void *result;
	int seen = 0;

	REQUIRE(!pthread_create(&thread, NULL, unwound, &seen));
	pthread_join(thread, &result);
	REQUIRE(seen && result == &seen);
}

static bool seen_first, seen_second;
static __attribute__((noinline)) void resume_first(weft_coro_t *k);
static __attribute__((noinline)) void resume_second(weft_coro_t *k);

static _Unwind_Reason_Code visit(struct _Unwind_Context *context, void *unused)
{
	void *function = _Unwind_FindEnclosingFunction((void *)_Unwind_GetIP(context));

	(void)unused;
	seen_first |= function == (void *)resume_first;
	seen_second |= function == (void *)resume_second;
	return _URC_NO_REASON;
}

static void *looks_up(void *argument)
{
	for (;;) {
		seen_first = seen_second = false;
		_Unwind_Backtrace(visit, NULL);
		weft_suspend(argument);
	}
	return NULL;
}

/* Inlined, so that it resumes from here, and not from a function that both callers share. */
static void resume_first(weft_coro_t *k)
{
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(seen_first && !seen_second);
}

static void resume_second(weft_coro_t *k)
{
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(seen_second && !seen_first);
}

/* Debuggers find its current resumer, independent of earlier resumers. */
static void backtraces(void)
{
	weft_coro_t *k = make(looks_up, NULL);

	resume_first(k);
	REQUIRE(!weft_checkpoint(k));
	resume_second(k);
	disturb();
	REQUIRE(!weft_checkpoint_restore(k));
	resume_second(k);
	resume_first(k);
	REQUIRE(!weft_checkpoint_restore_last(k));
	resume_first(k);
	weft_delete(k);
}

static const struct {
	const char *name;
	void (*run)(void);
} tests[] = {{"all_choices", all_choices},
	     {"nested", nested},
	     {"ends", ends},
	     {"refusals", refusals},
	     {"inside", inside},
	     {"left", left},
	     {"turned_back_inside", turned_back_inside},
	     {"clones", clones},
	     {"bounds", bounds},
	     {"large", large},
	     {"pending", pending},
	     {"other_threads", other_threads},
	     {"at_the_start", at_the_start},
	     {"unwinding", unwinding},
	     {"backtraces", backtraces}};

int main(int count, char **arguments)
{
	int run = 0;

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		for (kind = 0; kind < KINDS; kind++)
			if (count < 2 || !strcmp(arguments[1], tests[i].name)) {
				tests[i].run();
				run++;
			}
	return run ? 0 : 2;
}
