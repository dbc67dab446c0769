/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tasks, scopes, cancellation, deadlines, and handlers between a task and its runtime. */
#include "check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

/* Compilers assume that pthread_self() is constant within a function, but a task moves between threads. */
__attribute__((noinline)) static pthread_t this_thread(void)
{
	__asm__ volatile("");
	return pthread_self();
}

/* ---- spawning and joining -------------------------------------------------------------------------------------- */

static void *doubles(void *number)
{
	weft_sleep(MS);
	*(int *)number *= 2;
	return number;
}

static void *a_scope_waits(void *pass)
{
	int numbers[100], i;

	WEFT_SCOPE(scope);
	for (i = 0; i < 100; i++) {
		numbers[i] = i;
		CHECK(weft_scope_spawn(&scope, doubles, &numbers[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_scope_wait(&scope) == 0); /* a second wait has nothing to wait for */
	for (i = 0; i < 100; i++)
		CHECK(numbers[i] == 2 * i);
	return pass;
}

static _Atomic bool may_double;

static void *doubles_when_told(void *number)
{
	while (!may_double)
		weft_sleep(MS / 10);
	return doubles(number);
}

static void *a_join_gets_the_result(void *pass)
{
	int number = 21;
	weft_task_t task;
	void *result;

	may_double = false;
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, doubles_when_told, &number, NULL) == 0);
	CHECK(weft_join_until(&task, NULL, 1) == -ETIMEDOUT);
	may_double = true;
	CHECK(weft_join(&task, &result) == 0);
	CHECK(result == &number && number == 42);
	CHECK(weft_join(&task, &result) == 0);
	weft_task_cancel(&task); /* the task has already ended */
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

static int detached_ran;

static void *detached(void *unused)
{
	weft_sleep(2 * MS);
	__atomic_fetch_add(&detached_ran, 1, __ATOMIC_RELAXED);
	return unused;
}

static void *spawns_detached(void *pass)
{
	detached_ran = 0;
	for (int i = 0; i < 10; i++)
		CHECK(weft_spawn_detached(detached, NULL, NULL) == 0);
	return pass;
}

/* The runtime waits for detached tasks. */
static void *detached_tasks_end(void *pass)
{
	void *result = NULL;

	/* Uses a runtime of its own, which blocks this worker. */
	CHECK(weft_rt_run(&(weft_rt_config_t){.workers = 2}, spawns_detached, pass, &result) == 0);
	CHECK(result == pass && detached_ran == 10);
	return pass;
}

static void *inner(void *depth)
{
	struct {
		int n;
	} *d = depth;
	int left = d->n - 1, right = left;

	WEFT_SCOPE(scope);
	if (d->n) {
		CHECK(weft_scope_spawn(&scope, inner, &left) == 0);
		CHECK(weft_scope_spawn(&scope, inner, &right) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return depth;
}

static void *a_tree_of_scopes(void *pass)
{
	int depth = 8;

	inner(&depth);
	return pass;
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

struct sleeper {
	uint64_t until;
	int *order, place;
};

static void *sleeps(void *argument)
{
	struct sleeper *s = argument;

	weft_sleep_until(s->until);
	CHECK(weft_now() >= s->until);
	s->place = __atomic_fetch_add(s->order, 1, __ATOMIC_RELAXED);
	return s;
}

static void *sleeping_is_never_shorter(void *pass)
{
	static const int ms[] = {5, 1, 0, 30, 3, 700, 2, 64, 17, 4};
	struct sleeper sleepers[10];
	uint64_t begin = weft_now();
	int order = 0, i, j;

	WEFT_SCOPE(scope);
	for (i = 0; i < 10; i++) {
		sleepers[i] = (struct sleeper){begin + (uint64_t)ms[i] * MS / 10, &order, 0};
		CHECK(weft_scope_spawn(&scope, sleeps, &sleepers[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_now() >= begin + 70 * MS);
	/* The order is certain only in simulated time. */
	if (weft_now() == begin + 70 * MS)
		for (i = 0; i < 10; i++)
			for (j = 0; j < 10; j++)
				CHECK(ms[i] >= ms[j] || sleepers[i].place < sleepers[j].place);
	return pass;
}

static void *many_timers(void *pass)
{
	enum { N = 3000 };
	struct sleeper *sleepers = calloc(N, sizeof *sleepers);
	uint64_t begin = weft_now(), x = 1;
	int order = 0, i;

	CHECK(sleepers);
	WEFT_SCOPE(scope);
	for (i = 0; i < N; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		sleepers[i] = (struct sleeper){begin + (x >> 33) % (100 * MS), &order, 0};
		CHECK(weft_scope_spawn(&scope, sleeps, &sleepers[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(order == N);
	free(sleepers);
	return pass;
}

/* The timers are close together. In a simulation all of them are in the wheel's current tick, ahead of its time. */
static void *timers_of_one_tick(void *pass)
{
	enum { N = 200 };
	struct sleeper sleepers[N];
	uint64_t begin = weft_now();
	int order = 0, i;

	WEFT_SCOPE(scope);
	for (i = 0; i < N; i++) {
		sleepers[i] = (struct sleeper){begin + 1000 + 7 * (uint64_t)i, &order, 0};
		CHECK(weft_scope_spawn(&scope, sleeps, &sleepers[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(order == N);
	return pass;
}

struct limited {
	weft_event_t *event;
	uint64_t deadline;
	int result;
};

static void *waits_in_time(void *limited)
{
	struct limited *l = limited;

	l->result = weft_event_wait_until(l->event, l->deadline);
	return l;
}

/* Half of the timers are disarmed after the wheel has moved them between its lists; the other timers must not
 * be lost. */
static void *timers_are_disarmed_where_they_moved(void *pass)
{
	enum { N = 400 };
	static struct limited limited[N];
	weft_event_t events[2] = {0};
	uint64_t begin = weft_now();
	int i;

	WEFT_SCOPE(scope);
	for (i = 0; i < N; i++) {
		limited[i] = (struct limited){&events[i % 2], begin + 100 * MS + (uint64_t)i * MS / 100, 1};
		CHECK(weft_scope_spawn(&scope, waits_in_time, &limited[i]) == 0);
	}
	for (i = 0; i < 95; i++)
		weft_sleep_until(begin + (uint64_t)i * MS);
	weft_event_set(&events[0]);
	CHECK(weft_scope_wait(&scope) == 0);
	for (i = 0; i < N; i++)
		CHECK(limited[i].result == -ETIMEDOUT || (i % 2 == 0 && limited[i].result == 0));
	return pass;
}

/* ---- cancellation ---------------------------------------------------------------------------------------------- */

static void count(int *cleanups)
{
	weft_sleep(MS); /* cleanups may wait like other code */
	++*cleanups;
}

static void *sleeps_for_ever(void *cleanups)
{
	weft_defer(count, (int *)cleanups);
	weft_sleep(1000000 * SECOND);
	CHECK(!"cancelled");
	return cleanups;
}

static void *fails(void *error)
{
	weft_sleep(2 * MS);
	weft_task_fail(*(int *)error);
}

static void *the_first_error_cancels_the_others(void *pass)
{
	int cleanups[3] = {0}, error = -EIO;

	WEFT_SCOPE(scope);
	for (int i = 0; i < 3; i++)
		CHECK(weft_scope_spawn(&scope, sleeps_for_ever, &cleanups[i]) == 0);
	CHECK(weft_scope_spawn(&scope, fails, &error) == 0);
	CHECK(weft_scope_wait(&scope) == -EIO);
	CHECK(cleanups[0] == 1 && cleanups[1] == 1 && cleanups[2] == 1);
	CHECK(!weft_task_is_cancelled() && weft_sleep(1) == 0);
	return pass;
}

static void *a_deadline_cancels(void *pass)
{
	int cleanups = 0;

	WEFT_SCOPE_UNTIL(outer, weft_now() + 1000 * SECOND);
	{
		WEFT_SCOPE_UNTIL(scope, weft_now() + 3 * MS);
		CHECK(weft_scope_spawn(&scope, sleeps_for_ever, &cleanups) == 0);
		CHECK(weft_sleep(1000 * SECOND) == -ECANCELED);
		CHECK(weft_task_is_cancelled());
		CHECK(weft_sleep(1) == -ECANCELED && weft_task_yield() == -ECANCELED);
		CHECK(weft_scope_spawn(&scope, doubles, NULL) == -ETIMEDOUT);
		CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
	}
	CHECK(cleanups == 1);
	CHECK(!weft_task_is_cancelled() && weft_sleep(1) == 0);
	CHECK(weft_scope_wait(&outer) == 0);
	return pass;
}

static void *leaving_a_scope_cancels(void *pass)
{
	int cleanups = 0;

	for (int i = 0; i < 3; i++) {
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, sleeps_for_ever, &cleanups) == 0);
		weft_sleep(MS);
		if (i == 1)
			break;
	}
	CHECK(cleanups == 2);
	return pass;
}

static void *one_task_is_cancelled(void *pass)
{
	int cleanups = 0, number = 4;
	weft_task_t cancelled, other;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &cancelled, sleeps_for_ever, &cleanups, NULL) == 0);
	CHECK(weft_scope_spawn_with(&scope, &other, doubles, &number, NULL) == 0);
	weft_sleep(MS / 2);
	weft_task_cancel(&cancelled);
	weft_task_cancel(&cancelled);
	CHECK(weft_join(&cancelled, NULL) == -ECANCELED);
	CHECK(weft_join(&other, NULL) == 0 && number == 8);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(cleanups == 1);
	return pass;
}

/* A task that is cancelled while its own scope is open cancels that scope's tasks. */
static void *has_children(void *cleanups)
{
	weft_defer(count, (int *)cleanups);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sleeps_for_ever, (int *)cleanups + 1) == 0);
	CHECK(weft_scope_spawn(&scope, sleeps_for_ever, (int *)cleanups + 2) == 0);
	(void)weft_scope_wait(&scope);
	weft_sleep(1);
	CHECK(!"told at its next wait");
	return NULL;
}

static void *cancellation_goes_down(void *pass)
{
	int cleanups[3] = {0};
	weft_task_t task;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, has_children, cleanups, NULL) == 0);
	weft_sleep(2 * MS);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, NULL) == -ECANCELED);
	CHECK(cleanups[0] == 1 && cleanups[1] == 1 && cleanups[2] == 1);
	return pass;
}

struct shield {
	atomic_int cancelled;
	int done;
};

static void *shielded(void *state)
{
	struct shield *s = state;

	weft_shield_begin();
	while (!atomic_load(&s->cancelled))
		CHECK(weft_sleep(MS) == 0);
	CHECK(weft_sleep(MS) == 0);
	s->done = 1;
	weft_shield_end();
	weft_sleep(1);
	CHECK(!"cancelled when the shield ended");
	return NULL;
}

static void *a_shield_holds(void *pass)
{
	weft_task_t task;
	struct shield s = {0};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, shielded, &s, NULL) == 0);
	weft_sleep(MS);
	weft_task_cancel(&task);
	atomic_store(&s.cancelled, 1);
	CHECK(weft_join(&task, NULL) == -ECANCELED && s.done);
	return pass;
}

static void *told_by_codes(void *told)
{
	while (weft_sleep(MS) == 0)
		;
	CHECK(weft_sleep(MS) == -ECANCELED && weft_task_yield() == -ECANCELED);
	*(int *)told = 1;
	return told;
}

static void *codes_instead_of_unwinding(void *pass)
{
	weft_task_attr_t attr = {.flags = WEFT_TASK_CODES};
	weft_task_t task;
	int told = 0;
	void *result;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, told_by_codes, &told, &attr) == 0);
	weft_sleep(3 * MS);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, &result) == 0 && told && result == &told);
	return pass;
}

