/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Each call that the interface forbids. Most calls return an error code, and nothing is lost: the tests try them in
 * tasks of workers, in simulated tasks, and outside of tasks.
 *
 *   misuse WORKERS | simulate SEEDS, [NAME]
 *   misuse outside | bare       in a thread; in a coroutine that a thread resumes
 *   misuse line NAME            mistakes that print a message and end the process: tests.cmake has the messages
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static void *returns(void *argument)
{
	return argument;
}

static void *sleeps(void *argument)
{
	weft_sleep(argument ? *(uint64_t *)argument : MS);
	return argument;
}

static void *waits_for(void *event)
{
	weft_event_wait(event);
	return event;
}

/* ---- starting and joining --------------------------------------------------------------------------------------- */

static void *spawning(void *argument)
{
	weft_task_attr_t bad_policy = {.coro = {.policy = (weft_policy_t)99}}, bad_flags = {.flags = 0x80},
			 copied = {.coro = {.policy = WEFT_COPY}}, far = {.worker = 4000000000u},
			 huge = {.coro = {.stack_size = SIZE_MAX / 2}};
	weft_task_t t;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, NULL, NULL) == -EINVAL);
	CHECK(weft_scope_spawn(NULL, returns, NULL) == -EINVAL);
	CHECK(weft_spawn_detached(NULL, NULL, NULL) == -EINVAL);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, NULL, &bad_policy) == -EINVAL);
	CHECK(weft_join(&t, NULL) == -EINVAL);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, NULL, &bad_flags) == -EINVAL);
	CHECK(weft_scope_spawn_with(NULL, &t, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_join(&t, NULL) == -EINVAL);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, NULL, &huge) < 0);
	CHECK(weft_join(&t, NULL) < 0);
	/* Copied frames would move while other tasks write to them, so the runtime uses another policy instead. */
	CHECK(weft_scope_spawn_with(&scope, &t, sleeps, NULL, &copied) == 0);
	CHECK(weft_join(&t, NULL) == 0);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, argument, &far) == 0);
	CHECK(weft_join(&t, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return argument;
}

static void *joining(void *argument)
{
	weft_task_t t, never = {0};
	void *result;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, &t, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		result = NULL;
		CHECK(weft_join(&t, &result) == 0 && result == &t);
	}
	weft_task_cancel(&t);
	weft_task_cancel(&t);
	CHECK(weft_join(&t, NULL) == 0);
	CHECK(weft_join(&never, NULL) == -EINVAL);
	weft_task_cancel(&never);
	CHECK(weft_scope_wait(&scope) == 0);
	return argument;
}

/* The scope's memory is overwritten before the handle is used again. */
static void *a_handle_outlives_its_scope(void *argument)
{
	weft_scope_t scope;
	weft_task_t t;
	void *result;

	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, argument, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	memset(&scope, 0xa5, sizeof scope);
	weft_task_cancel(&t);
	CHECK(weft_join(&t, &result) == 0 && result == argument);
	return argument;
}

static void *cancelling_twice(void *argument)
{
	weft_event_t never = {0};
	weft_task_t t;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &t, waits_for, &never, NULL) == 0);
	weft_task_cancel(&t);
	weft_task_cancel(&t);
	CHECK(weft_join(&t, NULL) == -ECANCELED);
	weft_scope_cancel(&scope, -EIO);
	weft_scope_cancel(&scope, -ENOSPC);
	CHECK(weft_task_is_cancelled());
	CHECK(weft_scope_wait(&scope) == -EIO);
	CHECK(!weft_task_is_cancelled());
	weft_scope_cancel(&scope, -ENOSPC);
	CHECK(weft_scope_wait(&scope) == -EIO);
	CHECK(!weft_task_is_cancelled());
	CHECK(weft_sleep(1) == 0);
	return argument;
}

static void *fails_with(void *error)
{
	weft_task_fail(*(int *)error);
}

