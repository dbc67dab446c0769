/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Faults: stacks that grow, budgets and reservations that end, and SIGSEGV and SIGBUS that do not concern Weft. Each
 * scenario is a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "scenario.h"

enum { KB = 1024, MB = 1024 * 1024 };

static void *once(void *argument)
{
	return argument;
}

static void *suspends(void *argument)
{
	weft_suspend(argument);
	return argument;
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

static void *many_depths(void *argument)
{
	for (size_t depth = 1 * KB; depth < 200 * KB; depth += 7 * KB) {
		use_stack(depth);
		weft_suspend(NULL);
	}
	return argument;
}

static void grows(void)
{
	weft_coro_t *k[10];

	for (int i = 0; i < 10; i++)
		k[i] = make_on(WEFT_COMMIT, 256 * KB, many_depths, NULL);
	for (int round = 0; round < 28; round++)
		for (int i = 0; i < 10; i++)
			REQUIRE(!weft_returned(resume(k[i])) || round == 27);
	REQUIRE(stats_of(WEFT_COMMIT).faults > 10 && stats_of(WEFT_COMMIT).failures == 0);
}

static void keeps_errno(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(200ul * KB));

	errno = 4321;
	resume(k);
	REQUIRE(errno == 4321);
}

/* The kernel writes to untouched memory: between the open part and the frame of the call. */
static void *reads_much(void *argument)
{
	char buffer[150 * KB];
	int fd = open("/dev/zero", O_RDONLY);
	ssize_t n = read(fd, buffer, sizeof buffer);

	REQUIRE(n == sizeof buffer);
	REQUIRE(buffer[0] == 0 && buffer[sizeof buffer - 1] == 0);
	close(fd);
	return argument;
}

static void system_call(void)
{
	for (int i = 0; i < 3; i++) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, reads_much, NULL);

		REQUIRE(weft_returned(resume(k)));
		weft_delete(k);
		weft_stack_trim(); /* the next coroutine finds it closed again */
	}
}

static void *carry_on(void *argument)
{
	REQUIRE(weft_returned(resume(argument)));
	return NULL;
}

/* A thread that has never made a coroutine runs one whose stack must grow. */
static void migrated(void)
{
	for (int i = 0; i < 5; i++) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(200ul * KB));
		pthread_t thread;

		REQUIRE(!pthread_create(&thread, NULL, carry_on, k));
		pthread_join(thread, NULL);
		weft_delete(k);
		weft_stack_trim();
	}
}

enum { GROWERS = 8 };

static void *grow_often(void *argument)
{
	for (size_t i = 0; i < 300; i++) {
		weft_coro_t *k =
		    make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)((i * 37 + (size_t)argument * 13) % 200 * KB));

		REQUIRE(weft_returned(resume(k)));
		weft_delete(k);
		if (i % 16 == 0)
			weft_stack_trim();
	}
	return NULL;
}

static void many_threads_grow(void)
{
	pthread_t thread[GROWERS];

	for (size_t i = 0; i < GROWERS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, grow_often, (void *)i));
	for (size_t i = 0; i < GROWERS; i++)
		pthread_join(thread[i], NULL);
	REQUIRE(stats_of(WEFT_COMMIT).live == 0 && stats_of(WEFT_COMMIT).failures == 0);
}

/* Several threads write into one unopened stack at once. */
static char *shared_low;
static atomic_int gate;

static void *writes_all_pages(void *argument)
{
	atomic_fetch_sub(&gate, 1);
	while (atomic_load(&gate))
		;
	for (size_t page = 0; page < 50; page++) {
		volatile char *at = shared_low + (49 - page) * 4096 + (size_t)argument;

		*at = (char)(*at + 1);
	}
	return NULL;
}

static void threads_share_a_stack(void)
{
	for (int round = 0; round < 50; round++) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, suspends, NULL);
		pthread_t thread[4];

		resume(k);
		shared_low = (char *)(((uintptr_t)k & ~(uintptr_t)4095) - 52 * 4096);
		REQUIRE(weft_on_stack(k, shared_low));
		atomic_store(&gate, 4);
		for (size_t i = 0; i < 4; i++)
			REQUIRE(!pthread_create(&thread[i], NULL, writes_all_pages, (void *)i));
		for (size_t i = 0; i < 4; i++)
			pthread_join(thread[i], NULL);
		for (size_t page = 0; page < 50; page++)
			for (size_t i = 0; i < 4; i++)
				REQUIRE(shared_low[page * 4096 + i] == 1);
		REQUIRE(weft_returned(resume(k)));
		weft_delete(k);
		weft_stack_trim();
	}
}

/* ---- budget and reservation spent -------------------------------------------------------------------------------- */

static void expect_failure(weft_coro_t *k, weft_request_t r, weft_failure_t why)
{
	REQUIRE(r.effect == &weft_failed);
	REQUIRE(r.payload == k);
	REQUIRE(weft_failure(k) == why);
	REQUIRE(weft_state(k) == WEFT_FINISHED);
	REQUIRE(!weft_current());
}

static void budget_spent(void)
{
	weft_coro_t *other = make_on(WEFT_COMMIT, 256 * KB, suspends, NULL);
	weft_coro_t *k = make_on(WEFT_COMMIT, 64 * MB, uses_stack, (void *)(60ul * MB));

	resume(other);
	weft_set_budget(stats_of(WEFT_COMMIT).committed + 4 * MB);
	expect_failure(k, resume(k), WEFT_BUDGET_SPENT);
	REQUIRE(stats_of(WEFT_COMMIT).failures == 1);
	REQUIRE(weft_returned(resume(other)));
	weft_delete(k);
	weft_stack_trim();
	k = make_on(WEFT_COMMIT, 64 * MB, uses_stack, (void *)(1ul * MB));
	REQUIRE(weft_returned(resume(k)));
}

static void reservation_spent(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 128 * KB, uses_stack, (void *)(1ul * MB));

	expect_failure(k, resume(k), WEFT_RESERVATION_SPENT);
	weft_reset(k, uses_stack, (void *)(64ul * KB));
	REQUIRE(weft_failure(k) == WEFT_NO_FAILURE);
	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
}