static void *tells(void *state)
{
	*(int *)state += 1;
	return NULL;
}

WEFT_HANDLER(catches, weft_abort(weft_cancelled, tells));

static void *sleeps_long(void *unused)
{
	weft_sleep(1000 * SECOND);
	return unused;
}

static void *catches_it(void *caught)
{
	weft_run(&catches, caught, sleeps_long, NULL);
	CHECK(*(int *)caught == 1);
	CHECK(weft_task_is_cancelled());
	return NULL;
}

static void *a_handler_catches_cancellation(void *pass)
{
	weft_task_t task;
	int caught = 0;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, catches_it, &caught, NULL) == 0);
	weft_sleep(MS);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, NULL) == 0 && caught == 1);
	return pass;
}

/* If a task catches its cancellation, each later wait reports it again. Its cleanups may wait nevertheless. */
static void waits_to_clean(void *cleaned)
{
	CHECK(weft_sleep(MS) == 0 && weft_task_yield() == 0);
	*(int *)cleaned += 1;
}

static void *sleeps_and_cleans(void *cleaned)
{
	weft_defer(waits_to_clean, cleaned);
	return sleeps_long(cleaned);
}

static void *catches_again_and_again(void *numbers_)
{
	int *numbers = numbers_;

	weft_run(&catches, &numbers[0], sleeps_long, NULL);
	weft_run(&catches, &numbers[0], sleeps_long, NULL);
	weft_run(&catches, &numbers[0], sleeps_and_cleans, &numbers[1]);
	weft_run(&catches, &numbers[0], sleeps_and_cleans, &numbers[1]);
	numbers[2] = 1;
	weft_sleep(1000 * SECOND);
	numbers[2] = 2;
	return NULL;
}

