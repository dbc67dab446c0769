/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runtimes in an event loop of the program, which uses poll or edge-triggered epoll. */
#include "loop.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

static bool readable(struct loop *l, int timeout)
{
	return look(l, timeout) == 1;
}

/* Steps the runtime until a task sets *done. */
static void turn(struct loop *l, const bool *done)
{
	while (!__atomic_load_n(done, __ATOMIC_ACQUIRE)) {
		CHECK(readable(l, PATIENCE));
		l->steps++;
		while (weft_rt_step(l->rt, MS) == 1)
			;
	}
}

static void *sets(void *flag)
{
	__atomic_store_n((bool *)flag, true, __ATOMIC_RELEASE);
	return NULL;
}

static void nothing_to_do(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	bool done = false;

	CHECK(!readable(&l, 0));
	CHECK(weft_rt_step(l.rt, WEFT_NEVER) == 0);
	CHECK(!readable(&l, 0));
	CHECK(weft_rt_spawn(l.rt, sets, &done, NULL) == 0);
	CHECK(weft_rt_close(l.rt) == -EBUSY);
	CHECK(weft_dump(1) == -EPERM && weft_rt_dump(l.rt, 1) == 0); /* prints a dump outside of tasks */
	CHECK(readable(&l, 0));
	CHECK(weft_rt_step(l.rt, 0) == 0 && done);
	CHECK(!readable(&l, 0));
	close_loop(&l);
}

static void *sleeps(void *done)
{
	uint64_t begin = weft_now();

	for (int i = 0; i < 5; i++)
		CHECK(weft_sleep(2 * MS) == 0);
	CHECK(weft_now() - begin >= 10 * MS);
	return sets(done);
}

/* Each timer that ends costs one step, and no more. */
static void timers(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	bool done = false;

	CHECK(weft_rt_spawn(l.rt, sleeps, &done, NULL) == 0);
	turn(&l, &done);
	CHECK(l.steps <= 12);
	close_loop(&l);
}

static void *yields(void *count)
{
	for (int i = 0; i < 1000; i++) {
		++*(int *)count;
		weft_task_yield();
	}
	return NULL;
}

static void a_budget(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	int count = 0;

	CHECK(weft_rt_spawn(l.rt, yields, &count, NULL) == 0);
	CHECK(weft_rt_step(l.rt, 0) == 1 && count == 1);
	CHECK(readable(&l, 0));
	CHECK(weft_rt_step(l.rt, 0) == 1 && count == 2);
	CHECK(readable(&l, 0));
	CHECK(weft_rt_step(l.rt, WEFT_NEVER) == 0 && count == 1000);
	CHECK(!readable(&l, 0));
	close_loop(&l);
}

static void *waits_for(void *event)
{
	CHECK(weft_event_wait(event) == 0);
	return NULL;
}

static void *happens(void *event)
{
	weft_event_set(event);
	return NULL;
}

/* The budget is used up when the only task that can run has just been woken. */
static void a_budget_before_the_woken(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	weft_event_t event = {0};

	CHECK(weft_rt_spawn(l.rt, waits_for, &event, NULL) == 0);
	CHECK(weft_rt_step(l.rt, 0) == 0);
	CHECK(weft_rt_spawn(l.rt, happens, &event, NULL) == 0);
	CHECK(weft_rt_step(l.rt, 0) == 1);
	CHECK(readable(&l, PATIENCE));
	CHECK(weft_rt_step(l.rt, 0) == 0);
	close_loop(&l);
}

static void *spawns_one(void *done)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sets, done) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return NULL;
}

/* The budget is used up when that task has just been spawned. */
static void a_budget_before_the_spawned(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	bool done = false;

	CHECK(weft_rt_spawn(l.rt, spawns_one, &done, NULL) == 0);
	CHECK(weft_rt_step(l.rt, 0) == 1 && !done);
	CHECK(readable(&l, PATIENCE));
	CHECK(weft_rt_step(l.rt, 0) == 1 && done);
	close_loop(&l);
}

struct pace {
	weft_event_t go;
	bool looked, napping;
};

static void *naps(void *argument)
{
	struct pace *p = argument;

	p->napping = true;
	CHECK(weft_sleep(MS * 9 / 10) == 0);
	return NULL;
}