static void resumes_failed_reservation(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 128 * KB, uses_stack, (void *)(1ul * MB));

	resume(k);
	resume(k);
}

static void resumes_failed_budget(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 8 * MB, uses_stack, (void *)(6ul * MB));

	weft_set_budget(1 * MB);
	resume(k);
	resume(k);
}

static void *around(void *argument)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 128 * KB, uses_stack, argument);
	weft_request_t r = resume(k);

	REQUIRE(r.effect == &weft_failed && r.payload == k && weft_current() != k && weft_current());
	REQUIRE(weft_state(k) == WEFT_FINISHED);
	weft_delete(k);
	use_stack(32 * KB);
	return argument;
}

/* The inner coroutine fails; the outer coroutine continues. */
static void inner_fails(void)
{
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		REQUIRE(weft_returned(resume(make_on((weft_policy_t)p, 128 * KB, around, (void *)(1ul * MB)))));
}

static void many_failures(void)
{
	for (int i = 0; i < 500; i++) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 32 * KB, uses_stack, (void *)(100ul * KB));

		expect_failure(k, resume(k), WEFT_RESERVATION_SPENT);
		weft_delete(k);
	}
	REQUIRE(stats_of(WEFT_COMMIT).failures == 500 && stats_of(WEFT_COMMIT).live == 0);
}

static void *fails_in_thread(void *argument)
{
	many_failures();
	return argument;
}

static void fails_on_threads(void)
{
	pthread_t thread[1];

	/* In sequence, because the counters are the process's. */
	REQUIRE(!pthread_create(&thread[0], NULL, fails_in_thread, NULL));
	pthread_join(thread[0], NULL);
}

static weft_coro_t *hooked;
static weft_failure_t hooked_why;
static bool hooked_on_stack;

static void hook(weft_coro_t *k, weft_failure_t why)
{
	hooked = k;
	hooked_why = why;
	hooked_on_stack = weft_on_stack(k, &k);
}

static void failure_hook(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 32 * KB, uses_stack, (void *)(100ul * KB));

	REQUIRE(!weft_set_failure_hook(hook));
	expect_failure(k, resume(k), WEFT_RESERVATION_SPENT);
	REQUIRE(hooked == k && hooked_why == WEFT_RESERVATION_SPENT && !hooked_on_stack);
	REQUIRE(weft_set_failure_hook(NULL) == hook);
}

/* ---- a caller of weft_run that fails ----------------------------------------------------------------------------- */

WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, ask_later);
WEFT_EXCEPTION(give_up);
WEFT_EXCEPTION(refuse, int, code);

static int cleanups;
static weft_resumption_t waiting;

static void count_cleanup(void *unused)
{
	(void)unused;
	cleanups++;
}

static void *asks(void *unused)
{
	weft_defer(count_cleanup, unused);
	(void)ask();
	return unused;
}

static void *asks_later(void *unused)
{
	(void)ask_later();
	return asks(unused);
}

static void *gives_up(void *unused)
{
	weft_defer(count_cleanup, unused);
	give_up();
	return unused;
}

static void *clause_overflows(void *state, weft_resumption_t *k)
{
	use_stack(1 * MB);
	weft_drop(k);
	return state;
}

static void *abort_clause_overflows(void *state)
{
	use_stack(1 * MB);
	return state;
}

static void *keeps_it(void *state, weft_resumption_t *k)
{
	waiting = weft_keep(k);
	return state;
}

static void *continues_it(void *state, weft_resumption_t *k)
{
	(void)weft_continue(ask, k, 1);
	return state;
}

WEFT_HANDLER(overflowing, weft_general(ask, clause_overflows), weft_abort(give_up, abort_clause_overflows),
	     weft_general(ask_later, keeps_it));
WEFT_HANDLER(continuing, weft_general(ask, continues_it));

static void *runs_overflowing(void *body)
{
	return weft_run(&overflowing, NULL, (weft_fn_t *)body, NULL);
}

static void *continues_kept(void *unused)
{
	(void)weft_run(&overflowing, NULL, asks_later, unused);
	(void)weft_continue(ask_later, &waiting, 1);
	return unused;
}

static void fails_with(weft_fn_t *fn, void *argument, size_t size, weft_failure_t why)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, size, fn, argument);
	int before = cleanups;

	expect_failure(k, resume(k), why);
	weft_delete(k);
	REQUIRE(cleanups == before + 1);
	REQUIRE(stats_of(WEFT_COMMIT).live == 0 && stats_of(WEFT_OVERCOMMIT).live == 0);
}

/* The coroutines that its weft_run had made are deleted with it. */
static void bodies_of_a_failed_caller(void)
{
	for (int i = 0; i < 100; i++) {
		fails_with(runs_overflowing, (void *)asks, 64 * KB, WEFT_RESERVATION_SPENT);
		fails_with(runs_overflowing, (void *)gives_up, 64 * KB, WEFT_RESERVATION_SPENT);
		fails_with(continues_kept, NULL, 64 * KB, WEFT_RESERVATION_SPENT);
	}
	weft_set_budget(stats_of(WEFT_COMMIT).committed + 512 * KB);
	for (int i = 0; i < 100; i++)
		fails_with(runs_overflowing, (void *)asks, 64 * MB, WEFT_BUDGET_SPENT);
}

/* A run whose body fails deletes its own coroutines. */
static void bodies_of_a_failed_body(void)
{
	weft_attr_t attr = {.policy = WEFT_COMMIT, .stack_size = 64 * KB};

	for (int i = 0; i < 100; i++) {
		REQUIRE(!weft_run_with(&continuing, NULL, runs_overflowing, (void *)asks, &attr));
		REQUIRE(weft_errno() == EOVERFLOW && cleanups == i + 1);
		REQUIRE(stats_of(WEFT_COMMIT).live == 0 && stats_of(WEFT_OVERCOMMIT).live == 0);
	}
}

static void *notes_error(void *state, int error)
{
	*(int *)state = error;
	return state;
}

WEFT_HANDLER(noting, weft_on_failure(notes_error));