static void *a_caught_cancellation_is_told_again(void *pass)
{
	weft_task_t task;
	int numbers[3] = {0};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, catches_again_and_again, numbers, NULL) == 0);
	weft_sleep(MS);
	weft_task_cancel(&task);
	CHECK(weft_join(&task, NULL) == -ECANCELED);
	CHECK(numbers[0] == 4 && numbers[1] == 2 && numbers[2] == 1);
	return pass;
}

/* A coroutine that a task deletes runs its cleanups completely, even if the task is cancelled meanwhile. */
struct deletion {
	weft_event_t cleans, goes_on;
	int cleaned;
};

static void cleans_slowly(struct deletion *d)
{
	weft_event_set(&d->cleans);
	CHECK(weft_event_wait(&d->goes_on) == 0);
	d->cleaned++;
}

static void *suspends_with_cleanup(void *deletion)
{
	weft_defer(cleans_slowly, (struct deletion *)deletion);
	weft_suspend(NULL);
	return NULL;
}

static void *deletes_one(void *deletion)
{
	struct deletion *d = deletion;
	weft_coro_t *k = weft_create(suspends_with_cleanup, d);

	CHECK(k);
	weft_resume(k, NULL, weft_handles());
	weft_delete(k);
	d->cleaned += 10;
	weft_sleep(1000 * SECOND);
	d->cleaned += 100;
	return NULL;
}

