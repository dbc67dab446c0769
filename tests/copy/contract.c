/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * contract [TEST]: the promises of weft/copy.h about copied stacks and clones, one test for each. Without an argument,
 * all tests that return. `inside` and `deadlock` end the process with a line.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy.h"

WEFT_EFFECT(int, pick, int, choices);
WEFT_EFFECT(uint64_t, ask, uint64_t, x);

/* ---- clones ---------------------------------------------------------------------------------------------------- */

static void *picks_twice(void *argument)
{
	int first = pick(3), second = pick(4);

	return (char *)argument + 10 * first + second;
}

/* Resumes a clone for each choice except the last, which goes to the original. */
static uint64_t sum_of_all(weft_coro_t *k)
{
	weft_request_t r = weft_resume(k, NULL, weft_handles(pick));
	uint64_t sum = 0;
	int choices;

	if (weft_returned(r))
		return (uint64_t)r.payload;
	choices = weft_args(pick, r)->choices;
	for (int i = 0; i < choices; i++) {
		weft_coro_t *c = i < choices - 1 ? weft_clone(k) : k;

		REQUIRE(c && !weft_reply_to(c, pick, r, i));
		sum += sum_of_all(c);
		if (c != k)
			weft_delete(c);
	}
	return sum;
}

static void all_choices(void)
{
	weft_coro_t *k = make_copied(picks_twice, (void *)1000, "picks");

	REQUIRE(sum_of_all(k) == 12 * 1000 + 10 * (0 + 1 + 2) * 4 + (0 + 1 + 2 + 3) * 3);
	weft_delete(k);
}

static void *knows_itself(void *argument)
{
	weft_coro_t *before = weft_current();

	weft_suspend(before);
	REQUIRE(weft_current() != before || argument == before);
	return weft_current();
}

/* A clone has its own identity, also when the runtime looks for it in the frames. */
static void identity(void)
{
	weft_coro_t *k = make_copied(knows_itself, NULL, "self"), *c, *d;
	int data;

	weft_set_user_data(k, &data);
	REQUIRE(resume(k, 0).payload == k);
	REQUIRE((c = weft_clone(k)) && (d = weft_clone(c)));
	REQUIRE(weft_id(c) != weft_id(k) && weft_id(d) != weft_id(c) && !strcmp(weft_name(d), "self"));
	REQUIRE(weft_user_data(d) == &data && weft_policy(d) == WEFT_COPY && weft_coro_is_valid(d));
	REQUIRE(weft_state(d) == WEFT_SUSPENDED);
	weft_delete(k);
	REQUIRE(resume(d, 0).payload == d && weft_state(d) == WEFT_FINISHED && weft_state(c) == WEFT_SUSPENDED);
	REQUIRE(resume(c, 0).payload == c);
	weft_delete(c);
	weft_delete(d);
}

static void *identity_function(void *argument)
{
	return argument;
}

static void fresh_ones(void)
{
	weft_coro_t *k = make_copied(identity_function, (void *)7, NULL), *c = weft_clone(k);

	REQUIRE(c && resume(c, 0).payload == (void *)7 && resume(k, 0).payload == (void *)7);
	weft_delete(c);
	weft_delete(k);
}

static void *clones_itself(void *argument)
{
	REQUIRE(!weft_clone(weft_current()) && errno == EBUSY);
	return argument;
}

static void *asks(void *argument)
{
	return (void *)ask((uint64_t)argument);
}

static void *runs_inner(void *argument)
{
	weft_coro_t *k = make_copied(asks, argument, "inner");
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	REQUIRE(weft_returned(r));
	weft_delete(k);
	return r.payload;
}

static void refused(int error, weft_coro_t *k)
{
	errno = 0;
	REQUIRE(!weft_clone(k) && errno == error);
}