static int why_failed(size_t size, size_t bytes)
{
	weft_attr_t attr = {.policy = WEFT_COMMIT, .stack_size = size};
	int error = 0;

	weft_run_with(&noting, &error, uses_stack, (void *)bytes, &attr);
	return error;
}

/* A failure clause can tell whether the budget was exhausted. */
static void what_was_spent(void)
{
	REQUIRE(why_failed(64 * KB, 1 * MB) == EOVERFLOW);
	weft_set_budget(stats_of(WEFT_COMMIT).committed + 1 * MB);
	REQUIRE(why_failed(64 * MB, 8 * MB) == EDQUOT);
	weft_set_budget(1);
	weft_stack_trim();
	REQUIRE(why_failed(64 * MB, 0) == EDQUOT);
}

static void *decides_at_once(void *state, weft_resumption_t *k)
{
	volatile char room[400];

	room[0] = 1;
	(void)room[0];
	(void)weft_continue(ask, k, 1);
	return state;
}

WEFT_HANDLER(modest, weft_general(ask, decides_at_once), weft_abort(give_up, abort_clause_overflows),
	     weft_general(ask_later, keeps_it));

static void *runs_modest(void *unused)
{
	(void)weft_run(&modest, NULL, asks, unused);
	(void)weft_run(&modest, NULL, asks_later, unused);
	(void)weft_continue(ask_later, &waiting, 1);
	return unused;
}

static void *deep_and_runs(void *bytes)
{
	volatile char *room = __builtin_alloca((size_t)bytes);

	room[0] = 1;
	return runs_modest(NULL);
}

static size_t alive(void)
{
	return stats_of(WEFT_COMMIT).live + stats_of(WEFT_OVERCOMMIT).live;
}

/* The stack ends somewhere in weft_run and its callees: at every place. Then only weft_create can lose a stack, if one
 * of its own calls does not fit while it holds the stack. */
static void fails_anywhere_in_a_run(void)
{
	int finished = 0, failed = 0, lost = 0;

	for (size_t bytes = 16 * KB; bytes < 29 * KB; bytes += 16) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 32 * KB, deep_and_runs, (void *)bytes);
		size_t before = alive();
		weft_request_t r = resume(k);

		finished += weft_returned(r);
		failed += r.effect == &weft_failed;
		weft_delete(k);
		if (waiting.k && weft_is_valid(&waiting))
			weft_drop(&waiting);
		lost += alive() >= before;
	}
	REQUIRE(finished > 100 && failed > 50 && lost <= 2);
}

static void *suspends_deep(void *bytes)
{
	volatile char *room = __builtin_alloca((size_t)bytes);

	room[0] = 1;
	weft_suspend(NULL);
	return room[0] == 1 ? bytes : NULL;
}

/* Frames are saved in buffers, regions are taken and trimmed. */
static void use_copied_stacks(void)
{
	weft_coro_t *k[3];

	for (int i = 0; i < 3; i++) {
		k[i] = make_on(WEFT_COPY, 256 * KB, suspends_deep, (void *)(size_t)(i * 3 * KB + KB));
		resume(k[i]);
	}
	for (int i = 0; i < 3; i++)
		weft_delete(k[i]);
	weft_stack_trim();
}

static void *deep_and_copies(void *bytes)
{
	volatile char *room = __builtin_alloca((size_t)bytes);

	room[0] = 1;
	use_copied_stacks();
	return NULL;
}

/* The stack ends somewhere in the use of copied stacks, at every place: no lock stays held. */
static void fails_anywhere_in_copying(void)
{
	int finished = 0, failed = 0;

	for (size_t bytes = 14 * KB; bytes < 29 * KB; bytes += 16) {
		weft_coro_t *k = make_on(WEFT_COMMIT, 32 * KB, deep_and_copies, (void *)bytes);
		weft_request_t r;

		alarm(10);
		r = resume(k);
		finished += weft_returned(r);
		failed += r.effect == &weft_failed;
		weft_delete(k);
		use_copied_stacks();
	}
	REQUIRE(finished > 100 && failed > 50);
}

static void *code_of(void *state, int code)
{
	(void)state;
	return (void *)(intptr_t)code;
}

WEFT_HANDLER(may_be_thrown_at, weft_general(ask_later, keeps_it), weft_abort(refuse, code_of));

static void *deep_and_throws(void *bytes)
{
	volatile char *room = __builtin_alloca((size_t)bytes);

	room[0] = 1;
	return weft_continue_throw(&waiting, refuse, 5);
}

/* The thrower's stack ends somewhere: either the body got the exception, or the resumption is still valid. */
static void fails_anywhere_in_a_throw(weft_policy_t policy)
{
	weft_attr_t attr = {.policy = policy, .stack_size = 64 * KB};
	int finished = 0, failed = 0, thrown_later = 0;

	for (size_t bytes = 16 * KB; bytes < 29 * KB; bytes += 16) {
		weft_coro_t *k;
		weft_request_t r;

		REQUIRE(!weft_run_with(&may_be_thrown_at, NULL, asks_later, NULL, &attr) && weft_is_valid(&waiting));
		k = make_on(WEFT_COMMIT, 32 * KB, deep_and_throws, (void *)bytes);
		r = resume(k);
		if (weft_returned(r)) {
			REQUIRE((intptr_t)r.payload == 5);
			finished++;
		}
		failed += r.effect == &weft_failed;
		weft_delete(k);
		if (!weft_is_valid(&waiting))
			continue;
		REQUIRE((intptr_t)weft_continue_throw(&waiting, refuse, 6) == 6);
		thrown_later++;
	}
	REQUIRE(finished > 100 && failed > 50 && thrown_later > 50 && thrown_later <= failed);
}

static void fails_anywhere_in_throwing(void)
{
	fails_anywhere_in_a_throw(WEFT_OVERCOMMIT);
	fails_anywhere_in_a_throw(WEFT_COPY);
}

/* ---- cached stacks and the budget -------------------------------------------------------------------------------- */

static weft_request_t run_once(size_t size, size_t bytes)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, size, uses_stack, (void *)bytes);
	weft_request_t r = resume(k);

	weft_delete(k);
	return r;
}

