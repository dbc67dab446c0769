/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Messages of a runtime: a deadlock, tasks that do not let other tasks run, a dump upon a signal.
 *
 *   watch NAME [WORKERS]
 *
 * Each test is a process of its own, because it depends on its number of threads or prints messages.
 */
#define _GNU_SOURCE
#include "check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>

static void spin(uint64_t nanoseconds)
{
	uint64_t end = weft_now() + nanoseconds;

	while (weft_now() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
}

/* ---- deadlock --------------------------------------------------------------------------------------------------- */

struct locks {
	weft_mutex_t a, b;
	int held, cleanups; /* atomic */
};

static void counts(struct locks *l)
{
	__atomic_fetch_add(&l->cleanups, 1, __ATOMIC_RELAXED);
}

static void wait_until_both_are_held(struct locks *l)
{
	__atomic_fetch_add(&l->held, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&l->held, __ATOMIC_RELAXED) < 2)
		weft_sleep(MS);
}

static void *takes_a_then_b(void *argument)
{
	struct locks *l = argument;

	weft_defer(counts, l);
	CHECK(weft_mutex_lock(&l->a) == 0);
	wait_until_both_are_held(l);
	(void)weft_mutex_lock(&l->b);
	CHECK(!"reached");
	return NULL;
}

static void *takes_b_then_a(void *argument)
{
	struct locks *l = argument;

	weft_defer(counts, l);
	CHECK(weft_mutex_lock(&l->b) == 0);
	wait_until_both_are_held(l);
	(void)weft_mutex_lock(&l->a);
	CHECK(!"reached");
	return NULL;
}

static void *locks_in_two_orders(void *argument)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, takes_a_then_b, argument) == 0);
	CHECK(weft_scope_spawn(&scope, takes_b_then_a, argument) == 0);
	CHECK(weft_scope_wait(&scope) == -ECANCELED);
	return NULL;
}

static int deadlock(const weft_rt_config_t *config)
{
	struct locks l;

	memset(&l, 0, sizeof l);
	CHECK(weft_rt_run(config, locks_in_two_orders, &l, NULL) == -EDEADLK);
	CHECK(l.cleanups == 2);
	return 0;
}

/* A detached task waits for ever, and the first task has succeeded. */
static void *waits_for_nobody(void *event)
{
	(void)weft_event_wait(event);
	CHECK(!"reached");
	return NULL;
}

static void *leaves_one_behind(void *event)
{
	CHECK(weft_spawn_detached(waits_for_nobody, event, NULL) == 0);
	return NULL;
}

static int lost_task(const weft_rt_config_t *config)
{
	weft_event_t event;

	memset(&event, 0, sizeof event);
	CHECK(weft_rt_run(config, leaves_one_behind, &event, NULL) == -EDEADLK);
	return 0;
}

/* When cancelled, the task waits again. The runtime reports it a second time, and abandons it. */
static void *does_not_give_up(void *event)
{
	CHECK(weft_event_wait(event) == -ECANCELED);
	weft_shield_begin();
	(void)weft_event_wait(event);
	CHECK(!"reached");
	return NULL;
}

static void *leaves_a_stubborn_one(void *event)
{
	weft_task_attr_t attr = {.flags = WEFT_TASK_CODES};

	CHECK(weft_spawn_detached(does_not_give_up, event, &attr) == 0);
	return event;
}

static int again(const weft_rt_config_t *config)
{
	static weft_event_t event;
	void *result = NULL;

	CHECK(weft_rt_run(config, leaves_a_stubborn_one, &event, &result) == -EDEADLK && result == &event);
	return weft_rt_run(config, leaves_a_stubborn_one, &event, NULL) == -EDEADLK ? 0 : -EINVAL;
}

/* ---- no deadlock ------------------------------------------------------------------------------------------------ */

static void *waits(void *event)
{
	CHECK(weft_event_wait(event) == 0);
	return event;
}

static void *sets_late(void *event)
{
	nanosleep(&(struct timespec){.tv_nsec = 300 * (long)MS}, NULL);
	weft_event_set(event);
	return NULL;
}