static void *errors_that_are_none(void *argument)
{
	int errors[] = {0, 5, -EIO}, expected[] = {-EINVAL, -EINVAL, -EIO};

	for (int i = 0; i < 3; i++) {
		WEFT_SCOPE(scope);
		CHECK(weft_scope_spawn(&scope, fails_with, &errors[i]) == 0);
		CHECK(weft_scope_wait(&scope) == expected[i]);
	}
	for (int i = 0; i < 2; i++) {
		WEFT_SCOPE(scope);
		weft_scope_cancel(&scope, errors[i]);
		CHECK(weft_scope_wait(&scope) == -ECANCELED);
	}
	return argument;
}

static void *joins_it(void *task)
{
	return (void *)(intptr_t)weft_join(task, NULL);
}

static void *a_thread_joins(void *argument)
{
	uint64_t nap = MS;
	pthread_t thread;
	weft_task_t t;
	void *result;

	if (((weft_rt_config_t *)argument)->workers < 2)
		return argument; /* the join would block the only worker, or the test is simulated */
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &t, sleeps, &nap, NULL) == 0);
	CHECK(!pthread_create(&thread, NULL, joins_it, &t));
	weft_blocking
	{
		CHECK(!pthread_join(thread, &result) && !result);
	}
	CHECK(weft_scope_wait(&scope) == 0);
	return argument;
}

/* ---- scopes ----------------------------------------------------------------------------------------------------- */

static void *waits_for_anothers(void *scope)
{
	return (void *)(intptr_t)weft_scope_wait(scope);
}

static void *scopes(void *argument)
{
	weft_scope_t outer, inner;
	weft_task_t t;
	void *result;

	CHECK(weft_scope_wait(NULL) == -EINVAL);
	weft_scope_open(&outer, WEFT_NEVER);
	weft_scope_open(&inner, WEFT_NEVER);
	CHECK(weft_scope_spawn_with(&outer, &t, waits_for_anothers, &outer, NULL) == 0);
	CHECK(weft_join(&t, &result) == 0 && result == (void *)(intptr_t)-EPERM);
	CHECK(weft_scope_spawn(&inner, sleeps, NULL) == 0);
	/* Wait for the outer scope first. */
	CHECK(weft_scope_wait(&outer) == 0);
	weft_scope_cancel(&outer, -EIO);
	CHECK(!weft_task_is_cancelled());
	CHECK(weft_scope_spawn(&outer, returns, NULL) == -EINVAL);
	CHECK(weft_scope_spawn_with(&outer, &t, returns, NULL, NULL) == -EINVAL && weft_join(&t, NULL) == -EINVAL);
	CHECK(weft_scope_wait(&outer) == 0);
	weft_scope_cancel(&inner, -EIO);
	CHECK(weft_task_is_cancelled());
	CHECK(weft_scope_spawn_with(&inner, &t, returns, NULL, NULL) == -ECANCELED);
	CHECK(weft_join(&t, NULL) == -ECANCELED);
	CHECK(weft_scope_wait(&inner) == -EIO);
	CHECK(!weft_task_is_cancelled() && weft_sleep(1) == 0);
	return argument;
}

static void *leaves_living_tasks(void *event)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, waits_for, event) == 0);
	return event;
}

static void *a_scope_that_is_left(void *argument)
{
	weft_event_t never = {0};

	CHECK(leaves_living_tasks(&never) == &never);
	CHECK(!never.queue.first && !weft_task_is_cancelled());
	return argument;
}

/* A task overflows its stack while tasks of its scopes refer to its frames. One of these tasks needs some
 * time to end. */
static int begun, orphans;

static void counts_orphan(weft_event_t *never)
{
	weft_sleep(MS);
	CHECK(!weft_event_is_set(never));
	__atomic_fetch_add(&orphans, 1, __ATOMIC_RELAXED);
}

static void *is_left_alone(void *never)
{
	weft_defer(counts_orphan, never);
	__atomic_fetch_add(&begun, 1, __ATOMIC_RELAXED);
	weft_event_wait(never);
	return never;
}