/* Runs several coroutines at once, so that as many stacks are cached afterwards. */
static void keep_stacks(int count, size_t size, size_t bytes)
{
	weft_coro_t *k[128];

	for (int i = 0; i < count; i++)
		REQUIRE(weft_returned(resume(k[i] = make_on(WEFT_COMMIT, size, uses_stack, (void *)bytes))));
	for (int i = 0; i < count; i++)
		weft_delete(k[i]);
}

static void kept_stacks_give_way(void)
{
	weft_set_budget(3 * MB);
	for (int round = 0; round < 5; round++) {
		keep_stacks(8, 256 * KB, 100 * KB);
		REQUIRE(weft_returned(run_once(8 * MB, 2400 * KB)));
		REQUIRE(stats_of(WEFT_COMMIT).committed <= 3 * MB);
	}
	/* The pages with the cached stacks' own records do not count against the budget. */
	keep_stacks(100, 16 * KB, 1 * KB);
	REQUIRE(weft_returned(run_once(8 * MB, 2700 * KB)));
	REQUIRE(stats_of(WEFT_COMMIT).failures == 0);
}

static void creating_takes_from_kept_stacks(void)
{
	weft_coro_t *k[4];

	weft_set_budget(1 * MB);
	keep_stacks(4, 256 * KB, 200 * KB);
	for (int i = 0; i < 4; i++) /* another size: none is cached */
		REQUIRE(weft_returned(resume(k[i] = make_on(WEFT_COMMIT, 512 * KB, uses_stack, (void *)(100ul * KB)))));
	for (int i = 0; i < 4; i++)
		weft_delete(k[i]);
	REQUIRE(stats_of(WEFT_COMMIT).failures == 0);
}

enum { SLEEPERS = 16 };
static pthread_barrier_t kept, over;

static void *keeps_and_sleeps(void *argument)
{
	keep_stacks(1, 256 * KB, 50 * KB);
	pthread_barrier_wait(&kept);
	pthread_barrier_wait(&over);
	return argument;
}

/* Sleeping threads cache stacks, too. */
static void sleeping_threads_give_way(void)
{
	pthread_t thread[SLEEPERS];

	weft_set_budget(3 * MB);
	pthread_barrier_init(&kept, NULL, SLEEPERS + 1);
	pthread_barrier_init(&over, NULL, SLEEPERS + 1);
	for (size_t i = 0; i < SLEEPERS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, keeps_and_sleeps, NULL));
	pthread_barrier_wait(&kept);
	REQUIRE(weft_returned(run_once(8 * MB, 2900 * KB)));
	pthread_barrier_wait(&over);
	for (size_t i = 0; i < SLEEPERS; i++)
		pthread_join(thread[i], NULL);
	REQUIRE(weft_returned(run_once(8 * MB, 2900 * KB)));
	REQUIRE(stats_of(WEFT_COMMIT).failures == 0);
}

static void *takes_turns(void *argument)
{
	static const size_t size[] = {128 * KB, 256 * KB, 512 * KB};

	for (size_t i = 0; i < 200; i++) {
		size_t n = i * 7 + (size_t)argument;

		REQUIRE(weft_returned(run_once(size[n % 3], n * 13 % 90 * KB)));
		if (n % 5 == 0)
			keep_stacks(2, 64 * KB, 20 * KB);
	}
	return argument;
}

/* At any time each thread's living stacks have less than 256 KiB open. The threads' caches hold more. */
static void threads_take_from_each_other(void)
{
	pthread_t thread[SLEEPERS];

	weft_set_budget(SLEEPERS * 256 * KB);
	for (size_t i = 0; i < SLEEPERS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, takes_turns, (void *)i));
	for (size_t i = 0; i < SLEEPERS; i++)
		pthread_join(thread[i], NULL);
	REQUIRE(stats_of(WEFT_COMMIT).failures == 0 && stats_of(WEFT_COMMIT).live == 0);
	REQUIRE(stats_of(WEFT_COMMIT).committed <= SLEEPERS * 256 * KB);
	weft_stack_trim();
	REQUIRE(stats_of(WEFT_COMMIT).committed == 0);
}

struct growth {
	size_t before, after; /* its usage until it suspends, and afterwards */
};

static void *grows_twice(void *argument)
{
	const struct growth *growth = argument;

	use_stack(growth->before);
	weft_suspend(NULL);
	use_stack(growth->after);
	return NULL;
}

/* After deletion it is cached, if this is the default policy and weft_create was called before. */
static weft_coro_t *begun(struct growth *growth)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 0, grows_twice, growth);

	weft_delete(weft_create(grows_twice, growth));
	REQUIRE(!weft_returned(resume(k)));
	return k;
}

static void end_large(weft_coro_t *k)
{
	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
}

static struct growth large = {100 * KB, 1 * KB};

static void *ends_one(void *argument)
{
	weft_coro_t *k = begun(&large);

	pthread_barrier_wait(&kept);
	pthread_barrier_wait(&kept);
	end_large(k);
	pthread_barrier_wait(&kept);
	pthread_barrier_wait(&kept);
	return argument;
}

/* A coroutine cannot grow, because no cached stack has memory. Then a coroutine is deleted, by this or another thread,
 * and the next coroutine can grow. */
static void the_next_one_grows(weft_coro_t *mine)
{
	struct growth much = {1 * KB, 200 * KB}, little = {1 * KB, 30 * KB};
	weft_coro_t *first = begun(&much), *next = begun(&little);

	weft_stack_trim();
	weft_set_budget(stats_of(WEFT_COMMIT).committed);
	expect_failure(first, resume(first), WEFT_BUDGET_SPENT);
	if (mine) {
		end_large(mine);
	} else {
		pthread_barrier_wait(&kept);
		pthread_barrier_wait(&kept);
	}
	end_large(next);
	weft_set_budget(SIZE_MAX);
	weft_delete(first);
}