static void refusals(void)
{
	weft_attr_t other = {.policy = WEFT_OVERCOMMIT}, large = {.policy = WEFT_COPY, .stack_size = 4 << 20};
	weft_coro_t *k = make_copied(clones_itself, NULL, NULL), *through, *c;
	weft_request_t r;

	REQUIRE(weft_returned(resume(k, 0)));
	refused(EINVAL, k);
	weft_delete(k);
	k = weft_create_with(asks, NULL, &other);
	refused(ENOTSUP, k);
	REQUIRE(weft_clone_into(k, k) == -ENOTSUP);
	weft_delete(k);
	k = make_copied(asks, NULL, NULL);
	REQUIRE(weft_clone_into(k, k) == -EINVAL);
	c = weft_create_with(asks, NULL, &large);
	REQUIRE(weft_clone_into(c, k) == -EINVAL);
	weft_delete(c);
	/* Suspended from below. */
	through = make_copied(runs_inner, (void *)5, "outer");
	r = weft_resume(through, NULL, weft_handles(ask));
	REQUIRE(weft_is(ask, r));
	refused(EBUSY, through);
	REQUIRE(weft_clone_into(k, through) == -EBUSY);
	weft_reply(ask, r, 6);
	REQUIRE(weft_resume(through, NULL, weft_handles(ask)).payload == (void *)6);
	weft_delete(through);
	weft_delete(k);
}

static void *counts_to_three(void *argument)
{
	for (uintptr_t i = 1; i < 4; i++)
		weft_suspend((void *)i);
	return argument;
}

/* Clones into coroutines that do not run: finished, suspended, suspended from below. */
static void clone_into(void)
{
	weft_coro_t *k = make_copied(counts_to_three, NULL, NULL), *c = make_copied(runs_inner, (void *)1, NULL);

	REQUIRE(weft_is(ask, weft_resume(c, NULL, weft_handles(ask))));
	for (uintptr_t i = 1; i < 4; i++) {
		REQUIRE(resume(k, 0).payload == (void *)i);
		for (int again = 0; again < 3; again++) {
			REQUIRE(!weft_clone_into(c, k));
			for (uintptr_t j = i + 1; j < 4; j++)
				REQUIRE(resume(c, 0).payload == (void *)j);
			REQUIRE(again == 1 || weft_returned(resume(c, 0)));
		}
	}
	weft_delete(c);
	weft_delete(k);
}

/* ---- replies and the place of frames ---------------------------------------------------------------------------- */

/* Each of ten coroutines waits for a reply that comes after all the other coroutines have run. */
static void late_replies(void)
{
	weft_coro_t *k[10];
	weft_request_t r[10];
	weft_args_t(ask) args;

	for (uintptr_t i = 0; i < 10; i++) {
		k[i] = make_copied(i % 2 ? runs_inner : asks, (void *)(i * i), NULL);
		r[i] = weft_resume(k[i], NULL, weft_handles(ask));
	}
	for (uintptr_t i = 10; i-- > 0;) {
		REQUIRE(!weft_peek(k[i], r[i].payload, &args, sizeof args) && args.x == i * i);
		REQUIRE(!weft_reply_to(k[i], ask, r[i], i + 100));
	}
	for (uintptr_t i = 0; i < 10; i++) {
		REQUIRE(weft_resume(k[i], NULL, weft_handles(ask)).payload == (void *)(i + 100));
		weft_delete(k[i]);
	}
}

/* A reply written in place reaches the resident coroutine, although a clone shares its image. */
static void reply_after_clone(void)
{
	weft_coro_t *k = make_copied(asks, (void *)1, NULL), *c, *d;
	weft_request_t r = weft_resume(k, NULL, weft_handles(ask));

	c = weft_clone(k);
	weft_reply(ask, r, 11);
	d = weft_clone(k);
	weft_reply(ask, r, 12);
	REQUIRE(!weft_reply_to(c, ask, r, 13));
	REQUIRE(resume(d, 0).payload == (void *)11);
	REQUIRE(resume(k, 0).payload == (void *)12);
	REQUIRE(resume(c, 0).payload == (void *)13);
	weft_delete(k);
	weft_delete(c);
	weft_delete(d);
}