static __attribute__((noinline)) size_t goes_deep(size_t bytes)
{
	volatile char frame[1024];

	frame[0] = frame[1023] = 1;
	__asm__ volatile("" : : "r"(frame) : "memory"); /* keeps clang from making a loop of the recursion */
	return bytes > sizeof frame ? goes_deep(bytes - sizeof frame) + (size_t)frame[0] : (size_t)frame[1023];
}

static void *fails_with_tasks(void *argument)
{
	weft_event_t never = {0};

	WEFT_SCOPE_UNTIL(outer, weft_now() + SECOND);
	CHECK(weft_scope_spawn(&outer, is_left_alone, &never) == 0);
	WEFT_SCOPE(inner);
	CHECK(weft_scope_spawn(&inner, is_left_alone, &never) == 0);
	CHECK(weft_scope_spawn(&inner, is_left_alone, &never) == 0);
	while (__atomic_load_n(&begun, __ATOMIC_RELAXED) < 3)
		weft_sleep(1000);
	goes_deep((size_t)1 << 20);
	return argument;
}

static void *a_task_that_fails_with_tasks(void *argument)
{
	weft_task_attr_t attr = {.coro = {.policy = WEFT_COMMIT, .stack_size = 65536}};
	weft_task_t t;

	begun = orphans = 0;
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &t, fails_with_tasks, NULL, &attr) == 0);
	CHECK(weft_join(&t, NULL) == -ENOMEM);
	CHECK(orphans == 3);
	CHECK(weft_scope_wait(&scope) == -ENOMEM);
	return argument;
}

/* ---- time ------------------------------------------------------------------------------------------------------- */

static void *deadlines(void *argument)
{
	uint64_t past[] = {0, 1, weft_now() - 1}, ages = UINT64_MAX;
	weft_event_t never = {0};
	weft_task_t t;
	int error;

	for (int i = 0; i < 3; i++) {
		CHECK(weft_sleep_until(past[i]) == 0);
		CHECK(weft_event_wait_until(&never, past[i]) == -ETIMEDOUT);
		WEFT_SCOPE_UNTIL(scope, past[i]);
		error = weft_scope_spawn_with(&scope, &t, waits_for, &never, NULL);
		CHECK(!error || error == -ETIMEDOUT);
		CHECK(weft_scope_wait(&scope) == -ETIMEDOUT);
		CHECK(weft_join(&t, NULL) == -ETIMEDOUT);
	}
	WEFT_SCOPE(late);
	CHECK(weft_scope_set_deadline(&late, 1) == 0 && weft_scope_spawn(&late, returns, NULL) == -ETIMEDOUT);
	CHECK(weft_scope_wait(&late) == -ETIMEDOUT);
	WEFT_SCOPE_UNTIL(scope, WEFT_NEVER - 1);
	CHECK(weft_scope_spawn_with(&scope, &t, sleeps, &ages, NULL) == 0);
	CHECK(weft_join_until(&t, NULL, 0) == -ETIMEDOUT);
	CHECK(weft_join_until(&t, NULL, weft_now() + MS) == -ETIMEDOUT);
	weft_task_cancel(&t);
	CHECK(weft_join_until(&t, NULL, WEFT_NEVER - 1) == -ECANCELED);
	CHECK(weft_scope_wait(&scope) == 0);
	return argument;
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

struct locks {
	weft_mutex_t mutex;
	weft_cond_t cond;
	weft_rwlock_t lock;
};

static void *uses_anothers(void *argument)
{
	struct locks *l = argument;

	CHECK(!weft_mutex_try_lock(&l->mutex));
	CHECK(weft_mutex_lock_until(&l->mutex, 0) == -ETIMEDOUT);
	CHECK(weft_mutex_unlock(&l->mutex) == -EPERM);
	CHECK(weft_cond_wait(&l->cond, &l->mutex) == -EPERM);
	CHECK(weft_rwlock_unlock(&l->lock) == -EPERM);
	CHECK(weft_rwlock_read_until(&l->lock, 0) == -ETIMEDOUT);
	CHECK(weft_rwlock_write_until(&l->lock, weft_now() + MS) == -ETIMEDOUT);
	return argument;
}

static void *locking(void *argument)
{
	struct locks l;

	memset(&l, 0, sizeof l);
	CHECK(weft_mutex_unlock(&l.mutex) == -EPERM);
	CHECK(weft_cond_wait(&l.cond, &l.mutex) == -EPERM);
	CHECK(weft_rwlock_unlock(&l.lock) == -EPERM);
	CHECK(weft_mutex_lock(&l.mutex) == 0);
	CHECK(weft_mutex_lock(&l.mutex) == -EDEADLK && !weft_mutex_try_lock(&l.mutex));
	CHECK(weft_rwlock_write(&l.lock) == 0);
	CHECK(weft_rwlock_write(&l.lock) == -EDEADLK && weft_rwlock_read(&l.lock) == -EDEADLK);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, uses_anothers, &l) == (weft_rt_current() ? 0 : -EPERM));
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_cond_wait_until(&l.cond, &l.mutex, 0) == -ETIMEDOUT);
	CHECK(weft_mutex_unlock(&l.mutex) == 0 && weft_mutex_unlock(&l.mutex) == -EPERM);
	CHECK(weft_rwlock_unlock(&l.lock) == 0 && weft_rwlock_unlock(&l.lock) == -EPERM);
	CHECK(weft_rwlock_read(&l.lock) == 0 && weft_rwlock_read(&l.lock) == 0);
	CHECK(weft_rwlock_write_until(&l.lock, weft_now() + MS) == -ETIMEDOUT);
	CHECK(weft_rwlock_unlock(&l.lock) == 0 && weft_rwlock_unlock(&l.lock) == 0);
	CHECK(weft_rwlock_unlock(&l.lock) == -EPERM);
	return argument;
}

