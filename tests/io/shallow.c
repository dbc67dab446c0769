/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tasks on small segmented stacks wait for a few bytes: none needs a second chunk. Runs with one worker. */
#include "../sched/check.h"

#include <weft/io.h>
#include <weft/stack.h>

enum { TASKS = 100, BUFFER = 128 };

static int fds[2];
static int received;

static void *receives(void *pass)
{
	char text[BUFFER];

	if (weft_recv(fds[0], text, 1, 0) == 1)
		received++;
	return pass;
}

static size_t splits(void)
{
	weft_stack_stats_t stats;

	CHECK(weft_stack_stats(WEFT_SEGMENTED, &stats) == 0);
	return stats.splits;
}

static void *small_stacks(void *pass)
{
	weft_task_attr_t attr = {.coro = {.policy = WEFT_SEGMENTED, .stack_size = 2048}};
	size_t before = splits();
	int i;

	CHECK(weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0);
	WEFT_SCOPE(scope);
	for (i = 0; i < TASKS; i++)
		CHECK(weft_scope_spawn_with(&scope, NULL, receives, pass, &attr) == 0);
	CHECK(weft_sleep(20 * MS) == 0);
	CHECK(splits() == before);
	for (i = 0; i < TASKS; i++)
		CHECK(weft_write(fds[1], "x", 1) == 1);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(received == TASKS);
	weft_close(fds[0]);
	weft_close(fds[1]);
	return pass;
}

static const struct test tests[] = {T(small_stacks)};

int main(int argc, char **argv)
{
	return run_tests(tests, sizeof tests / sizeof *tests, argc, argv);
}