static void what_is_at_hand_gives_way(void)
{
	pthread_t thread;

	pthread_barrier_init(&kept, NULL, 2);
	for (int i = 0; i < 3; i++) {
		the_next_one_grows(begun(&large));
		REQUIRE(!pthread_create(&thread, NULL, ends_one, NULL));
		pthread_barrier_wait(&kept);
		the_next_one_grows(NULL);
		pthread_barrier_wait(&kept);
		REQUIRE(!pthread_join(thread, NULL));
	}
	REQUIRE(stats_of(WEFT_COMMIT).live == 0);
}

/* ---- cleanups without memory ------------------------------------------------------------------------------------- */

static int cleanups, hooks;

static void counts_failures(weft_coro_t *k, weft_failure_t why)
{
	REQUIRE(weft_failure(k) == why);
	hooks++;
}

static void cleans(void *bytes)
{
	use_stack((size_t)bytes);
	cleanups++;
}

static void *defers(void *bytes)
{
	weft_defer(cleans, (void *)(4ul * KB));
	weft_defer(cleans, bytes);
	weft_suspend(NULL);
	return NULL;
}

/* Living coroutines hold the whole budget. */
static void spend_budget(void)
{
	REQUIRE(weft_returned(resume(make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(100ul * KB)))));
	weft_stack_trim();
	weft_set_budget(stats_of(WEFT_COMMIT).committed);
	weft_set_failure_hook(counts_failures);
}

static void cleanup_has_a_reserve(void)
{
	weft_coro_t *k[10];

	for (int i = 0; i < 10; i++)
		resume(k[i] = make_on(WEFT_COMMIT, 256 * KB, defers, (void *)(40ul * KB)));
	spend_budget();
	for (int i = 0; i < 9; i++)
		weft_delete(k[i]);
	weft_reset(k[9], once, NULL);
	REQUIRE(weft_returned(resume(k[9])));
	weft_delete(k[9]);
	REQUIRE(cleanups == 20 && hooks == 0 && stats_of(WEFT_COMMIT).live == 1);
}

static void cleanup_spends_its_reserve(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 8 * MB, defers, (void *)(4ul * MB));

	resume(k);
	spend_budget();
	weft_delete(k);
	REQUIRE(cleanups == 0 && hooks == 1 && stats_of(WEFT_COMMIT).live == 1);
	k = make_on(WEFT_FIXED, 0, once, NULL);
	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
}

static void cleanup_spends_its_reservation(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 128 * KB, defers, (void *)(1ul * MB));

	weft_set_failure_hook(counts_failures);
	resume(k);
	weft_reset(k, uses_stack, (void *)(64ul * KB));
	REQUIRE(cleanups == 0 && hooks == 1 && weft_failure(k) == WEFT_NO_FAILURE);
	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
}

static weft_coro_t *outermost;

static void *suspends_from_below(void *argument)
{
	weft_defer(cleans, (void *)(4ul * MB));
	weft_yield(outermost, &weft_suspended, NULL);
	weft_exit(outermost, &weft_suspended, argument);
}

static void *defers_around_this(void *argument)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 8 * MB, suspends_from_below, argument);

	weft_defer(cleans, (void *)(8ul * KB));
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(!"reached");
	return argument;
}

/* The inner coroutine's cleanup is abandoned, the outer one's runs. */
static void cleanup_of_a_chain(void)
{
	for (int leave = 0; leave < 2; leave++) {
		weft_request_t r;

		cleanups = hooks = 0;
		outermost = make_on(WEFT_COMMIT, 256 * KB, defers_around_this, &cleanups);
		resume(outermost);
		spend_budget();
		if (leave) {
			r = resume(outermost);
			REQUIRE(r.effect == &weft_suspended && r.payload == &cleanups);
			REQUIRE(weft_state(outermost) == WEFT_FINISHED);
		}
		REQUIRE(hooks == leave && cleanups == leave);
		weft_delete(outermost);
		REQUIRE(hooks == 1 && cleanups == 1 && stats_of(WEFT_COMMIT).live == (size_t)leave + 1);
		weft_set_budget(SIZE_MAX);
	}
}

static weft_coro_t *resumed;

static void *suspends_often(void *argument)
{
	for (;;)
		weft_suspend(argument);
	return argument;
}

/* A compiler may store a variable between the two halves of a resume: the other coroutine is current already. */
static void *grows_in_a_switch(void *argument)
{
	weft_coro_t *self = weft_current();

	weft_resume(resumed, NULL, WEFT_HANDLE_NONE);
	weft__set_self(resumed);
	use_stack(32 * KB);
	weft__set_self(self);
	return argument;
}

static void grows_in_the_middle_of_a_switch(void)
{
	resumed = make_on(WEFT_FIXED, 0, suspends_often, NULL);
	REQUIRE(weft_returned(resume(make_on(WEFT_COMMIT, 64 * KB, grows_in_a_switch, &resumed))));
}

static void budget_spent_in_a_switch(void)
{
	weft_coro_t *k;

	weft_set_budget(2 * 4096);
	k = make_on(WEFT_COMMIT, 64 * KB, grows_in_a_switch, NULL);
	resumed = make_on(WEFT_FIXED, 0, suspends_often, NULL);
	expect_failure(k, resume(k), WEFT_BUDGET_SPENT);
	REQUIRE(weft_state(resumed) == WEFT_SUSPENDED);
	REQUIRE(resume(resumed).effect == &weft_suspended);
}

static void *uses_most(void *argument)
{
	use_stack(200 * KB);
	return argument;
}

/* A thread's failure has no resumer to go to. */
static void threads_are_refused(void)
{
	weft_attr_t attr = {.policy = WEFT_COMMIT, .stack_size = 256 * KB};
	pthread_t thread;
	void *result;

	weft_set_budget(100 * KB);
	REQUIRE(weft_thread_create(&thread, &attr, uses_most, &attr) == ENOMEM);
	REQUIRE(stats_of(WEFT_COMMIT).live == 0);
	weft_set_budget(256 * KB);
	for (int i = 0; i < 3; i++) {
		REQUIRE(!weft_thread_create(&thread, &attr, uses_most, &attr));
		REQUIRE(!pthread_join(thread, &result) && result == &attr);
	}
	REQUIRE(stats_of(WEFT_COMMIT).faults == 0);
}