/* ---- counts ----------------------------------------------------------------------------------------------------- */

static void *counts(void *argument)
{
	weft_sem_t sem = WEFT_SEM(SIZE_MAX - 1);
	weft_group_t group = {0};
	weft_barrier_t nobody = {0};

	CHECK(weft_sem_give(&sem, 2) == -EOVERFLOW && sem.permits == SIZE_MAX - 1);
	CHECK(weft_sem_give(&sem, 1) == 0 && weft_sem_give(&sem, 0) == 0 && weft_sem_give(&sem, 1) == -EOVERFLOW);
	CHECK(weft_sem_take(&sem) == 0);
	CHECK(weft_group_done(&group) == -EINVAL && weft_group_add(&group, PTRDIFF_MIN) == -EINVAL);
	CHECK(weft_group_add(&group, PTRDIFF_MAX) == 0 && weft_group_add(&group, PTRDIFF_MAX) == 0);
	CHECK(weft_group_add(&group, 1) == 0 && weft_group_add(&group, 1) == -EOVERFLOW);
	CHECK(weft_group_wait_until(&group, 0) == -ETIMEDOUT);
	CHECK(weft_group_add(&group, -PTRDIFF_MAX) == 0 && weft_group_add(&group, PTRDIFF_MIN) == 0);
	CHECK(weft_group_wait(&group) == 0 && weft_group_done(&group) == -EINVAL);
	CHECK(weft_barrier_wait(&nobody) == -EINVAL);
	return argument;
}

/* ---- once, events, futures -------------------------------------------------------------------------------------- */

static weft_once_t once;

static void again(void *count)
{
	CHECK(weft_once(&once, again, count) == -EDEADLK);
	++*(int *)count;
}