static void bounds(void)
{
	weft_coro_t *k = make_copied(asks, (void *)1, NULL);
	weft_request_t r;
	char buffer[4096];

	REQUIRE(weft_peek(k, buffer, buffer + 1, 1) == 0); /* no address of its stack */
	r = weft_resume(k, NULL, weft_handles(ask));
	REQUIRE(weft_peek(k, r.payload, buffer, sizeof buffer) == -EINVAL);
	REQUIRE(weft_peek(k, (char *)r.payload - 4096, buffer, 1) == -EINVAL);
	REQUIRE(resume(k, 0).payload == NULL);
	REQUIRE(weft_peek(k, r.payload, buffer, 1) == -EINVAL);
	weft_delete(k);
}

/* ---- life ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) uint64_t sink_deep(uint64_t depth)
{
	volatile char frame[100];
	uint64_t below;

	frame[0] = frame[99] = (char)depth;
	below = depth ? sink_deep(depth - 1) : ask(0);
	return below + (uint64_t)(frame[0] == (char)depth && frame[99] == (char)depth);
}

static void *deep(void *argument)
{
	return (void *)sink_deep((uint64_t)argument);
}

/* Stacks of hundreds of kilobytes are copied out and in, beside small stacks. */
static void deep_recursion(void)
{
	enum { COUNT = 6 };
	weft_coro_t *k[COUNT];
	weft_request_t r[COUNT];

	for (uint64_t i = 0; i < COUNT; i++) {
		k[i] = make_copied(deep, (void *)(i % 2 ? 4500ul : 3ul), NULL);
		r[i] = weft_resume(k[i], NULL, weft_handles(ask));
	}
	for (uint64_t i = 0; i < COUNT; i++) {
		weft_coro_t *c = weft_clone(k[i]);

		REQUIRE(c && !weft_reply_to(c, ask, r[i], 1000) && !weft_reply_to(k[i], ask, r[i], 2000));
		REQUIRE(resume(c, 0).payload == (void *)(1000 + (i % 2 ? 4501ul : 4ul)));
		weft_delete(c);
		REQUIRE(resume(k[i], 0).payload == (void *)(2000 + (i % 2 ? 4501ul : 4ul)));
		weft_delete(k[i]);
	}
}