static void *computes_and_yields(void *argument)
{
	struct pace *p = argument;
	const uint64_t until = weft_now() + 3 * MS;

	while (weft_now() < until)
		;
	weft_sleep(1); /* at this wait, the worker measures how long the turn took */
	p->looked = true;
	CHECK(weft_event_wait(&p->go) == 0);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, naps, p) == 0);
	weft_task_yield();
	CHECK(weft_scope_wait(&scope) == 0);
	return NULL;
}

/* The budget is used up when that task has yielded, and a timer is about to end. A worker that has run long tasks rests
 * until its next timer, except if no other worker can run its tasks. */
static void a_budget_after_long_tasks(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	struct pace p = {0};

	CHECK(weft_rt_spawn(l.rt, computes_and_yields, &p, NULL) == 0);
	do
		CHECK(readable(&l, PATIENCE) && weft_rt_step(l.rt, WEFT_NEVER) == 0);
	while (!p.looked);
	weft_event_set(&p.go);
	CHECK(weft_rt_step(l.rt, 0) == 1 && !p.napping);
	CHECK(weft_rt_step(l.rt, 0) == 1 && p.napping);
	CHECK(readable(&l, PATIENCE));
	close_loop(&l);
}

/* ---- other threads ---------------------------------------------------------------------------------------------- */

enum { THREADS = 4, PER_THREAD = 25000 };

struct crowd {
	struct loop loop;
	weft_chan_t *items;
	long received, spawned;
	bool done;
};

static void *counts(void *argument)
{
	struct crowd *c = argument;

	c->spawned++; /* not atomic: one thread runs all tasks */
	return NULL;
}

static void *receives(void *argument)
{
	struct crowd *c = argument;
	int item;

	while (c->received < THREADS * PER_THREAD && weft_chan_receive(c->items, &item) == 0)
		c->received++;
	return sets(&c->done);
}

/* The thread's sends wake a task from outside, once for each item. */
static void *sends(void *argument)
{
	struct crowd *c = argument;

	for (int i = 0; i < PER_THREAD; i++) {
		CHECK(weft_chan_send(c->items, &i) == 0);
		if (i % 100 == 0)
			CHECK(weft_rt_spawn(c->loop.rt, counts, c, NULL) == 0);
	}
	return NULL;
}

static void threads_wake_it(bool by_epoll)
{
	struct crowd c = {.loop = open_loop(by_epoll), .items = weft_chan_make(sizeof(int), 0)};
	pthread_t threads[THREADS];

	CHECK(weft_rt_spawn(c.loop.rt, receives, &c, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, sends, &c) == 0);
	turn(&c.loop, &c.done);
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	close_loop(&c.loop);
	CHECK(c.received == THREADS * PER_THREAD && c.spawned == THREADS * PER_THREAD / 100);
	CHECK(weft_chan_free(c.items) == 0);
}

static void *blocks(void *done)
{
	for (int i = 0; i < 100; i++)
		weft_blocking
		{
			if (i == 50)
				CHECK(weft_sleep(MS) == 0); /* on a helper thread: the timer belongs to the loop */
		}
	return sets(done);
}

static void helpers(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	bool done = false;

	CHECK(weft_rt_spawn(l.rt, blocks, &done, NULL) == 0);
	turn(&l, &done);
	close_loop(&l);
}

/* ---- cancelling, and mistakes ----------------------------------------------------------------------------------- */

struct ending {
	bool begun, ended;
};

static void end(struct ending *e)
{
	CHECK(weft_sleep(MS) == 0); /* a cleanup may wait */
	sets(&e->ended);
}

static void *waits(void *argument)
{
	struct ending *e = argument;
	weft_event_t never = {0};

	weft_defer(end, e);
	sets(&e->begun);
	weft_event_wait(&never);
	return NULL;
}

static void *cancels(void *argument)
{
	struct loop *l = argument;

	weft_rt_cancel(l->rt);
	weft_rt_cancel(l->rt);
	return NULL;
}