static void *only_once(void *argument)
{
	weft_event_t event = {0};
	weft_future_t future = {0};
	void *value = NULL;
	int count = 0;

	once = (weft_once_t){0};
	CHECK(weft_once(&once, again, &count) == 0 && count == 1);
	CHECK(weft_once(&once, again, &count) == 0 && count == 1);
	weft_event_set(&event);
	weft_event_set(&event);
	CHECK(weft_event_wait(&event) == 0);
	weft_event_reset(&event);
	weft_event_reset(&event);
	CHECK(weft_event_wait_until(&event, 0) == -ETIMEDOUT);
	CHECK(weft_future_get_until(&future, NULL, 0) == -ETIMEDOUT);
	CHECK(weft_future_set(&future, &event, 0) == 0 && weft_future_set(&future, NULL, -EIO) == -EALREADY);
	CHECK(weft_future_get(&future, &value) == 0 && value == &event);
	return argument;
}

/* ---- channels --------------------------------------------------------------------------------------------------- */

/* Frees a channel that has a waiter which is not a task. */
static void busy(weft_chan_t *chan)
{
	struct weft__queued w;
	int item;

	CHECK(weft__chan_receive(chan, &item, &w, WEFT_NEVER) == 0);
	CHECK(weft_chan_free(chan) == -EBUSY);
	weft__chan_leave(chan, &w.place);
}

static void without_channel(void)
{
	weft_case_t cases[] = {{.chan = NULL}};
	int item = 1;

	CHECK(weft_chan_send(NULL, &item) == -EINVAL && weft_chan_receive(NULL, &item) == -EINVAL);
	CHECK(weft_chan_send(NULL, NULL) == -EINVAL && weft_chan_receive(NULL, NULL) == -EINVAL);
	CHECK(weft_chan_close(NULL) == -EINVAL && weft_chan_count(NULL) == 0 && weft_chan_free(NULL) == 0);
	CHECK(weft_select(cases, 0) == -EINVAL && weft_select(NULL, 1) == -EINVAL);
	CHECK(weft_select(cases, WEFT_CASES + 1) == -EINVAL);
	CHECK(weft_select_until(cases, 1, 0) == -ETIMEDOUT);
	CHECK(weft_select_until(cases, 1, weft_now() + MS) == -ETIMEDOUT);
}

static void sizes(void)
{
	weft_chan_t *signals = weft_chan_make(0, 1), *nothing = weft_chan_make(SIZE_MAX, 0);

	CHECK(!weft_chan_make(SIZE_MAX, 2) && !weft_chan_make(8, SIZE_MAX - 1) && !weft_chan_make(0, SIZE_MAX / 2));
	CHECK(signals && nothing);
	CHECK(weft_chan_send(signals, NULL) == 0 && weft_chan_send_until(signals, NULL, 0) == -ETIMEDOUT);
	CHECK(weft_chan_receive(signals, NULL) == 0);
	CHECK(weft_chan_free(signals) == 0 && weft_chan_free(nothing) == 0);
}

static void *channels(void *argument)
{
	weft_chan_t *chan = weft_chan_make(sizeof(int), 0);
	weft_case_t wrong = {.chan = chan};
	int item = 1;

	without_channel();
	sizes();
	CHECK(chan);
	busy(chan);
	CHECK(weft_chan_send(chan, NULL) == -EINVAL && weft_chan_receive(chan, NULL) == -EINVAL);
	CHECK(weft_select(&wrong, 1) == -EINVAL);
	CHECK(weft_chan_close(chan) == 0 && weft_chan_close(chan) == -EALREADY);
	CHECK(weft_chan_send(chan, &item) == -EPIPE && weft_chan_receive(chan, &item) == -EPIPE);
	wrong.send = &item;
	CHECK(weft_select(&wrong, 1) == 0 && wrong.status == -EPIPE);
	CHECK(weft_chan_free(chan) == 0);
	return argument;
}

/* ---- locals, blocking, dumps ------------------------------------------------------------------------------------ */

static int returns_out_of_it(void)
{
	weft_blocking
	{
		weft_blocking
		{
			return 7;
		}
	}
	return 0;
}