static int thread_sets(const weft_rt_config_t *config)
{
	weft_event_t event;
	pthread_t thread;

	memset(&event, 0, sizeof event);
	CHECK(pthread_create(&thread, NULL, sets_late, &event) == 0);
	CHECK(weft_rt_run(config, waits, &event, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}

static void *blocks_then_sets(void *event)
{
	weft_blocking
	{
		nanosleep(&(struct timespec){.tv_nsec = 300 * (long)MS}, NULL);
	}
	weft_event_set(event);
	return NULL;
}

static void *sleeps_then_sets(void *event)
{
	CHECK(weft_sleep(300 * MS) == 0);
	weft_event_set(event);
	return NULL;
}

static void *waits_for_others(void *event)
{
	CHECK(weft_spawn_detached(blocks_then_sets, event, NULL) == 0);
	waits(event);
	weft_event_reset(event);
	CHECK(weft_spawn_detached(sleeps_then_sets, event, NULL) == 0);
	return waits(event);
}

static int tasks_set(const weft_rt_config_t *config)
{
	weft_event_t event;

	memset(&event, 0, sizeof event);
	return weft_rt_run(config, waits_for_others, &event, NULL);
}

/* The runtime searches for the reason of a standstill once. Afterwards the process uses no time, and nothing
 * wakes it. */
static void *idles(void *event)
{
	weft_rt_stats_t before, after;
	uint64_t parks, least = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		CHECK(weft_rt_stats(&before) == 0);
		weft_event_reset(event);
		CHECK(weft_event_wait(event) == 0);
		CHECK(weft_rt_stats(&after) == 0);
		parks = after.parks - before.parks;
		least = parks < least ? parks : least;
	}
	/* A worker parks in these 600 ms after its one search, and after its wakeup; other workers may be woken
	 * besides. The test takes the least of three values: on a busy machine another worker may watch a worker that
	 * gets no processor, and park for that. */
	CHECK(least <= 2 + 2 * after.workers);
	return event;
}

static void *sets_three_times(void *event)
{
	for (int i = 0; i < 3; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 600 * (long)MS}, NULL);
		weft_event_set(event);
	}
	return NULL;
}

static int looks_once(const weft_rt_config_t *config)
{
	weft_event_t event;
	pthread_t thread;

	memset(&event, 0, sizeof event);
	CHECK(pthread_create(&thread, NULL, sets_three_times, &event) == 0);
	CHECK(weft_rt_run(config, idles, &event, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}

/* ---- doing nothing ---------------------------------------------------------------------------------------------- */

/* How often the kernel has switched to another thread and back, summed over all threads of the process except
 * the caller. */
static long switches_of_others(void)
{
	struct rusage all, mine;

	CHECK(!getrusage(RUSAGE_SELF, &all) && !getrusage(RUSAGE_THREAD, &mine));
	return all.ru_nvcsw + all.ru_nivcsw - mine.ru_nvcsw - mine.ru_nivcsw;
}

static void pause_for(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * (long)MS}, NULL);
}

/* All threads of the runtime come to rest: the kernel does not switch to a sleeping thread. */
static void *sees_nothing(void *event)
{
	long before, after = -1;
	int tries = 0;

	do {
		CHECK(tries++ < 20 || !"the workers have fallen asleep");
		before = switches_of_others();
		pause_for(300);
		after = switches_of_others();
	} while (after != before);
	pause_for(700);
	CHECK(switches_of_others() == before || !"the workers stay asleep");
	weft_event_set(event);
	return NULL;
}

static void *waits_for_event(void *event)
{
	CHECK(weft_event_wait(event) == 0);
	return event;
}

static void *sleeps_for_an_hour(void *unused)
{
	weft_sleep(3600 * SECOND);
	return unused;
}

static void *all_wait(void *event)
{
	pthread_t thread;

	WEFT_SCOPE(scope);
	WEFT_SCOPE(sleepers);
	for (int i = 0; i < 100; i++)
		CHECK(weft_scope_spawn(&scope, waits_for_event, event) == 0);
	CHECK(weft_scope_spawn(&sleepers, sleeps_for_an_hour, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, sees_nothing, event) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	weft_scope_cancel(&sleepers, -ECANCELED);
	return NULL;
}

static int sleeps_when_idle(const weft_rt_config_t *config)
{
	weft_event_t event;

	memset(&event, 0, sizeof event);
	return weft_rt_run(config, all_wait, &event, NULL);
}

/* ---- a dump upon a signal, and tasks that keep their worker ------------------------------------------------------ */

static volatile sig_atomic_t handled;

static void handles(int number)
{
	handled = number;
}

static void *is_busy(void *unused)
{
	CHECK(kill(getpid(), SIGQUIT) == 0);
	spin(300 * MS);
	return unused;
}

static void *all_are_busy(void *config)
{
	weft_task_attr_t attr = {.coro.name = "busy"};

	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < ((weft_rt_config_t *)config)->workers; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, is_busy, NULL, &attr) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return NULL;
}

static int dumps_while_busy(const weft_rt_config_t *config)
{
	weft_rt_config_t asking = *config;
	struct sigaction action;

	CHECK(signal(SIGQUIT, handles) != SIG_ERR);
	asking.dump_signal = SIGQUIT;
	CHECK(weft_rt_run(&asking, all_are_busy, &asking, NULL) == 0);
	CHECK(handled == SIGQUIT);
	CHECK(sigaction(SIGQUIT, NULL, &action) == 0 && action.sa_handler == handles);
	asking.dump_signal = 9999;
	CHECK(weft_rt_run(&asking, all_are_busy, &asking, NULL) == -EINVAL);
	asking.dump_signal = SIGKILL;
	CHECK(weft_rt_run(&asking, all_are_busy, &asking, NULL) == -EINVAL);
	return 0;
}

