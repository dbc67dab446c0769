/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tasks [WORKERS [ROUNDS]]: tasks in memory of the caller's. As soon as a task is joined, or its scope has ended, the
 * memory is overwritten and reused, while other workers may still be busy with the task's end.
 */
#include <errno.h>
#include <string.h>

#include <weft/sched.h>
#include <weft/sync.h>

#include "require.h"

enum { TASKS = 8, BYTES = 16384 };

static _Alignas(64) char memory[TASKS][BYTES];
static unsigned rounds = 2000, workers = 4;

static void *works(void *n)
{
	volatile char here[512];

	REQUIRE((char *)here >= memory[(long)n] && (char *)here < memory[(long)n] + BYTES);
	for (size_t i = 0; i < sizeof here; i++)
		here[i] = (char)i;
	(void)weft_task_yield();
	for (size_t i = 0; i < sizeof here; i++)
		if (here[i] != (char)i)
			return NULL;
	return &memory[(long)n];
}

static weft_task_attr_t attr_for(long n)
{
	return (weft_task_attr_t){.coro = {.name = "m", .memory = memory[n], .memory_size = BYTES}};
}

static void joins(void)
{
	weft_task_t tasks[TASKS];
	weft_task_attr_t attr;
	weft_scope_t s;
	void *result;

	weft_scope_open(&s, WEFT_NEVER);
	for (unsigned round = 0; round < rounds; round++) {
		for (long n = 0; n < TASKS; n++) {
			attr = attr_for(n);
			REQUIRE(!weft_scope_spawn_with(&s, &tasks[n], works, (void *)n, &attr));
		}
		attr = attr_for(0);
		if (!round && workers == 1) /* the task cannot have ended */
			REQUIRE(weft_scope_spawn_with(&s, NULL, works, NULL, &attr) == -EBUSY);
		for (long n = 0; n < TASKS; n++) {
			REQUIRE(!weft_join(&tasks[n], &result));
			memset(memory[n], 0xa5, BYTES);
			REQUIRE(result == memory[n]);
		}
	}
	REQUIRE(!weft_scope_wait(&s));
}

static void scopes(void)
{
	weft_task_attr_t attr;
	weft_scope_t s;

	for (unsigned round = 0; round < rounds; round++) {
		weft_scope_open(&s, WEFT_NEVER);
		for (long n = 0; n < TASKS; n++) {
			attr = attr_for(n);
			REQUIRE(!weft_scope_spawn_with(&s, NULL, works, (void *)n, &attr));
		}
		REQUIRE(!weft_scope_wait(&s));
		memset(memory, 0xa5, sizeof memory);
	}
}

static void *waits(void *event)
{
	(void)weft_event_wait(event);
	return NULL;
}

/* Cancelled while it waits, or before it starts. */
static void cancelled(void)
{
	weft_event_t event = {0};
	weft_task_attr_t attr = attr_for(0);
	weft_scope_t s;

	for (unsigned round = 0; round < rounds / 4; round++) {
		weft_scope_open(&s, WEFT_NEVER);
		REQUIRE(!weft_scope_spawn_with(&s, NULL, waits, &event, &attr));
		if (round % 2)
			(void)weft_task_yield();
		weft_scope_cancel(&s, -ECANCELED);
		REQUIRE(weft_scope_wait(&s) == -ECANCELED);
		memset(memory[0], 0xa5, BYTES);
	}
	attr.coro.memory_size = 1000;
	weft_scope_open(&s, WEFT_NEVER);
	REQUIRE(weft_scope_spawn_with(&s, NULL, waits, &event, &attr) == -ENOSPC);
	REQUIRE(!weft_scope_wait(&s));
}

static void *main_task(void *unused)
{
	joins();
	scopes();
	cancelled();
	return unused;
}

int main(int count, char **arguments)
{
	weft_rt_config_t config = {0};
	weft_stack_stats_t stats;

	if (count > 1)
		workers = (unsigned)atoi(arguments[1]);
	if (count > 2)
		rounds = (unsigned)atoi(arguments[2]);
	config.workers = workers;
	REQUIRE(!weft_rt_run(&config, main_task, NULL, NULL));
	REQUIRE(!weft_stack_stats(WEFT_DEFAULT_POLICY, &stats) && !stats.in_memory);
	config.task.memory = memory;
	config.task.memory_size = BYTES;
	REQUIRE(weft_rt_run(&config, main_task, NULL, NULL) == -EINVAL);
	REQUIRE(weft_simulate(1, &config, main_task, NULL, NULL) == -EINVAL);
	printf("ok - tasks\n");
	return 0;
}