static void *the_rest(void *argument)
{
	int number = 0;

	CHECK(weft_task_set_local(WEFT_LOCAL_KEYS, &number) == -EINVAL);
	CHECK(weft_task_set_local(UINT32_MAX, &number) == -EINVAL);
	CHECK(!weft_task_local(WEFT_LOCAL_KEYS) && !weft_task_local(UINT32_MAX));
	for (unsigned i = 0; i < WEFT_LOCAL_KEYS; i++)
		CHECK(weft_task_set_local(i, &number) == 0 && weft_task_local(i) == &number);
	CHECK(returns_out_of_it() == 7 && weft_sleep(1) == 0);
	CHECK(weft_dump(-1) == -EBADF && weft_rt_dump(NULL, 1) == -EINVAL);
	CHECK(weft_rt_stats(NULL) == -EINVAL);
	return argument;
}

/* ---- runtimes --------------------------------------------------------------------------------------------------- */

static void *steps_meanwhile(void *rt)
{
	CHECK(weft_rt_step(rt, 0) == -EBUSY && weft_rt_close(rt) == -EBUSY);
	return rt;
}

static void *is_stepped_by_another(void *rt)
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, steps_meanwhile, rt) && !pthread_join(thread, NULL));
	return rt;
}

static void embedded(void)
{
	weft_rt_config_t two = {.workers = 2};
	weft_rt_t *rt;

	CHECK(weft_rt_open(&two, &rt) == -EINVAL && weft_rt_open(NULL, NULL) == -EINVAL);
	CHECK(weft_rt_fd(NULL) == -EINVAL && weft_rt_step(NULL, 0) == -EINVAL && weft_rt_close(NULL) == 0);
	CHECK(weft_rt_spawn(NULL, returns, NULL, NULL) == -EINVAL);
	weft_rt_cancel(NULL);
	CHECK(weft_rt_open(NULL, &rt) == 0);
	CHECK(weft_rt_spawn(rt, NULL, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_step(rt, 0) == 0);
	CHECK(weft_rt_spawn(rt, steps_meanwhile, rt, NULL) == 0);
	CHECK(weft_rt_spawn(rt, is_stepped_by_another, rt, NULL) == 0);
	CHECK(weft_rt_close(rt) == -EBUSY);
	while (weft_rt_step(rt, WEFT_NEVER))
		;
	CHECK(weft_rt_close(rt) == 0);
}

static void *has_no_loop(void *argument)
{
	weft_rt_t *rt = weft_rt_current();

	CHECK(weft_rt_fd(rt) == -EINVAL && weft_rt_step(rt, 0) == -EINVAL && weft_rt_close(rt) == -EINVAL);
	return argument;
}

static void configurations(void)
{
	/* These errors equal the results of a deadlock and of a livelock, after which the runtime is not cleaned up. */
	int errors[] = {-EDEADLK, -ELOOP};
	weft_rt_config_t many = {.workers = 10000}, most = {.workers = UINT32_MAX}, policy = {.task = {.policy = 99}},
			 flags = {.task = {.flags = 0x40000000}}, no_signal = {.dump_signal = 1000},
			 negative = {.dump_signal = -1}, kill = {.dump_signal = 9}, some = {.workers = 100};

	CHECK(weft_rt_run(NULL, NULL, NULL, NULL) == -EINVAL && weft_simulate(1, NULL, NULL, NULL, NULL) == -EINVAL);
	CHECK(weft_simulate_seeds(1, 1, NULL, NULL, NULL, NULL) == -EINVAL);
	CHECK(weft_simulate_seeds(1, 0, NULL, returns, NULL, NULL) == 0);
	CHECK(weft_rt_run(&many, returns, NULL, NULL) == -EINVAL && weft_rt_run(&most, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&policy, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&flags, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&no_signal, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&negative, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&kill, returns, NULL, NULL) == -EINVAL);
	CHECK(weft_rt_run(&some, has_no_loop, NULL, NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(weft_simulate(1, NULL, fails_with, &errors[i], NULL) == errors[i]);
}

static void *runs_another(void *argument)
{
	weft_rt_config_t one = {.workers = 1};
	void *result = NULL;

	CHECK(weft_rt_run(&one, sleeps, NULL, &result) == 0);
	CHECK(weft_simulate(1, NULL, sleeps, NULL, NULL) == 0);
	embedded();
	return argument;
}

static void *runs_both(void *unused)
{
	CHECK(weft_rt_run(NULL, returns, NULL, NULL) == 0);
	CHECK(weft_simulate(1, NULL, returns, NULL, NULL) == 0);
	return unused;
}

/* ThreadSanitizer reports if the threads share state. */
static void *runs_in_threads(void *argument)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, runs_both, NULL) == 0);
	for (int i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	return argument;
}

/* ---- outside of tasks ------------------------------------------------------------------------------------------- */

static void *everything_outside(void *argument)
{
	weft_scope_t scope;
	weft_task_t t;

	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(weft_scope_spawn(&scope, returns, NULL) == -EPERM);
	CHECK(weft_scope_spawn_with(&scope, &t, returns, NULL, NULL) == -EPERM && weft_join(&t, NULL) == -EPERM);
	CHECK(weft_spawn_detached(returns, NULL, NULL) == -EPERM);
	weft_scope_cancel(&scope, -EIO);
	CHECK(weft_scope_wait(&scope) == -EIO && weft_scope_wait(&scope) == -EIO);
	CHECK(weft_sleep(MS) == 0 && weft_sleep_until(0) == 0 && weft_task_yield() == 0 && weft_now() > 0);
	CHECK(!weft_rt_current() && !weft_task_name() && !weft_task_is_cancelled());
	CHECK(weft_dump(1) == -EPERM && weft_rt_stats(&(weft_rt_stats_t){0}) == -EPERM);
	weft_shield_begin();
	weft_shield_end();
	weft_shield_end();
	CHECK(returns_out_of_it() == 7);
	locking(NULL);
	counts(NULL);
	only_once(NULL);
	without_channel();
	sizes();
	CHECK(weft_task_set_local(WEFT_LOCAL_KEYS, &scope) == -EINVAL && !weft_task_local(WEFT_LOCAL_KEYS));
	return argument;
}

static void in_bare_coroutine(void)
{
	weft_coro_t *k = weft_create(everything_outside, &once);
	weft_request_t r;

	CHECK(k);
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	CHECK(weft_returned(r) && r.payload == &once);
	weft_delete(k);
}

/* ---- lines ------------------------------------------------------------------------------------------------------ */

static void *shield_end(void *unused)
{
	weft_shield_begin();
	weft_shield_end();
	weft_shield_end();
	return unused;
}

static void *join_itself(void *unused)
{
	static weft_task_t self;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &self, joins_it, &self, NULL) == 0);
	(void)weft_scope_wait(&scope);
	return unused;
}