/* ---- other coroutines' stacks ------------------------------------------------------------------------------------ */

static char *deep_address(weft_coro_t *k, size_t below)
{
	char *at = (char *)k - below;

	REQUIRE(weft_on_stack(k, at));
	return at;
}

static void *writes_far(void *argument)
{
	*(volatile char *)argument = 1;
	return argument;
}

static void writes_elsewhere(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, suspends, NULL), *writer;

	resume(k);
	*(volatile char *)deep_address(k, 100 * KB) = 1; /* from outside of any coroutine */
	writer = make_on(WEFT_FIXED, 0, writes_far, deep_address(k, 200 * KB));
	REQUIRE(weft_returned(resume(writer)));
	REQUIRE(weft_returned(resume(k)));
}

/* A coroutine writes to a suspended coroutine's stack, and the budget is exhausted: the writer fails. */
static void writes_elsewhere_without_budget(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 8 * MB, suspends, NULL), *writer;

	resume(k);
	weft_set_budget(stats_of(WEFT_COMMIT).committed + 64 * KB);
	writer = make_on(WEFT_FIXED, 0, writes_far, deep_address(k, 4 * MB));
	expect_failure(writer, resume(writer), WEFT_BUDGET_SPENT);
	REQUIRE(weft_state(k) == WEFT_SUSPENDED);
	REQUIRE(weft_returned(resume(k)));
}

static void writes_from_outside_without_budget(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 8 * MB, suspends, NULL);

	resume(k);
	weft_set_budget(1);
	*(volatile char *)deep_address(k, 4 * MB) = 1;
}

static void writes_to_deleted(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, suspends, NULL);
	char *at = deep_address(k, 200 * KB);

	weft_delete(k);
	*(volatile char *)at = 1;
}

/* ---- nested ------------------------------------------------------------------------------------------------------ */

static void uses_stack_in_handler(int signal)
{
	(void)signal;
	use_stack(150 * KB);
}

static void *raises(void *argument)
{
	raise(SIGUSR1); /* the handler runs on this stack */
	return argument;
}

static void grows_in_handler(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, raises, NULL);

	signal(SIGUSR1, uses_stack_in_handler);
	REQUIRE(weft_returned(resume(k)));
	REQUIRE(stats_of(WEFT_COMMIT).faults > 0);
}

static sigjmp_buf back;
static weft_coro_t *nested_target;
static void *seen_address;
static volatile int handled;

static void faults_itself(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	seen_address = info->si_addr;
	handled++;
	if (nested_target)
		*(volatile char *)deep_address(nested_target, 100 * KB) = 1; /* a fault while one is being handled */
	siglongjmp(back, 1);
}

static void install(void (*handler)(int, siginfo_t *, void *), int signal, int flags)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | flags;
	REQUIRE(!sigaction(signal, &action, NULL));
}

static volatile int *const nowhere = (volatile int *)0x1230;

static void nested_fault(void)
{
	install(faults_itself, SIGSEGV, SA_NODEFER | SA_ONSTACK);
	nested_target = make_on(WEFT_COMMIT, 256 * KB, suspends, NULL);
	resume(nested_target);
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	REQUIRE(seen_address == (void *)nowhere && handled == 1);
	REQUIRE(weft_returned(resume(nested_target)));
}

/* ---- faults that do not concern Weft ----------------------------------------------------------------------------- */

static void attach(void)
{
	weft_delete(make_on(WEFT_COMMIT, 0, once, NULL));
}

static void *faults(void *argument)
{
	*nowhere = 1;
	return argument;
}

static void foreign_outside(void)
{
	attach();
	*nowhere = 1;
}

static void foreign_inside(void)
{
	resume(make_on(WEFT_COMMIT, 0, faults, NULL));
}

static void foreign_inside_fixed(void)
{
	resume(make_on(WEFT_FIXED, 0, faults, NULL));
}

static void foreign_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	foreign_inside();
}

static void *noncanonical(void *argument)
{
	*(volatile char *)0x8000000000000000 = 1; /* a general protection fault: no address is known */
	return argument;
}

static void foreign_noncanonical(void)
{
	resume(make_on(WEFT_COMMIT, 0, noncanonical, NULL));
}

static void jumps_back(int signal, siginfo_t *info, void *context)
{
	(void)signal, (void)context;
	seen_address = info->si_addr;
	handled++;
	siglongjmp(back, 1);
}

static void *faults_and_survives(void *argument)
{
	for (volatile int i = 0; i < 3; i++) {
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
		weft_suspend(NULL);
		use_stack(50 * KB);
	}
	return argument;
}

static void survive_with(int flags)
{
	weft_coro_t *k;

	install(jumps_back, SIGSEGV, flags);
	k = make_on(WEFT_COMMIT, 256 * KB, faults_and_survives, NULL);
	while (!weft_returned(resume(k)))
		;
	REQUIRE(handled == 3 && seen_address == (void *)nowhere);
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	REQUIRE(handled == 4);
}

static void handler_with_info(void)
{
	survive_with(SA_ONSTACK);
}

static void handler_without_deferring(void)
{
	survive_with(SA_ONSTACK | SA_NODEFER);
}

static void jumps_back_plain(int signal)
{
	handled += signal == SIGSEGV;
	siglongjmp(back, 1);
}

static void handler_plain(void)
{
	signal(SIGSEGV, jumps_back_plain);
	attach();
	for (volatile int i = 0; i < 3; i++)
		if (!sigsetjmp(back, 1))
			*nowhere = 1;
	REQUIRE(handled == 3);
}

/* Installed after Weft's handler, and forwarding unknown faults, as handlers should. */
static struct sigaction ours;

static void in_front(int signal, siginfo_t *info, void *context)
{
	handled++;
	ours.sa_sigaction(signal, info, context);
}

static void handler_in_front(void)
{
	struct sigaction action;

	attach();
	memset(&action, 0, sizeof action);
	action.sa_sigaction = in_front;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	REQUIRE(!sigaction(SIGSEGV, &action, &ours));
	REQUIRE(weft_returned(resume(make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(200ul * KB)))));
	/* Otherwise the stack grows without a signal. */
	REQUIRE(handled > 0 || strcmp(weft_commit_mechanism(), "signal"));
}