static void *spins(void *unused)
{
	spin(300 * MS);
	return unused;
}

static void *yields_for_long(void *unused)
{
	uint64_t end = weft_now() + 300 * MS;

	while (weft_now() < end)
		CHECK(weft_task_yield() == 0);
	return unused;
}

static void *spawns_greedy(void *unused)
{
	weft_task_attr_t attr = {.coro.name = "greedy"};

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, NULL, spins, NULL, &attr) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	yields_for_long(NULL);
	return unused;
}

static int stuck(const weft_rt_config_t *config)
{
	weft_rt_config_t asking = *config;

	asking.stuck_after = 100 * MS;
	return weft_rt_run(&asking, spawns_greedy, NULL, NULL);
}

/* ---- dumps while tasks run: a task must not continue while the dump reads it ------------------------------------- */

struct pair {
	weft_chan_t *there, *back;
	long rounds; /* atomic */
};

enum { PAIRS = 8 };

struct pairs {
	struct pair pair[PAIRS];
	weft_rt_t *rt;
};

static __attribute__((noinline)) int answer(struct pair *p, int depth)
{
	char room[64];
	int item, error;

	memset(room, depth, sizeof room);
	if (depth)
		return answer(p, depth - 1) + room[5] - depth;
	error = weft_chan_receive_until(p->there, &item, weft_now() + 100 * SECOND);
	return error ? error : weft_chan_send(p->back, &item);
}

static void *answers(void *pair)
{
	while (answer(pair, 5) == 0)
		;
	return NULL;
}

static void *asks(void *pair)
{
	struct pair *p = pair;
	int item = 0;

	while (weft_chan_send(p->there, &item) == 0 && weft_chan_receive(p->back, &item) == 0)
		__atomic_fetch_add(&p->rounds, 1, __ATOMIC_RELAXED);
	return NULL;
}

static bool all_have_run(struct pairs *all)
{
	for (int i = 0; i < PAIRS; i++)
		if (!__atomic_load_n(&all->pair[i].rounds, __ATOMIC_RELAXED))
			return false;
	return true;
}

static void naps(void *unused)
{
	(void)unused;
	weft_sleep(MS);
}

static void *cleans_up(void *event)
{
	weft_defer(naps, NULL);
	weft_event_wait(event);
	return NULL;
}

/* Tasks that begin, and are cancelled, while the dump reads them. */
static void *comes_and_goes(void *unused)
{
	weft_event_t never = {0};
	weft_task_t task;

	for (;;) {
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn_with(&scope, &task, cleans_up, &never, NULL) == 0);
		weft_task_yield();
		weft_task_cancel(&task);
		weft_join(&task, NULL);
	}
	return unused;
}

/* Runs for a second, and until each pair has had its turn, which may take long on a busy machine. */
static void *dumps_often(void *argument)
{
	struct pairs *all = argument;
	uint64_t end = weft_now() + SECOND;

	while (weft_now() < end || !all_have_run(all))
		CHECK(weft_rt_dump(all->rt, 3) == 0);
	return NULL;
}

static void *are_dumped(void *unused)
{
	struct pairs all = {.rt = weft_rt_current()};
	pthread_t thread;

	WEFT_SCOPE(scope);
	for (int i = 0; i < PAIRS; i++) {
		struct pair *p = &all.pair[i];

		p->there = weft_chan_make(sizeof(int), 0);
		p->back = weft_chan_make(sizeof(int), 0);
		CHECK(p->there && p->back);
		CHECK(weft_scope_spawn(&scope, answers, p) == 0);
		CHECK(weft_scope_spawn(&scope, asks, p) == 0);
	}
	CHECK(weft_scope_spawn(&scope, comes_and_goes, NULL) == 0);
	CHECK(pthread_create(&thread, NULL, dumps_often, &all) == 0);
	weft_blocking
	{
		CHECK(pthread_join(thread, NULL) == 0);
	}
	weft_scope_cancel(&scope, -ECANCELED);
	CHECK(weft_scope_wait(&scope) == -ECANCELED);
	for (int i = 0; i < PAIRS; i++) {
		CHECK(weft_chan_free(all.pair[i].there) == 0 && weft_chan_free(all.pair[i].back) == 0);
	}
	return unused;
}

static int dumped(const weft_rt_config_t *config)
{
	CHECK(dup2(open("/dev/null", O_WRONLY), 3) == 3);
	return weft_rt_run(config, are_dumped, NULL, NULL);
}

/* ---- counting ---------------------------------------------------------------------------------------------------- */