static void *deletions_clean_up_to_the_end(void *pass)
{
	struct deletion d = {0};
	weft_task_t task;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, deletes_one, &d, NULL) == 0);
	CHECK(weft_event_wait(&d.cleans) == 0);
	weft_task_cancel(&task);
	weft_event_set(&d.goes_on);
	CHECK(weft_join(&task, NULL) == -ECANCELED && d.cleaned == 11);
	return pass;
}

/* At the ordinary end of its scope, a cleanup waits in each of these ways, and is not cancelled. The next wait after
 * the cleanup is cancelled. */
struct ending {
	weft_event_t cleans, goes_on;
	weft_mutex_t mutex;
	bool in_body;
	int cleaned, after;
};

static void cleans_last(struct ending *e)
{
	CHECK(weft_sleep(1000) == 0);
	e->cleaned++;
}

static void cleans_first(struct ending *e)
{
	weft_defer(cleans_last, e);
	weft_event_set(&e->cleans);
	CHECK(weft_event_wait(&e->goes_on) == 0 && weft_sleep(1000) == 0);
	CHECK(weft_task_yield() == 0 && weft_mutex_lock(&e->mutex) == 0);
	e->cleaned++;
}

static void *cleans(void *ending)
{
	weft_defer(cleans_first, (struct ending *)ending);
	return NULL;
}

static void *ends_in_order(void *ending)
{
	struct ending *e = ending;

	if (e->in_body)
		(void)weft_run(&catches, NULL, cleans, e);
	else
		(void)cleans(e);
	e->after++;
	weft_sleep(1000 * SECOND);
	e->after++;
	return NULL;
}

static void *scopes_clean_up_to_the_end(void *pass)
{
	for (int way = 0; way < 4; way++) {
		struct ending e = {.in_body = way & 1};
		weft_task_t task;

		WEFT_SCOPE(scope);
		CHECK(weft_mutex_lock(&e.mutex) == 0);
		CHECK(weft_scope_spawn_with(&scope, &task, ends_in_order, &e, NULL) == 0);
		CHECK(weft_event_wait(&e.cleans) == 0);
		if (way & 2)
			weft_task_cancel(&task);
		else
			weft_scope_cancel(&scope, -ECANCELED);
		weft_event_set(&e.goes_on);
		weft_shield_begin();
		CHECK(weft_sleep(5000000) == 0 && weft_mutex_unlock(&e.mutex) == 0);
		weft_shield_end();
		CHECK(weft_join(&task, NULL) == -ECANCELED && e.cleaned == 2 && e.after == 1);
	}
	return pass;
}

/* A deadline is set, moved and removed while tasks run. */
static void *sleeps_3_ms(void *unused)
{
	CHECK(weft_sleep(3000000) == 0);
	return unused;
}

static void *moves_anothers(void *scope)
{
	CHECK(weft_scope_set_deadline(scope, 1) == -EPERM);
	return NULL;
}

static void deadline_is_set(void)
{
	weft_task_t task;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &task, sleeps_long, NULL, NULL) == 0);
	CHECK(weft_scope_set_deadline(&scope, weft_now() + 1000 * SECOND) == 0);
	CHECK(weft_scope_set_deadline(&scope, weft_now() + 2000000) == 0);
	CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
	CHECK(weft_join(&task, NULL) == -ETIMEDOUT);
	CHECK(weft_scope_set_deadline(&scope, WEFT_NEVER) == -EINVAL);
}