static void counts(int signal)
{
	(void)signal;
	handled++;
}

static void sent_by_default(void)
{
	attach();
	kill(getpid(), SIGSEGV);
	for (;;)
		pause();
}

static void sent_to_handler(void)
{
	signal(SIGSEGV, counts);
	attach();
	kill(getpid(), SIGSEGV);
	raise(SIGSEGV);
	REQUIRE(handled == 2);
}

static void sent_and_ignored(void)
{
	signal(SIGSEGV, SIG_IGN);
	attach();
	kill(getpid(), SIGSEGV);
	REQUIRE(weft_returned(resume(make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(200ul * KB)))));
}

static char *truncated_mapping(void)
{
	FILE *file = tmpfile();
	char *start;

	REQUIRE(file && !ftruncate(fileno(file), 8192));
	start = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	REQUIRE(start != MAP_FAILED && !ftruncate(fileno(file), 0));
	return start;
}

static void bus_by_default(void)
{
	resume(make_on(WEFT_COMMIT, 0, writes_far, truncated_mapping()));
}

static void bus_with_handler(void)
{
	char *at = truncated_mapping();

	install(jumps_back, SIGBUS, SA_ONSTACK);
	attach();
	if (!sigsetjmp(back, 1))
		*(volatile char *)at = 1;
	REQUIRE(handled == 1 && seen_address == at);
}

/* ---- the program's alternate stacks ------------------------------------------------------------------------------ */

static char theirs[256 * KB];

static void set_theirs(void)
{
	stack_t stack = {.ss_sp = theirs, .ss_size = sizeof theirs};

	REQUIRE(!sigaltstack(&stack, NULL));
}

static void expect_theirs(void)
{
	stack_t stack;

	REQUIRE(!sigaltstack(NULL, &stack));
	REQUIRE(stack.ss_sp == theirs);
}

static void grow_once(void)
{
	weft_coro_t *k = make_on(WEFT_COMMIT, 256 * KB, uses_stack, (void *)(200ul * KB));

	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
	weft_stack_trim();
}

static void other_stack_before(void)
{
	set_theirs();
	grow_once();
	expect_theirs();
}

static void other_stack_after(void)
{
	grow_once();
	set_theirs();
	grow_once();
	expect_theirs();
}

static void *replaces(void *argument)
{
	(void)argument;
	other_stack_after();
	return NULL;
}

static void other_stack_on_thread(void)
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, replaces, NULL));
	pthread_join(thread, NULL);
	grow_once();
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static size_t create_until(int error, size_t limit, size_t size)
{
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT, .stack_size = size};
	static weft_coro_t *k[100000];
	size_t n = 0;

	while (n < limit && (k[n] = weft_create_with(once, NULL, &attr)))
		n++;
	if (n < limit)
		REQUIRE(errno == error);
	for (size_t i = 0; i < n; i++) {
		REQUIRE(weft_returned(resume(k[i])));
		weft_delete(k[i]);
	}
	return n;
}

static void address_space(void)
{
	struct rlimit limit = {(rlim_t)600 * MB, (rlim_t)600 * MB};
	size_t first, second;

	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
	first = create_until(ENOMEM, 100000, 1 * MB);
	REQUIRE(first > 10 && first < 600);
	second = create_until(ENOMEM, 100000, 1 * MB);
	REQUIRE(second == first);
	free(malloc(1 * MB)); /* so that the program has some left */
}

static void tiny_address_space(void)
{
	struct rlimit limit = {(rlim_t)12 * MB, (rlim_t)12 * MB};

	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
	errno = 0;
	if (weft_create(once, NULL))
		return;
	REQUIRE(errno == ENOMEM);
	REQUIRE(weft_policy_unavailable(WEFT_FIXED));
}

/* Writable mappings count, and locked mappings, before they are touched. */
static void data_limit(void)
{
	struct rlimit limit = {(rlim_t)64 * MB, (rlim_t)64 * MB};
	size_t first;

	REQUIRE(!setrlimit(RLIMIT_DATA, &limit));
	first = create_until(ENOMEM, 100000, MB / 4);
	REQUIRE(first > 30 && first < 260);
	free(malloc(1 * MB));
}

static void locked_memory(void)
{
	struct rlimit limit = {(rlim_t)8 * MB, (rlim_t)8 * MB};
	size_t first;

	REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit));
	/* The superuser has no limit. */
	if ((!geteuid() && setuid(65534)) || mlockall(MCL_FUTURE | MCL_ONFAULT))
		return;
	first = create_until(ENOMEM, 100000, MB / 8);
	REQUIRE(first >= 8 && first < 64);
}

/* Later coroutines get memory if some is available then, although the first coroutines got none. */
static void address_space_later(void)
{
	struct rlimit limit;

	REQUIRE(!getrlimit(RLIMIT_AS, &limit));
	limit.rlim_cur = 1 * MB;
	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
	for (int i = 0; i < 3; i++)
		REQUIRE(!weft_create(once, NULL) && errno == ENOMEM);
	limit.rlim_cur = limit.rlim_max;
	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
	for (int i = 0; i < 10; i++) {
		weft_coro_t *k = make_on(WEFT_DEFAULT_POLICY, 0, once, NULL);

		REQUIRE(weft_returned(resume(k)));
		weft_delete(k);
	}
	REQUIRE(!weft_policy_unavailable(WEFT_FIXED));
}

static void map_limit(void)
{
	size_t first;

	if (strcmp(weft_guard_mechanism(), "mprotect"))
		return; /* there is no limit */
	first = create_until(EAGAIN, 100000, 16 * KB);
	REQUIRE(first > 10000 && first < 100000);
	REQUIRE(create_until(EAGAIN, 5000, 16 * KB) == 5000);
}

static weft_coro_t *volatile nobody;

static void resumes_null(void)
{
	(void)stats_of(WEFT_COMMIT);
	resume(nobody);
}

static volatile int caught;
static sigjmp_buf after_null;

static void goes_on(int number)
{
	caught = number;
	siglongjmp(after_null, 1);
}