static size_t living(void)
{
	weft_rt_stats_t stats;

	CHECK(weft_rt_stats(&stats) == 0);
	return stats.live;
}

static void *spawns_while_it_blocks(void *event)
{
	weft_blocking
	{
		CHECK(weft_spawn_detached(waits, event, NULL) == 0);
	}
	return NULL;
}

static void *counts_tasks(void *unused)
{
	weft_event_t event;
	int i;

	memset(&event, 0, sizeof event);
	CHECK(living() == 1);
	WEFT_SCOPE(scope);
	for (i = 0; i < 100; i++)
		CHECK(weft_scope_spawn(&scope, waits, &event) == 0);
	CHECK(weft_scope_spawn(&scope, spawns_while_it_blocks, &event) == 0);
	CHECK(weft_rt_spawn(weft_rt_current(), waits, &event, NULL) == 0);
	while (living() != 103)
		weft_sleep(MS);
	weft_event_set(&event);
	CHECK(weft_scope_wait(&scope) == 0);
	while (living() != 1)
		weft_sleep(MS);
	return unused;
}

static int counting(const weft_rt_config_t *config)
{
	CHECK(weft_simulate(1, NULL, counts_tasks, NULL, NULL) == 0);
	return weft_rt_run(config, counts_tasks, NULL, NULL);
}

/* ---- a tree of tasks is walked in depth: few tasks live at a time ----------------------------------------------- */

struct branch {
	long leaves;
	size_t *most;
};

static void *branches(void *argument)
{
	struct branch *b = argument, parts[10];
	size_t now, most = __atomic_load_n(b->most, __ATOMIC_RELAXED);

	if (b->leaves == 1) {
		now = living();
		while (now > most &&
		       !__atomic_compare_exchange_n(b->most, &most, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
		return NULL;
	}
	WEFT_SCOPE(scope);
	for (int i = 0; i < 10; i++) {
		parts[i] = (struct branch){b->leaves / 10, b->most};
		CHECK(weft_scope_spawn(&scope, branches, &parts[i]) == 0);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return NULL;
}

/* With WEFT_TASK_FIRST the child runs before its parent continues, and few tasks live even if no task waits
 * for them. */
struct firsts {
	long started, order, late;
	size_t most;
};

static void *counts_itself(void *argument)
{
	struct firsts *f = argument;
	size_t now = living();

	if (now > f->most)
		f->most = now;
	f->order++;
	return NULL;
}

static void *starts_many(void *argument)
{
	weft_task_attr_t attr = {.flags = WEFT_TASK_FIRST};
	struct firsts *f = argument;

	for (int i = 0; i < 10000; i++) {
		f->started++;
		CHECK(weft_spawn_detached(counts_itself, f, &attr) == 0);
		f->late += f->order != f->started;
	}
	weft_blocking
	{
		f->started++; /* the flag is only a hint: this child ran later */
		CHECK(weft_spawn_detached(counts_itself, f, &attr) == 0);
	}
	return NULL;
}

static int runs_first(const weft_rt_config_t *config)
{
	weft_rt_config_t one = *config;
	struct firsts f = {0};

	one.workers = 1;
	CHECK(weft_rt_run(&one, starts_many, &f, NULL) == 0);
	dprintf(1, "# %ld of %ld late, %zu tasks at once\n", f.late, f.order, f.most);
	CHECK(f.order == 10001 && f.late < 100 && f.most < 100);
	return 0;
}

/* A walk in breadth would need 2000 tasks; 46 for each worker are enough. */
static int walks_in_depth(const weft_rt_config_t *config)
{
	size_t most = 0;
	struct branch root = {100000, &most};

	CHECK(weft_rt_run(config, branches, &root, NULL) == 0);
	dprintf(1, "# %zu tasks at once\n", most);
	CHECK(most < 1000);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const weft_rt_config_t *config);
} tests[] = {
    {"deadlock", deadlock},
    {"lost_task", lost_task},
    {"again", again},
    {"thread_sets", thread_sets},
    {"tasks_set", tasks_set},
    {"looks_once", looks_once},
    {"sleeps_when_idle", sleeps_when_idle},
    {"dumps_while_busy", dumps_while_busy},
    {"stuck", stuck},
    {"dumped", dumped},
    {"counting", counting},
    {"walks_in_depth", walks_in_depth},
    {"runs_first", runs_first},
};

int main(int argc, char **argv)
{
	weft_rt_config_t config = {.workers = argc > 2 ? (unsigned)atoi(argv[2]) : 2};
	int error = -EINVAL;

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (argc > 1 && !strcmp(argv[1], tests[i].name))
			error = tests[i].run(&config);
	if (error)
		printf("not ok - %s\n", strerror(-error));
	else
		printf("ok\n");
	return error != 0;
}