static void *join_by_two(void *unused)
{
	weft_event_t never = {0};
	weft_task_t t;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &t, waits_for, &never, NULL) == 0);
	CHECK(weft_scope_spawn(&scope, joins_it, &t) == 0 && weft_scope_spawn(&scope, joins_it, &t) == 0);
	(void)weft_scope_wait(&scope);
	return unused;
}

static void *join_null(void *unused)
{
	weft_join(unused, NULL);
	return unused;
}

static void *cancel_null(void *unused)
{
	weft_task_cancel(unused);
	return unused;
}

static void *scope_cancel_null(void *unused)
{
	weft_scope_cancel(unused, -ECANCELED);
	return unused;
}

static void *scope_open_null(void *unused)
{
	weft_scope_open(unused, WEFT_NEVER);
	return unused;
}

static void *scope_open_twice(void *unused)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	weft_scope_open(&scope, WEFT_NEVER);
	return unused;
}

static void *ends_with_a_scope(void *unused)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	return unused;
}

static void *fails_with_a_scope(void *unused)
{
	weft_scope_t scope;

	weft_scope_open(&scope, WEFT_NEVER);
	weft_task_fail(unused ? 0 : -EIO);
}

/* ---- forks: the child prints the message, and the parent checks how the child ended ------------------------------ */