/* Three coroutines, of which the second is a clone of the first, end in every order, suspended, resident or not. */
static void every_order(void)
{
	static const int order[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

	for (int i = 0; i < 6 * 8; i++) {
		weft_coro_t *k[3];

		k[0] = make_copied(counts_to_three, NULL, NULL);
		REQUIRE(resume(k[0], 0).payload == (void *)1);
		REQUIRE(k[1] = weft_clone(k[0]));
		k[2] = make_copied(counts_to_three, NULL, NULL);
		for (int j = 0; j < 3; j++) {
			int now = order[i / 8][j];

			if (i >> j & 1)
				REQUIRE(!weft_returned(resume(k[now], 0)));
			weft_delete(k[now]);
		}
	}
}

static void *yields_much(void *argument)
{
	for (uint64_t i = 0;; i++)
		REQUIRE(weft_suspend((void *)i) == argument);
	return argument;
}

/* Its frames reach far below those of yields_much. */
static void *yields_deep(void *argument)
{
	volatile char room[6000];

	memset((char *)room, 42, sizeof room);
	for (uint64_t i = 0;; i++) {
		REQUIRE(weft_suspend((void *)i) == argument);
		for (size_t j = 0; j < sizeof room; j += 8)
			REQUIRE(room[j] == 42);
	}
	return argument;
}

static volatile sig_atomic_t signals;

static void on_alarm(int signal)
{
	volatile char room[3000];

	memset((char *)room, signal, sizeof room);
	signals++;
}

/* Signals arrive on any stack that the thread uses, also between the load of the stack pointer and the copying. */
static void under_signals(void)
{
	struct itimerval often = {{0, 40}, {0, 40}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	weft_coro_t *k[3];

	for (int i = 0; i < 3; i++)
		resume(k[i] = make_copied(i ? yields_much : yields_deep, NULL, NULL), 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (uint64_t n = 1; signals < 3000; n++)
		for (int i = 0; i < 3; i++)
			REQUIRE(resume(k[i], 0).payload == (void *)n);
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < 3; i++)
		weft_delete(k[i]);
}

static void *keeps_switching(void *stop)
{
	weft_coro_t *k[2] = {make_copied(yields_much, NULL, NULL), make_copied(yields_much, NULL, NULL)};

	while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
		for (int i = 0; i < 2; i++)
			resume(k[i], 0);
	for (int i = 0; i < 2; i++)
		weft_delete(k[i]);
	return NULL;
}

/* A child continues with this thread's coroutines, whatever other threads were doing. */
static void forks(void)
{
	int stop = 0, status;
	pthread_t thread;
	weft_coro_t *k = make_copied(counts_to_three, NULL, NULL), *other;

	REQUIRE(!pthread_create(&thread, NULL, keeps_switching, &stop));
	REQUIRE(resume(k, 0).payload == (void *)1);
	for (int i = 0; i < 100; i++) {
		pid_t child = fork();

		REQUIRE(child >= 0);
		if (!child) {
			other = make_copied(counts_to_three, NULL, NULL);
			REQUIRE(resume(other, 0).payload == (void *)1 && resume(k, 0).payload == (void *)2);
			_exit(weft_returned(resume(other, 0)) ? 1 : 0);
		}
		REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	weft_delete(k);
}

static void *clones_into(void *pair)
{
	weft_coro_t **k = pair;

	REQUIRE(!weft_clone_into(k[1], k[0]));
	return NULL;
}

/* The thread's first call of the library. */
static void new_threads(void)
{
	weft_coro_t *k[2] = {make_copied(counts_to_three, NULL, NULL)};
	pthread_t thread;

	resume(k[0], 0);
	k[1] = weft_clone(k[0]);
	REQUIRE(k[1]);
	for (int i = 0; i < 2; i++) {
		REQUIRE(resume(k[1], 0).payload == (void *)2);
		REQUIRE(!pthread_create(&thread, NULL, clones_into, k));
		pthread_join(thread, NULL);
	}
	REQUIRE(resume(k[1], 0).payload == (void *)2 && resume(k[0], 0).payload == (void *)2);
	weft_delete(k[0]);
	weft_delete(k[1]);
}

static void *exits_thread(void *argument)
{
	weft_coro_t *k = make_copied(identity_function, NULL, NULL);

	resume(k, 0);
	weft_delete(k);
	if (argument)
		pthread_exit(argument);
	return argument;
}

static void *leaves_some(void *argument)
{
	weft_coro_t **k = argument;

	for (int i = 0; i < 20; i++) {
		k[i] = make_copied(i == 19 ? exits_thread : counts_to_three, i == 19 ? k : NULL, NULL);
		if (i % 3)
			resume(k[i], 0);
	}
	resume(k[19], 0);
	return NULL;
}

/* Other threads reuse the resources of an ended thread, even if it ended inside a coroutine. */
static void ended_threads(void)
{
	weft_stack_stats_t before, after;
	weft_coro_t *k[20];
	pthread_t thread;

	for (int round = 0; round < 50; round++) {
		weft_stack_stats(WEFT_COPY, round < 10 ? &before : &after);
		REQUIRE(!pthread_create(&thread, NULL, leaves_some, k));
		pthread_join(thread, NULL);
		for (int i = 0; i < 19; i++) {
			REQUIRE(resume(k[i], 0).payload == (void *)(uintptr_t)(i % 3 ? 2 : 1));
			weft_delete(k[i]);
		}
		REQUIRE(weft_state(k[19]) == WEFT_FINISHED);
		weft_delete(k[19]);
	}
	REQUIRE(after.reserved < 2 * before.reserved);
}

enum { SLOTS = 256, WORKERS = 4, ROUNDS = 20000 };

static weft_coro_t *_Atomic handed[SLOTS];

static void *keeps_some(void *argument)
{
	volatile char live[9000];

	live[0] = live[sizeof live - 1] = 1;
	for (int i = 0; i < 5; i++)
		weft_suspend(NULL);
	return (char *)argument + live[0] + live[sizeof live - 1];
}

static void *hands_over(void *argument)
{
	uint64_t state = (uint64_t)argument;
	weft_coro_t *k;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t place = next(&state) % SLOTS;

		k = atomic_exchange(&handed[place], NULL);
		if (!k)
			k = make_copied(keeps_some, NULL, NULL);
		if (weft_returned(resume(k, 0)))
			weft_delete(k);
		else
			weft_delete(atomic_exchange(&handed[place], k));
	}
	return NULL;
}

/* Threads that pass coroutines to each other need as many regions as run at a time, not a region for each that is
 * passed. */
static void handed_over(void)
{
	weft_stack_stats_t before, after;
	pthread_t thread[WORKERS];

	weft_stack_stats(WEFT_COPY, &before);
	for (uint64_t i = 0; i < WORKERS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, hands_over, (void *)i));
	for (int i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	weft_stack_stats(WEFT_COPY, &after);
	/* A mebibyte for each region. A thread may find all its listed regions in use by other threads. Landings are
	 * small. */
	REQUIRE(after.reserved - before.reserved < (WORKERS * WORKERS + WORKERS + 2) << 20);
	for (int i = 0; i < SLOTS; i++)
		weft_delete(atomic_exchange(&handed[i], NULL));
	weft_stack_stats(WEFT_COPY, &after);
	REQUIRE(after.live == before.live);
}

static int busy, coming;

static void *takes_its_time(void *argument)
{
	weft_suspend(NULL);
	__atomic_store_n(&busy, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&coming, __ATOMIC_SEQ_CST))
		;
	usleep(50000);
	__atomic_store_n(&busy, 2, __ATOMIC_SEQ_CST);
	return argument;
}

static void *looks(void *argument)
{
	weft_suspend(NULL);
	return (void *)(uintptr_t)__atomic_load_n((int *)argument, __ATOMIC_SEQ_CST);
}

static void *resumes_when_busy(void *k)
{
	while (!__atomic_load_n(&busy, __ATOMIC_SEQ_CST))
		;
	__atomic_store_n(&coming, 1, __ATOMIC_SEQ_CST);
	return resume(k, 0).payload;
}

/* Two coroutines of one region never run at the same time, on any thread: the second waits. */
static void exclusion(void)
{
	weft_coro_t *k = make_copied(takes_its_time, NULL, NULL), *other = make_copied(looks, &busy, NULL);
	pthread_t thread;
	void *seen;

	resume(k, 0);
	resume(other, 0);
	REQUIRE(!pthread_create(&thread, NULL, resumes_when_busy, other));
	REQUIRE(weft_returned(resume(k, 0)));
	pthread_join(thread, &seen);
	REQUIRE(seen == (void *)2);
	weft_delete(k);
	weft_delete(other);
}

/* ---- size ------------------------------------------------------------------------------------------------------ */

static size_t resident(void)
{
	size_t pages = 0, unused;
	FILE *file = fopen("/proc/self/statm", "r");

	REQUIRE(file && fscanf(file, "%zu %zu", &unused, &pages) == 2);
	fclose(file);
	return pages * 4096;
}

/* A parked coroutine with a small stack needs less than a kilobyte in total. */
static void small_ones(void)
{
	enum { COUNT = 100000 };
	static weft_coro_t *k[COUNT];
	size_t before = resident(), each;

	for (int i = 0; i < COUNT; i++)
		resume(k[i] = make_copied(counts_to_three, NULL, NULL), 0);
	each = (resident() - before) / COUNT;
	printf("parked: %zu bytes each\n", each);
	REQUIRE(each < 1000);
	for (int i = 0; i < COUNT; i++)
		REQUIRE(resume(k[i], 0).payload == (void *)2);
	for (int i = 0; i < COUNT; i++)
		weft_delete(k[i]);
}

static void lazily(void)
{
	weft_stack_stats_t before, after;
	weft_coro_t *k = make_copied(counts_to_three, NULL, NULL), *other = make_copied(counts_to_three, NULL, NULL);

	resume(k, 0);
	weft_stack_stats(WEFT_COPY, &before);
	resume(k, 0);
	weft_stack_stats(WEFT_COPY, &after);
	REQUIRE(after.copied == before.copied);
	resume(other, 0);
	weft_stack_stats(WEFT_COPY, &after);
	REQUIRE(after.copied > before.copied && after.copied < before.copied + 1024);
	before = after;
	weft_delete(other);
	resume(k, 0); /* in only */
	weft_stack_stats(WEFT_COPY, &after);
	REQUIRE(after.copied > before.copied && after.copied < before.copied + 512);
	weft_delete(k);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static void *resumes_another(void *argument)
{
	resume(argument, 0);
	return NULL;
}

/* Both coroutines were first resumed from outside. */
static void inside(void)
{
	weft_coro_t *inner = make_copied(counts_to_three, NULL, "inner");

	resume(inner, 0);
	resume(make_copied(resumes_another, inner, "outer"), 0);
}

/* ---- ending a coroutine whose region another coroutine occupies -------------------------------------------------- */

static uint64_t on_pick(void *state, int choices)
{
	(void)state;
	return ask((uint64_t)choices);
}

static int tail_pick(void *state, int choices)
{
	return (int)on_pick(state, choices);
}

static void *general_pick(void *state, weft_resumption_t *k, int choices)
{
	return weft_continue(pick, k, (int)on_pick(state, choices));
}

static void *adds_one(void *state, void *answer, char *record)
{
	(void)state;
	(void)record;
	return (char *)answer + 1;
}

static int leaves_work(void *state, int choices)
{
	char record = 0;

	REQUIRE(!weft_on_answer(adds_one, &record));
	return tail_pick(state, choices);
}

WEFT_HANDLER(tails, weft_tail(pick, tail_pick));
WEFT_HANDLER(generals, weft_general(pick, general_pick));
WEFT_HANDLER(leaving, weft_tail(pick, leaves_work));
WEFT_HANDLER(multis, weft_multi(pick, general_pick));
static const weft_handler_t *const handlers[] = {&tails, &generals, &leaving, &multis};

static void *run_copied(const weft_handler_t *handler, weft_fn_t *body, void *arg)
{
	weft_attr_t attr = {.policy = WEFT_COPY};

	return weft_run_with(handler, NULL, body, arg, &attr);
}

/* The tens digit is the number of nested bodies, the units digit selects the handler. */
static void *waits_in_bodies(void *how)
{
	size_t n = (size_t)how;

	if (n < 10)
		return (void *)(uintptr_t)pick((int)n);
	return run_copied(handlers[n % 10], waits_in_bodies, (void *)(n - 10));
}

static weft_coro_t *waiting(weft_coro_t *k, size_t how)
{
	weft_attr_t attr = {.policy = WEFT_COPY, .name = "waits"};
	weft_request_t r;

	if (k)
		REQUIRE(!weft_init(k, waits_in_bodies, (void *)how, &attr));
	else
		k = make_copied(waits_in_bodies, (void *)how, "waits");
	r = weft_resume(k, NULL, weft_handles(ask));
	REQUIRE(weft_is(ask, r));
	return k;
}

static size_t live(void)
{
	weft_stack_stats_t stats;

	REQUIRE(!weft_stack_stats(WEFT_COPY, &stats));
	return stats.live;
}

/* Runs in the region of the coroutines that it ends. */
static void *ends_them(void *how)
{
	weft_coro_t **k = how, *fresh = make_copied(counts_to_three, NULL, NULL);

	weft_delete(k[0]);
	weft_reset(k[1], counts_to_three, NULL);
	REQUIRE(!weft_clone_into(k[2], fresh));
	weft_release(k[3]);
	weft_delete(fresh);
	return NULL;
}

static void occupied(void)
{
	for (size_t depth = 1; depth <= 3; depth++)
		for (size_t handler = 0; handler < 4; handler++) {
			size_t how = 10 * depth + handler, before = live();
			weft_coro_t embedded = {0},
				    *k[4] = {waiting(NULL, how), waiting(NULL, how), waiting(NULL, how),
					     waiting(&embedded, how)},
				    *ends = make_copied(ends_them, k, "ends");

			REQUIRE(weft_returned(resume(ends, 0)));
			weft_delete(ends);
			REQUIRE(resume(k[1], 0).effect == &weft_suspended);
			weft_delete(k[1]);
			REQUIRE(resume(k[2], 0).effect == &weft_suspended);
			weft_delete(k[2]);
			REQUIRE(live() == before);
		}
}

static sem_t both_run;
static weft_coro_t *one_of[2];
static pthread_barrier_t barrier;

static void *wants_the_others(void *other)
{
	pthread_barrier_wait(&barrier);
	resume(one_of[(size_t)other], 0);
	return NULL;
}

static void *runs_in_its_own(void *argument)
{
	size_t me = (size_t)argument;

	resume(one_of[me] = make_copied(counts_to_three, NULL, me ? "one" : "zero"), 0);
	pthread_barrier_wait(&barrier);
	resume(make_copied(wants_the_others, (void *)(1 - me), "waits"), 0);
	return NULL;
}

static void deadlock(void)
{
	pthread_t thread;

	sem_init(&both_run, 0, 0);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, runs_in_its_own, (void *)1);
	runs_in_its_own(NULL);
	pthread_join(thread, NULL);
}

static void *overflows(void *argument)
{
	return (void *)sink_deep((uint64_t)argument);
}

static void overflow(void)
{
	resume(make_copied(overflows, (void *)1000000, "too deep"), 0);
}

/* ---- in builds with WEFT_DEBUG ---------------------------------------------------------------------------------- */

static void poisoned(void)
{
	weft_coro_t *k = make_copied(deep, (void *)50, NULL), *other = make_copied(counts_to_three, NULL, NULL);
	weft_request_t r = weft_resume(k, NULL, weft_handles(ask));
	char seen[sizeof(weft_args_t(ask))];

	resume(other, 0);
	for (size_t i = 0; i < sizeof seen; i++)
		REQUIRE(((volatile unsigned char *)r.payload)[i] == 0xdb);
	REQUIRE(!weft_reply_to(k, ask, r, 1000));
	REQUIRE(resume(k, 0).payload == (void *)1051);
	weft_delete(k);
	weft_delete(other);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool returns;
} tests[] = {{"all_choices", all_choices, true},
	     {"identity", identity, true},
	     {"fresh_ones", fresh_ones, true},
	     {"refusals", refusals, true},
	     {"clone_into", clone_into, true},
	     {"late_replies", late_replies, true},
	     {"reply_after_clone", reply_after_clone, true},
	     {"bounds", bounds, true},
	     {"deep_recursion", deep_recursion, true},
	     {"every_order", every_order, true},
	     {"under_signals", under_signals, true},
	     {"forks", forks, true},
	     {"new_threads", new_threads, true},
	     {"ended_threads", ended_threads, true},
	     {"handed_over", handed_over, true},
	     {"exclusion", exclusion, true},
	     {"small_ones", small_ones, true},
	     {"lazily", lazily, true},
	     {"occupied", occupied, true},
	     {"inside", inside, false},
	     {"deadlock", deadlock, false},
	     {"overflow", overflow, false},
	     {"poisoned", poisoned, false}};

int main(int count, char **arguments)
{
	int run = 0;

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (count > 1 ? !strcmp(arguments[1], tests[i].name) : tests[i].returns) {
			tests[i].run();
			run++;
		}
	return run ? 0 : 2;
}