static void deadline_is_taken_away(void)
{
	WEFT_SCOPE_UNTIL(scope, weft_now() + 1000000);
	CHECK(weft_scope_set_deadline(&scope, WEFT_NEVER) == 0);
	CHECK(weft_scope_spawn(&scope, sleeps_3_ms, NULL) == 0);
	CHECK(weft_scope_spawn(&scope, moves_anothers, &scope) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

static void deadline_is_over(void)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_set_deadline(&scope, weft_now()) == 0);
	CHECK(weft_scope_spawn(&scope, sleeps_3_ms, NULL) == -ETIMEDOUT);
	CHECK(weft_task_check() == -ECANCELED && weft_sleep(1) == -ECANCELED);
	CHECK(weft_scope_set_deadline(&scope, WEFT_NEVER) == -ETIMEDOUT);
	CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
	CHECK(weft_task_check() == 0);
}

static void *a_deadline_moves(void *pass)
{
	deadline_is_set();
	deadline_is_taken_away();
	deadline_is_over();
	return pass;
}

/* Ticks every 10 ms of a clock that the handlers keep. The work after the second and the third tick takes 27 ms.
 * Records when the ticks come, in ms. */
static uint64_t reads_clock(void *now)
{
	return *(uint64_t *)now;
}

static void moves_clock(void *now, weft_waiter_t *w)
{
	if (w->timer.at > *(uint64_t *)now)
		*(uint64_t *)now = w->timer.at;
	CHECK(weft_waiter_claim(w, -ETIMEDOUT));
}

WEFT_HANDLER(keeps_clock, weft_tail(weft_op_now, reads_clock), weft_tail(weft_op_wait, moves_clock));

static void *ticks(void *now)
{
	static const struct {
		weft_missed_t missed;
		unsigned at[8];
	} cases[] = {
	    {WEFT_TICK_BURST, {10, 20, 47, 74, 74, 74, 74, 80}},
	    {WEFT_TICK_DELAY, {10, 20, 47, 74, 84, 94, 104, 114}},
	    {WEFT_TICK_SKIP, {10, 20, 47, 74, 80, 90, 100, 110}},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		*(uint64_t *)now = 1000 * MS;

		weft_ticker_t ticker = weft_ticker(10 * MS, cases[i].missed);

		for (unsigned tick = 0; tick < 8; tick++) {
			CHECK(weft_ticker_wait(&ticker) == 0);
			CHECK(weft_now() == (1000 + cases[i].at[tick]) * MS);
			if (tick == 1 || tick == 2)
				CHECK(weft_sleep(27 * MS) == 0);
		}
	}
	return now;
}

static void *tickers_keep_their_rhythm(void *pass)
{
	weft_ticker_t ticker = weft_ticker(MS, WEFT_TICK_BURST);
	uint64_t begun = weft_now(), now;

	(void)weft_run(&keeps_clock, &now, ticks, &now);
	CHECK(weft_ticker_wait(&ticker) == 0 && weft_ticker_wait(&ticker) == 0);
	CHECK(weft_now() - begun >= 2 * MS - 1);
	return pass;
}

/* A task that checks for its cancellation without waiting. */
struct checking {
	weft_task_t task;
	int passed;
};

static void checks_nothing(struct checking *c)
{
	CHECK(weft_task_check() == 0);
	c->passed += 100;
}

static void *checks(void *checking)
{
	struct checking *c = checking;

	weft_defer(checks_nothing, c);
	c->passed += weft_task_check() == 0;
	weft_task_cancel(&c->task);
	weft_shield_begin();
	c->passed += weft_task_check() == 0;
	weft_shield_end();
	c->passed += weft_task_check() == -ECANCELED ? 10 : 0;
	return NULL;
}

static void *a_check_ends_a_task(void *pass)
{
	static const weft_task_attr_t codes = {.flags = WEFT_TASK_CODES};
	struct checking c = {.passed = 0};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &c.task, checks, &c, NULL) == 0);
	CHECK(weft_join(&c.task, NULL) == -ECANCELED && c.passed == 102);
	c.passed = 0;
	CHECK(weft_scope_spawn_with(&scope, &c.task, checks, &c, &codes) == 0);
	CHECK(weft_join(&c.task, NULL) == 0 && c.passed == 112);
	return pass;
}

/* The scope reports the first failure, not the failure of a cleanup. */
static void fails_to_clean(void *unused)
{
	(void)unused;
	weft_task_fail(-EPIPE);
}

static void *fails_twice(void *unused)
{
	weft_defer(fails_to_clean, unused);
	weft_task_fail(-EIO);
	return unused;
}

static void *the_first_failure_counts(void *pass)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, fails_twice, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == -EIO);
	return pass;
}

/* ---- the effects are open -------------------------------------------------------------------------------------- */

static uint64_t frozen(void *now)
{
	return *(uint64_t *)now;
}

static int counted(void *yields)
{
	++*(int *)yields;
	return weft_op_yield();
}

static int renamed(void *spawned, struct weft_spawn *what)
{
	weft_task_attr_t attr = {.coro.name = "renamed"};

	what->attr = &attr;
	++*(int *)spawned;
	return weft_op_spawn(what);
}

