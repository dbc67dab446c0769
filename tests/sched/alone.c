/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A runtime of one worker uses no atomic instructions until another thread uses its objects
 * (src/sched/single_thread.h). Two tasks send items to each other, and at some moment a thread of the program sends,
 * too. Each round is a process of its own, because this change cannot be undone.
 */
#define _GNU_SOURCE
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { ITEMS = 5000, FOREIGN = 1000 };

static weft_chan_t *chan;
static weft_sem_t done;
static bool crowd_seen;
static unsigned patience; /* the number of items that the tasks exchange before the thread begins */

static bool is_crowd(void)
{
	return __atomic_load_n(&weft__crowd, __ATOMIC_RELAXED);
}

static void *sends(void *count)
{
	for (intptr_t i = 0; i < (intptr_t)count; i++)
		CHECK(weft_chan_send(chan, &(int){1}) == 0);
	CHECK(weft_sem_give(&done, 1) == 0);
	return NULL;
}

static void *receives(void *count)
{
	intptr_t sum = 0;
	int item;

	for (intptr_t i = 0; i < (intptr_t)count; i++) {
		CHECK(weft_chan_receive(chan, &item) == 0);
		sum += item;
	}
	return (void *)sum;
}

static void *comes(void *unused)
{
	CHECK(sends((void *)FOREIGN) == NULL);
	crowd_seen = is_crowd();
	return unused;
}

static void *meets(void *unused)
{
	pthread_t thread;
	weft_task_t receiver;
	void *sum;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &receiver, receives, (void *)(intptr_t)(patience + ITEMS + FOREIGN),
				    NULL) == 0);
	CHECK(sends((void *)(intptr_t)patience) == NULL);
	CHECK(!is_crowd());
	CHECK(pthread_create(&thread, NULL, comes, NULL) == 0);
	CHECK(weft_scope_spawn(&scope, sends, (void *)ITEMS) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_join(&receiver, &sum) == 0);
	CHECK((intptr_t)sum == patience + ITEMS + FOREIGN);
	for (int i = 0; i < 3; i++)
		CHECK(weft_sem_take(&done) == 0);
	pthread_join(thread, NULL);
	CHECK(crowd_seen && is_crowd());
	return unused;
}

static void *alone(void *unused)
{
	weft_task_t receiver;

	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn_with(&scope, &receiver, receives, (void *)100, NULL) == 0);
	CHECK(sends((void *)100) == NULL);
	CHECK(weft_sleep(1000) == 0 && weft_scope_wait(&scope) == 0);
	CHECK(weft_sem_take(&done) == 0);
	CHECK(!is_crowd());
	return unused;
}

static void *spawns(void *unused)
{
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, sends, NULL) == 0);
	CHECK(weft_scope_wait(&scope) == 0);
	return unused;
}

static void *helped(void *unused)
{
	CHECK(!is_crowd());
	weft_blocking
	{
		CHECK(weft_sem_take_until(&done, 0) == -ETIMEDOUT);
	}
	CHECK(is_crowd());
	return unused;
}

static void run(unsigned workers, weft_fn_t *fn)
{
	weft_rt_config_t config = {.workers = workers};

	CHECK(weft_rt_run(&config, fn, NULL, NULL) == 0);
}

/* Two runtimes at the same time share a channel. */
static void *in_thread(void *unused)
{
	weft_rt_config_t config = {.workers = 1};

	CHECK(weft_rt_run(&config, sends, (void *)ITEMS, NULL) == 0);
	return unused;
}

static void two_runtimes(void)
{
	weft_rt_config_t config = {.workers = 1};
	pthread_t thread;
	void *sum;

	CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
	CHECK(weft_rt_run(&config, receives, (void *)ITEMS, &sum) == 0);
	pthread_join(thread, NULL);
	CHECK((intptr_t)sum == ITEMS && is_crowd());
}

/* The child process has one thread. The parent's runtime does not belong to the child. */
static void *forks(void *unused)
{
	int status;
	pid_t child = fork();

	if (!child) {
		CHECK(weft_sem_give(&done, 1) == 0);
		_exit(weft_sem_take_until(&done, 0) != 0 || is_crowd());
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	return unused;
}

static void embedded(void)
{
	weft_rt_t *rt;

	CHECK(weft_rt_open(NULL, &rt) == 0);
	CHECK(weft_rt_spawn(rt, alone, NULL, NULL) == 0);
	while (weft_rt_step(rt, WEFT_NEVER) > 0 || weft_rt_close(rt) == -EBUSY)
		usleep(10);
	CHECK(!is_crowd());
}

static void in_child(void (*fn)(void))
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (!child) {
		fn();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void meeting(void)
{
	run(1, meets);
}

static void one_after_another(void)
{
	run(1, alone);
	run(1, alone);
	run(1, forks);
	run(1, helped);
}

static void several(void)
{
	run(2, spawns);
	CHECK(is_crowd());
}

/* alone ROUNDS */
int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 10;

	chan = weft_chan_make(sizeof(int), 0);
	in_child(one_after_another);
	in_child(embedded);
	in_child(several);
	for (unsigned i = 0; i < rounds; i++) {
		patience = i * 37 % 1000;
		in_child(meeting);
		in_child(two_runtimes);
	}
	CHECK(weft_chan_free(chan) == 0);
	printf("ok - alone\n");
	return 0;
}