/* Returns true in the child. */
static bool forks(void)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (!child) {
		alarm(10);
		return true;
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	return false;
}

static void *fork_and_wait(void *unused)
{
	if (forks())
		weft_sleep(WEFT_NEVER);
	return unused;
}

static void *fork_and_yield(void *unused)
{
	if (forks())
		weft_task_yield();
	return unused;
}

static void *fork_and_return(void *unused)
{
	forks();
	return unused;
}

static void *fork_and_block(void *unused)
{
	weft_blocking
	{
		forks();
	}
	return unused;
}

static void *fork_and_exit(void *unused)
{
	pid_t child = fork();
	int status;

	if (!child)
		_exit(7);
	CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 7);
	return unused;
}

static int fork_and_step(void)
{
	weft_rt_t *rt;

	CHECK(weft_rt_open(NULL, &rt) == 0 && weft_rt_spawn(rt, returns, NULL, NULL) == 0);
	if (forks())
		weft_rt_step(rt, 0);
	while (weft_rt_step(rt, 0))
		;
	return weft_rt_close(rt);
}

static void *thread_exit(void *unused)
{
	pthread_exit(unused);
}

static void *thread_exit_in_helper(void *unused)
{
	weft_blocking
	{
		pthread_exit(unused);
	}
	return unused;
}

static const char key;

static void *binding_too_short(void *unused)
{
	weft_scope_t scope;

	{
		weft_bind(&key, &scope);
		weft_scope_open(&scope, WEFT_NEVER);
	}
	return unused;
}

static void *opens_in_its_block(void *unused)
{
	weft_bind(&key, &key);
	weft_suspend(unused);
	WEFT_SCOPE(scope);
	return unused;
}

static void *binding_moved(void *unused)
{
	weft_coro_t *k = weft_create(opens_in_its_block, NULL);

	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_bind(&key, k);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return unused;
}

static int line(const char *name)
{
	static const struct test lines[] = {T(shield_end),	   T(join_itself),	     T(join_by_two),
					    T(join_null),	   T(cancel_null),	     T(scope_cancel_null),
					    T(scope_open_null),	   T(scope_open_twice),	     T(ends_with_a_scope),
					    T(fails_with_a_scope), T(fork_and_wait),	     T(fork_and_yield),
					    T(fork_and_return),	   T(fork_and_block),	     T(fork_and_exit),
					    T(thread_exit),	   T(thread_exit_in_helper), T(binding_too_short),
					    T(binding_moved)};
	weft_rt_config_t two = {.workers = 2, .task = {.name = "wrong"}};

	if (!strcmp(name, "fail_outside"))
		weft_task_fail(-EIO);
	if (!strcmp(name, "cancelled_outside"))
		weft_cancelled();
	if (!strcmp(name, "fork_and_step"))
		return fork_and_step();
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		if (!strcmp(name, lines[i].name))
			return weft_rt_run(&two, lines[i].fn, NULL, NULL) != 0;
	return 2;
}

static const struct test tests[] = {T(spawning),
				    T(joining),
				    T(a_handle_outlives_its_scope),
				    T(cancelling_twice),
				    T(errors_that_are_none),
				    T(a_thread_joins),
				    T(scopes),
				    T(a_scope_that_is_left),
				    T(a_task_that_fails_with_tasks),
				    T(deadlines),
				    T(locking),
				    T(counts),
				    T(only_once),
				    T(channels),
				    T(the_rest),
				    T(runs_another),
				    T(runs_in_threads)};

int main(int argc, char **argv)
{
	if (argc > 2 && !strcmp(argv[1], "line"))
		return line(argv[2]);
	if (argc > 1 && !strcmp(argv[1], "bare")) {
		in_bare_coroutine();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "outside")) {
		everything_outside(NULL);
		configurations();
		embedded();
		return 0;
	}
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