WEFT_HANDLER(time_stands_still, weft_tail(weft_op_now, frozen));
WEFT_HANDLER(counts_yields, weft_tail(weft_op_yield, counted));
WEFT_HANDLER(names_tasks, weft_tail(weft_op_spawn, renamed));

static void *looks_at_the_clock(void *unused)
{
	CHECK(weft_now() == 5);
	return unused;
}

static void *yields(void *unused)
{
	for (int i = 0; i < 10; i++)
		CHECK(weft_task_yield() == 0);
	return unused;
}

static void *has_a_name(void *unused)
{
	CHECK(!strcmp(weft_task_name(), "renamed"));
	return unused;
}

static void *spawns_one(void *unused)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, has_a_name, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return unused;
}

static void *handlers_in_between(void *pass)
{
	uint64_t now = 5;
	int yielded = 0, spawned = 0;

	weft_run(&time_stands_still, &now, looks_at_the_clock, NULL);
	weft_run(&counts_yields, &yielded, yields, NULL);
	weft_run(&names_tasks, &spawned, spawns_one, NULL);
	CHECK(yielded == 10 && spawned == 1);
	return pass;
}

/* A round-robin scheduler of the user, inside a task, which polls its waits. */
struct own {
	weft_coro_t *k;
	weft_waiter_t *waits;
	bool woken;
};

static void wake_own(weft_waiter_t *w)
{
	((struct own *)w->owner)->woken = true;
}

static bool step_own(struct own *o)
{
	weft_request_t r;

	if (o->waits && !o->woken)
		return true;
	o->waits = NULL;
	r = weft_resume(o->k, NULL, weft_handles(weft_op_wait, weft_op_yield));
	if (weft_returned(r))
		return false;
	if (weft_is(weft_op_yield, r))
		return true;
	o->waits = weft_args(weft_op_wait, r)->waiter;
	o->waits->wake = wake_own;
	o->waits->owner = o;
	o->woken = !weft_waiter_park(o->waits);
	return true;
}

static weft_mutex_t own_mutex;
static int own_inside, own_rounds;

static void *uses_a_mutex(void *unused)
{
	for (int i = 0; i < 100; i++) {
		CHECK(weft_mutex_lock(&own_mutex) == 0);
		CHECK(!own_inside++);
		weft_task_yield();
		own_inside--;
		own_rounds++;
		CHECK(weft_mutex_unlock(&own_mutex) == 0);
	}
	return unused;
}

static void *a_scheduler_of_ones_own(void *pass)
{
	struct own own[5] = {0};
	int left = 5, i;

	own_rounds = 0;
	for (i = 0; i < 5; i++)
		CHECK((own[i].k = weft_create(uses_a_mutex, NULL)));
	while (left)
		for (i = 0; i < 5; i++)
			if (own[i].k && !step_own(&own[i])) {
				weft_delete(own[i].k);
				own[i].k = NULL;
				left--;
			}
	CHECK(own_rounds == 500);
	return pass;
}

/* ---- the rest -------------------------------------------------------------------------------------------------- */

static void *keeps_its_own(void *argument)
{
	CHECK(weft_task_local(1) == NULL);
	CHECK(weft_task_set_local(1, argument) == 0);
	for (int i = 0; i < 20; i++) {
		weft_task_yield();
		CHECK(weft_task_local(1) == argument);
	}
	return argument;
}

static void *locals(void *pass)
{
	int many[20];

	WEFT_SCOPE(scope);
	for (int i = 0; i < 20; i++)
		CHECK(weft_scope_spawn(&scope, keeps_its_own, &many[i]) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_task_set_local(WEFT_LOCAL_KEYS, pass) == -EINVAL && !weft_task_local(WEFT_LOCAL_KEYS));
	return pass;
}

static void *blocks(void *thread)
{
	pthread_t before = this_thread();

	weft_blocking
	{
		struct timespec ms = {0, MS};

		weft_blocking
		{
			nanosleep(&ms, NULL);
		}
		*(bool *)thread = !pthread_equal(before, this_thread());
		weft_sleep(MS); /* sleeps between its turns */
	}
	return thread;
}