static void everything_is_cancelled(bool by_epoll)
{
	struct loop l = open_loop(by_epoll);
	struct ending endings[10] = {{0}};
	pthread_t thread;

	for (int i = 0; i < 10; i++) {
		CHECK(weft_rt_spawn(l.rt, waits, &endings[i], NULL) == 0);
		turn(&l, &endings[i].begun);
	}
	CHECK(pthread_create(&thread, NULL, cancels, &l) == 0);
	for (int i = 0; i < 10; i++)
		turn(&l, &endings[i].ended);
	CHECK(pthread_join(thread, NULL) == 0);
	close_loop(&l);
}

enum { CANCELS = 1000 };

static void *waits_for_ever(void *unused)
{
	weft_event_t never = {0};

	weft_event_wait(&never);
	return unused;
}

static void *cancels_each(void *runtime)
{
	weft_rt_t *_Atomic *shared = runtime, *rt;

	for (int i = 0; i < CANCELS; i++) {
		while (!(rt = atomic_exchange(shared, NULL)))
			sched_yield();
		weft_rt_cancel(rt);
	}
	return NULL;
}

/* The cancelled task is the last task: the runtime may be closed before weft_rt_cancel returns. */
static void cancelled_and_closed(bool by_epoll)
{
	weft_rt_t *_Atomic shared = NULL;
	pthread_t thread;
	weft_rt_t *rt;

	(void)by_epoll;
	CHECK(pthread_create(&thread, NULL, cancels_each, &shared) == 0);
	for (int i = 0; i < CANCELS; i++) {
		CHECK(weft_rt_open(NULL, &rt) == 0);
		CHECK(weft_rt_spawn(rt, waits_for_ever, NULL, NULL) == 0);
		CHECK(weft_rt_step(rt, WEFT_NEVER) == 0 && weft_rt_close(rt) == -EBUSY);
		atomic_store(&shared, rt);
		while (weft_rt_close(rt) == -EBUSY)
			CHECK(weft_rt_step(rt, WEFT_NEVER) >= 0);
	}
	CHECK(pthread_join(thread, NULL) == 0);
}

static void *steps(void *argument)
{
	struct loop *l = argument;

	CHECK(weft_rt_step(l->rt, 0) == -EBUSY);
	CHECK(weft_rt_close(l->rt) == -EBUSY);
	CHECK(weft_rt_step(weft_rt_current(), 0) == -EBUSY);
	return NULL;
}

static void *a_loop_in_a_task(void *argument)
{
	struct loop l = open_loop(false);
	bool done = false;

	CHECK(weft_rt_fd(weft_rt_current()) == -EINVAL);
	CHECK(weft_rt_spawn(l.rt, sleeps, &done, NULL) == 0);
	turn(&l, &done);
	close_loop(&l);
	return argument;
}

static void mistakes(bool by_epoll)
{
	const weft_rt_config_t two = {.workers = 2};
	struct loop l = open_loop(by_epoll);
	struct rlimit files, none;
	weft_rt_t *rt;

	CHECK(weft_rt_open(&two, &rt) == -EINVAL);
	CHECK(weft_rt_spawn(l.rt, steps, &l, NULL) == 0);
	CHECK(weft_rt_step(l.rt, WEFT_NEVER) == 0);
	CHECK(weft_rt_run(NULL, a_loop_in_a_task, NULL, NULL) == 0);
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	none = files;
	none.rlim_cur = 0;
	CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
	CHECK(weft_rt_open(NULL, &rt) == -EMFILE);
	CHECK(setrlimit(RLIMIT_NOFILE, &files) == 0);
	CHECK(weft_rt_close(NULL) == 0);
	close_loop(&l);
}

int main(int argc, char **argv)
{
	static const struct loop_test tests[] = {
	    {"nothing_to_do", nothing_to_do},
	    {"timers", timers},
	    {"a_budget", a_budget},
	    {"a_budget_before_the_woken", a_budget_before_the_woken},
	    {"a_budget_before_the_spawned", a_budget_before_the_spawned},
	    {"a_budget_after_long_tasks", a_budget_after_long_tasks},
	    {"threads_wake_it", threads_wake_it},
	    {"helpers", helpers},
	    {"everything_is_cancelled", everything_is_cancelled},
	    {"cancelled_and_closed", cancelled_and_closed},
	    {"mistakes", mistakes},
	    {NULL, NULL},
	};

	return run_loop_tests(tests, argc, argv);
}
