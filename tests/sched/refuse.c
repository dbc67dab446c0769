/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that uses most functions while requests for memory, threads and descriptors are refused: see refusing.h.
 *
 *   refuse all | one K WIDTH | workers
 */
#define _GNU_SOURCE
#include "refusing.h"

#include <fcntl.h>

/* ---- a program that does a bit of everything -------------------------------------------------------------------- */

enum { ITEMS = 100, KB = 1024 };

static bool is_documented(int error)
{
	return !error || error == -ENOMEM || error == -EAGAIN || error == -ECANCELED || error == -EPIPE;
}

#define MAY_FAIL(expression)                                                                                           \
	do {                                                                                                           \
		int may_fail = (expression);                                                                           \
		CHECK(is_documented(may_fail));                                                                        \
		if (may_fail)                                                                                          \
			weft_task_fail(may_fail);                                                                      \
	} while (0)

static __attribute__((noinline)) size_t uses_stack(size_t bytes)
{
	volatile char frame[KB];

	memset((char *)frame, 1, sizeof frame);
	return bytes > KB ? uses_stack(bytes - KB) + (size_t)frame[3] : (size_t)frame[4];
}

static void *sends(void *chan)
{
	for (int i = 0; i < ITEMS; i++)
		MAY_FAIL(weft_chan_send(chan, &i));
	weft_chan_close(chan);
	return chan;
}

static void *receives(void *chan)
{
	weft_case_t c = {.chan = chan};
	int item, next = 0;

	c.receive = &item;
	for (;;) {
		if (next % 2)
			MAY_FAIL(weft_select(&c, 1));
		else
			c.status = weft_chan_receive(chan, &item);
		if (c.status == -EPIPE)
			return chan;
		CHECK(!c.status && item == next++);
	}
}

static void free_chan(weft_chan_t *chan)
{
	CHECK(weft_chan_free(chan) == 0);
}

static weft_chan_t *make_chan(size_t capacity)
{
	weft_chan_t *chan = weft_chan_make(sizeof(int), capacity);

	MAY_FAIL(chan ? 0 : -ENOMEM);
	return chan;
}

static void *talks(void *capacity)
{
	weft_chan_t *chan = make_chan((size_t)capacity);

	weft_defer(free_chan, chan);
	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, receives, chan));
	MAY_FAIL(weft_scope_spawn(&scope, sends, chan));
	MAY_FAIL(weft_scope_wait(&scope));
	return capacity;
}

static void *works(void *argument)
{
	int before = 7;

	CHECK(weft_task_set_local(1, argument) == 0);
	uses_stack(40 * KB);
	weft_sleep(10000);
	weft_blocking
	{
		CHECK(weft_task_local(1) == argument && before == 7);
	}
	weft_task_yield();
	CHECK(weft_task_local(1) == argument);
	return argument;
}

static void *naps(void *argument)
{
	weft_sleep(argument ? SECOND : 1000);
	return argument;
}

static void *waits(void *event)
{
	MAY_FAIL(weft_event_wait(event));
	return event;
}