/* Looks similar, but is not: a NULL pointer of the program's, at the same offset. */
static void reads_null(void)
{
	struct like {
		char before[offsetof(struct weft_coro, parent)];
		void *parent;
	} *volatile none = NULL;

	resume(make_on(WEFT_COMMIT, 0, once, NULL));
	weft_signal(SIGSEGV, goes_on);
	if (!sigsetjmp(after_null, 1))
		caught = none->parent != NULL;
	REQUIRE(caught == SIGSEGV);
}

static const struct scenario scenarios[] = {
    {"stacks grow", grows, 0, NULL},
    {"growing keeps errno", keeps_errno, 0, NULL},
    {"a system call into unopened stack", system_call, 0, NULL},
    {"a thread that only resumes migrated coroutines", migrated, 0, NULL},
    {"stacks grow on many threads", many_threads_grow, 0, NULL},
    {"threads write into one unopened stack", threads_share_a_stack, 0, NULL},
    {"budget spent", budget_spent, 0, NULL},
    {"reservation spent", reservation_spent, 0, NULL},
    {"resuming one whose reservation was spent", resumes_failed_reservation, SIGABRT,
     "): it failed, its stack was spent; raise weft_attr.stack_size or look for &weft_failed\n"},
    {"resuming one that spent the budget", resumes_failed_budget, SIGABRT,
     "): it failed, the stack budget was spent; raise WEFT_BUDGET or look for &weft_failed\n"},
    {"an inner coroutine fails", inner_fails, 0, NULL},
    {"many failures", many_failures, 0, NULL},
    {"failures on another thread", fails_on_threads, 0, NULL},
    {"failure hook", failure_hook, 0, NULL},
    {"bodies of a caller that fails", bodies_of_a_failed_caller, 0, NULL},
    {"bodies of a body that fails", bodies_of_a_failed_body, 0, NULL},
    {"what was spent", what_was_spent, 0, NULL},
    {"a caller fails anywhere in weft_run", fails_anywhere_in_a_run, 0, NULL},
    {"a caller fails anywhere in the use of copied stacks", fails_anywhere_in_copying, 0, NULL},
    {"a caller fails anywhere in a throw", fails_anywhere_in_throwing, 0, NULL},

    {"resuming NULL", resumes_null, WEFT_DEBUG ? SIGABRT : SIGSEGV,
     "weft: weft_resume(NULL): there is no coroutine; weft_create returns NULL when it fails, and errno says why\n"},
    {"reading at NULL", reads_null, 0, NULL},

    {"kept stacks give way to one that grows", kept_stacks_give_way, 0, NULL},
    {"kept stacks give way to a creation", creating_takes_from_kept_stacks, 0, NULL},
    {"stacks kept by sleeping threads give way", sleeping_threads_give_way, 0, NULL},
    {"what is at hand gives way to a growing stack", what_is_at_hand_gives_way, 0, NULL},
    {"threads take kept stacks from each other", threads_take_from_each_other, 0, NULL},
    {"a stack grows in a switch", grows_in_the_middle_of_a_switch, 0, NULL},
    {"the budget is spent in a switch", budget_spent_in_a_switch, 0, NULL},
    {"a thread without budget", threads_are_refused, 0, NULL},
    {"a cleanup has a reserve", cleanup_has_a_reserve, 0, NULL},
    {"a cleanup that spends its reserve is given up", cleanup_spends_its_reserve, 0, NULL},
    {"a cleanup that spends its reservation is given up", cleanup_spends_its_reservation, 0, NULL},
    {"a cleanup that is given up in a chain", cleanup_of_a_chain, 0, NULL},
    {"writing to another's unopened stack", writes_elsewhere, 0, NULL},
    {"the same without budget", writes_elsewhere_without_budget, 0, NULL},
    {"the same without budget from outside", writes_from_outside_without_budget, SIGSEGV,
     "weft: stack budget spent in coroutine \"subject\" (#1): commit, 8 MiB reserved; fault at 0x"},
    {"the advice then", writes_from_outside_without_budget, SIGSEGV,
     "; raise the budget by WEFT_BUDGET or weft_set_budget\n"},
    {"writing to a deleted coroutine's unopened stack", writes_to_deleted, SIGSEGV, NULL},
    {"growing in a signal handler", grows_in_handler, 0, NULL},
    {"a fault while a fault is handled", nested_fault, 0, NULL},
    {"foreign fault outside", foreign_outside, SIGSEGV, NULL},
    {"foreign fault inside", foreign_inside, SIGSEGV, NULL},
    {"foreign fault inside, fixed", foreign_inside_fixed, SIGSEGV, NULL},
    {"foreign fault, signal ignored", foreign_ignored, SIGSEGV, NULL},
    {"foreign fault without an address", foreign_noncanonical, SIGSEGV, NULL},
    {"foreign fault, handler with SA_SIGINFO", handler_with_info, 0, NULL},
    {"foreign fault, handler with SA_NODEFER", handler_without_deferring, 0, NULL},
    {"foreign fault, plain handler", handler_plain, 0, NULL},
    {"a handler installed after ours", handler_in_front, 0, NULL},
    {"SIGSEGV sent", sent_by_default, SIGSEGV, NULL},
    {"SIGSEGV sent, handler", sent_to_handler, 0, NULL},
    {"SIGSEGV sent, ignored", sent_and_ignored, 0, NULL},
    {"SIGBUS", bus_by_default, SIGBUS, NULL},
    {"SIGBUS, handler", bus_with_handler, 0, NULL},
    {"another's alternate stack before ours", other_stack_before, 0, NULL},
    {"another's alternate stack after ours", other_stack_after, 0, NULL},
    {"another's alternate stack on a thread", other_stack_on_thread, 0, NULL},
    {"limit on address space", address_space, 0, NULL},
    {"no address space", tiny_address_space, 0, NULL},
    {"limit on data", data_limit, 0, NULL},
    {"limit on locked memory", locked_memory, 0, NULL},
    {"no address space at first", address_space_later, 0, NULL},
    {"limit on mappings", map_limit, 0, NULL},
};

int main(int count, char **arguments)
{
	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