static void *helpers_block(void *pass)
{
	bool moved[20];

	WEFT_SCOPE(scope);
	for (int i = 0; i < 20; i++)
		CHECK(weft_scope_spawn(&scope, blocks, &moved[i]) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

static int released[2];

static void *blocks_until_released(void *unused)
{
	char byte;

	weft_blocking
	{
		CHECK(read(released[0], &byte, 1) == 1);
	}
	return unused;
}

static void *releases(void *count)
{
	static const char bytes[32];

	weft_blocking
	{
		CHECK(write(released[1], bytes, (size_t)count) == (ssize_t)count);
	}
	return count;
}

static void block_and_release(size_t count)
{
	WEFT_SCOPE(scope);
	for (size_t i = 0; i < count; i++)
		CHECK(weft_scope_spawn(&scope, blocks_until_released, NULL) == 0);
	CHECK(weft_scope_spawn(&scope, releases, (void *)count) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
}

/* Each round has one more task than idle helpers, and the last task releases the other tasks. */
static void *helpers_need_each_other(void *config)
{
	if (!((weft_rt_config_t *)config)->workers)
		return config; /* simulated: weft_blocking does nothing */
	CHECK(pipe(released) == 0);
	for (size_t count = 0; count < 32; count++) {
		block_and_release(count);
		CHECK(weft_sleep(2 * MS) == 0);
	}
	close(released[0]);
	close(released[1]);
	return config;
}

/* The name that top, ps and debuggers show. */
static void name_is(const char *expected)
{
	char name[32] = "";
	FILE *file = fopen("/proc/thread-self/comm", "r");

	CHECK(file && fgets(name, sizeof name, file) && fclose(file) == 0);
	CHECK(!strncmp(name, expected, strlen(expected)));
}

static void *threads_have_names(void *config)
{
	if (!((weft_rt_config_t *)config)->workers)
		return config; /* simulated tasks run on the program's own thread */
	name_is("weft-");
	weft_blocking
	{
		name_is("weft-blocking");
	}
	return config;
}

/* The program prepares each worker's thread itself. */
static __thread unsigned prepared;

static void prepares(unsigned worker, void *count)
{
	prepared = worker + 1;
	__atomic_add_fetch((unsigned *)count, 1, __ATOMIC_RELAXED);
}

static __attribute__((noinline)) unsigned preparation(void)
{
	return prepared;
}

static void *is_prepared(void *unused)
{
	for (int i = 0; i < 10; i++) {
		CHECK(preparation());
		weft_task_yield();
	}
	return unused;
}

static void *needs_preparation(void *pass)
{
	WEFT_SCOPE(scope);
	for (int i = 0; i < 20; i++)
		CHECK(weft_scope_spawn(&scope, is_prepared, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

static void *workers_are_prepared(void *pass)
{
	unsigned count = 0;
	weft_rt_config_t config = {.workers = 3, .worker_begins = prepares, .worker_arg = &count};

	CHECK(weft_rt_run(&config, needs_preparation, pass, NULL) == 0 && count == 3);
	return pass;
}

struct pinned {
	unsigned worker;
	pthread_t *threads;
};

static void *stays(void *argument)
{
	struct pinned *p = argument;
	pthread_t here = this_thread();

	for (int i = 0; i < 50; i++) {
		if (i % 10)
			weft_task_yield();
		else
			weft_sleep(MS / 20);
		CHECK(pthread_equal(here, this_thread()));
	}
	p->threads[p->worker] = here;
	return p;
}

static void *pins(void *pass)
{
	pthread_t threads[4];
	struct pinned pinned[4];

	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < 4; i++) {
		weft_task_attr_t attr = {.worker = i + 1};

		pinned[i] = (struct pinned){i, threads};
		CHECK(weft_scope_spawn_with(&scope, NULL, stays, &pinned[i], &attr) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return pass;
}

static void *dumps(void *pass)
{
	char text[4096];
	int pipes[2], cleanups = 0, turns = 0;
	weft_task_attr_t attr = {.coro.name = "patient"};

	CHECK(pipe(pipes) == 0);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, NULL, sleeps_for_ever, &cleanups, &attr) == 0);
	CHECK(weft_dump(-1) == -EBADF);
	do { /* the worker decides when the task begins */
		weft_sleep(2 * MS);
		memset(text, 0, sizeof text);
		CHECK(weft_dump(pipes[1]) == 0);
		CHECK(read(pipes[0], text, sizeof text - 1) > 0);
	} while (!strstr(text, "\"patient\": waits for sleep") && ++turns < 1000);
	close(pipes[0]);
	close(pipes[1]);
	CHECK(strstr(text, "\"patient\": waits for sleep"));
	CHECK(strstr(text, "bytes of stack"));
	CHECK(strstr(text, "2 tasks"));
	CHECK(strstr(text, "worker 0: "));
	return pass;
}

/* A plain thread makes the last task of a runtime ready, and the runtime ends before the thread's call returns. */
struct last {
	weft_event_t event;
	uint32_t waits, over;
};

/* The worker stays awake, and takes the task before the thread wakes the worker. */
static void *stays_awake(void *argument)
{
	struct last *l = argument;

	while (!__atomic_load_n(&l->over, __ATOMIC_RELAXED))
		weft_task_yield();
	return l;
}

static void *waits_for_thread(void *argument)
{
	struct last *l = argument;

	CHECK(weft_spawn_detached(stays_awake, l, NULL) == 0);
	__atomic_store_n(&l->waits, 1, __ATOMIC_RELEASE);
	CHECK(weft_event_wait(&l->event) == 0);
	__atomic_store_n(&l->over, 1, __ATOMIC_RELAXED);
	return l;
}

static void *sets_from_thread(void *argument)
{
	struct last *l = argument;

	while (!__atomic_load_n(&l->waits, __ATOMIC_ACQUIRE))
		sched_yield();
	weft_event_set(&l->event);
	return NULL;
}

static void *a_thread_wakes_the_last(void *pass)
{
	for (int i = 0; i < 20; i++) {
		struct last l = {.waits = 0};
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, sets_from_thread, &l) == 0);
		CHECK(weft_rt_run(&(weft_rt_config_t){.workers = 1}, waits_for_thread, &l, NULL) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	return pass;
}
enum { CROWD = 1000 }; /* more than a worker has room for */

static void *joins_crowd(void *count)
{
	__atomic_fetch_add((int *)count, 1, __ATOMIC_RELAXED);
	return count;
}

/* A task that yields again and again lets all tasks that it has spawned run. */
static void *yielding_lets_a_crowd_run(void *pass)
{
	const time_t limit = time(NULL) + 5; /* another worker has some tasks, and its thread may not be running */
	long turns = 0;
	int count = 0;

	WEFT_SCOPE(scope);
	for (int i = 0; i < CROWD; i++)
		CHECK(weft_scope_spawn(&scope, joins_crowd, &count) == 0);
	while (__atomic_load_n(&count, __ATOMIC_RELAXED) < CROWD && (++turns < 1000000 || time(NULL) < limit))
		weft_task_yield();
	CHECK(__atomic_load_n(&count, __ATOMIC_RELAXED) == CROWD);
	return pass;
}

struct awake {
	uint64_t begin;
	int slept; /* atomic */
};

enum { SLEEPERS = 100, YIELDERS = 600 /* more tasks than a worker has room for */ };

static void *sleeps_once(void *argument)
{
	struct awake *a = argument;

	weft_sleep(MS);
	__atomic_fetch_add(&a->slept, 1, __ATOMIC_RELAXED);
	return a;
}

/* Simulated time stands still in this loop. */
static void *yields_until_all_slept(void *argument)
{
	struct awake *a = argument;
	uint64_t passed = 0;

	for (int turns = 0; __atomic_load_n(&a->slept, __ATOMIC_RELAXED) < SLEEPERS; turns++) {
		if (turns >= 2 && ((passed = weft_now() - a->begin) == 0 || passed > 10000 * MS))
			break;
		weft_task_yield();
	}
	CHECK(passed <= 10000 * MS);
	return a;
}

/* A worker that always has a ready task still ends its timers. */
static void *yielding_lets_timers_end(void *pass)
{
	struct awake a = {.begin = weft_now()};

	WEFT_SCOPE(scope);
	for (int i = 0; i < SLEEPERS; i++)
		CHECK(weft_scope_spawn(&scope, sleeps_once, &a) == 0);
	for (int i = 0; i < YIELDERS; i++)
		CHECK(weft_scope_spawn(&scope, yields_until_all_slept, &a) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(a.slept == SLEEPERS);
	return pass;
}

static const struct test tests[] = {
    T(a_scope_waits),
    T(a_join_gets_the_result),
    T(a_tree_of_scopes),
    T(yielding_lets_a_crowd_run),
    T(yielding_lets_timers_end),
    T(sleeping_is_never_shorter),
    T(many_timers),
    T(timers_of_one_tick),
    T(timers_are_disarmed_where_they_moved),
    T(the_first_error_cancels_the_others),
    T(a_deadline_cancels),
    T(leaving_a_scope_cancels),
    T(one_task_is_cancelled),
    T(cancellation_goes_down),
    T(a_shield_holds),
    T(codes_instead_of_unwinding),
    T(a_handler_catches_cancellation),
    T(a_caught_cancellation_is_told_again),
    T(deletions_clean_up_to_the_end),
    T(scopes_clean_up_to_the_end),
    T(a_deadline_moves),
    T(a_check_ends_a_task),
    T(tickers_keep_their_rhythm),
    T(the_first_failure_counts),
    T(handlers_in_between),
    T(a_scheduler_of_ones_own),
    T(locals),
    T(pins),
    T(dumps),
    T(a_thread_wakes_the_last),
    T(helpers_need_each_other),
    T(helpers_block),
    T(threads_have_names),
    T(workers_are_prepared),
    T(detached_tasks_end),
};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