static void *with_policies(void *argument)
{
	static const weft_policy_t policies[] = {WEFT_FIXED, WEFT_OVERCOMMIT, WEFT_COMMIT, WEFT_COPY, WEFT_COMMIT};
	weft_task_attr_t attr;
	weft_task_t t[5];
	void *result;
	int error;

	WEFT_SCOPE(scope);
	for (unsigned i = 0; i < 5; i++) {
		attr = (weft_task_attr_t){.coro = {.policy = policies[i]}, .worker = i % 3, .flags = i % 4};
		MAY_FAIL(weft_scope_spawn_with(&scope, &t[i], works, &t[i], &attr));
	}
	for (unsigned i = 0; i < 5; i++) {
		error = weft_join(&t[i], &result);
		CHECK(is_documented(error) && (error || result == &t[i]));
	}
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static void *has_a_deadline(void *argument)
{
	int error;

	WEFT_SCOPE_UNTIL(scope, weft_now() + MS);
	error = weft_scope_spawn(&scope, naps, argument);
	if (error != -ETIMEDOUT) /* the deadline has already passed */
		MAY_FAIL(error);
	error = weft_scope_wait(&scope);
	CHECK(error == -ETIMEDOUT || error == -ENOMEM || weft_task_is_cancelled());
	return argument;
}

/* Its stack must grow while tasks of its scope live, which refer to its frames. */
static void *grows_with_tasks(void *argument)
{
	weft_event_t grown = {0};

	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, waits, &grown));
	MAY_FAIL(weft_scope_spawn(&scope, waits, &grown));
	weft_task_yield();
	uses_stack(60 * KB);
	weft_event_set(&grown);
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static void dump(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), error;

	CHECK(fd >= 0);
	error = weft_dump(fd);
	CHECK(!error || error == -ENOMEM);
	close(fd);
}

static void *everything(void *argument)
{
	weft_task_attr_t commit = {.coro = {.policy = WEFT_COMMIT, .stack_size = 256 * KB}};
	int error;

	error = weft_spawn_detached(naps, NULL, NULL);
	CHECK(is_documented(error));
	WEFT_SCOPE(scope);
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)0));
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)3));
	MAY_FAIL(weft_scope_spawn(&scope, talks, (void *)WEFT_UNBOUNDED));
	MAY_FAIL(weft_scope_spawn(&scope, with_policies, NULL));
	MAY_FAIL(weft_scope_spawn_with(&scope, NULL, grows_with_tasks, NULL, &commit));
	MAY_FAIL(weft_scope_spawn(&scope, has_a_deadline, argument));
	dump();
	MAY_FAIL(weft_scope_wait(&scope));
	return argument;
}

static int run_threads(void)
{
	weft_rt_config_t config = {.workers = 2, .dump_signal = SIGUSR1, .stuck_after = 100 * SECOND};
	void *result = NULL;
	int error;

	weft_stack_trim(); /* so that stacks must grow on every worker */
	error = weft_rt_run(&config, everything, &config, &result);

	CHECK(is_documented(error) && (error || result == &config));
	return error;
}

static int run_loop(void)
{
	weft_rt_t *rt;
	int error = weft_rt_open(NULL, &rt);

	CHECK(is_documented(error) || error == -EMFILE);
	if (error)
		return error;
	error = weft_rt_spawn(rt, everything, &rt, NULL);
	CHECK(is_documented(error));
	while (weft_rt_close(rt) == -EBUSY)
		weft_rt_step(rt, MS);
	return error;
}

static int run_simulated(void)
{
	void *result = NULL;
	int error = weft_simulate(3, NULL, everything, &result, &result);

	CHECK(is_documented(error) && (error || result == &result));
	return error;
}

static int program(void)
{
	int threads = run_threads(), loop = run_loop(), simulated = run_simulated();

	return threads ? threads : loop ? loop : simulated;
}

static void *grows(void *unused)
{
	uses_stack(100 * KB);
	return unused;
}

/* If all requests of workers are refused, no worker begins, because the stacks of its tasks could not grow. */
static int refuse_workers(void)
{
	weft_rt_config_t config = {.workers = 2};

	config.task = (weft_attr_t){.policy = WEFT_COMMIT, .stack_size = 256 * KB};
	refusing.of_others = true;
	refusing.self = pthread_self();
	refusing.width = 1000000;
	refusing.counting = true;
	CHECK(weft_rt_run(&config, grows, NULL, NULL) == -ENOMEM);
	printf("ok - no worker begins without what stacks need of a thread\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "workers"))
		return refuse_workers();
	if (argc > 3)
		return refuse((unsigned)atoi(argv[2]), (unsigned)atoi(argv[3]));
	return refuse_all();
}
