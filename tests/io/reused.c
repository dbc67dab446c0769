/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that closes a number by close(2) after weft_close, while an operation still holds the number: the library
 * must not close it again, because a thread may get the number at any time. The program's own close counts the calls on
 * a number that is not open.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/io.h>

#include "../sched/check.h"

static int watched = -1;
static unsigned closes;

int close(int fd)
{
	long result = syscall(SYS_close, fd);

	closes += result && fd == watched;
	return (int)result;
}

static void *reads(void *fd)
{
	char byte;

	CHECK(weft_read(*(int *)fd, &byte, 1) == -ECANCELED);
	return fd;
}

static void *first(void *unused)
{
	weft_scope_t scope;
	int fds[2];

	CHECK(!weft_pipe(fds));
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, reads, &fds[0]));
	weft_sleep(10000000);
	CHECK(!weft_close(fds[0])); /* with one worker the reader has not ended: its read holds a placeholder */
	CHECK(fcntl(fds[0], F_GETFL) & O_PATH);
	CHECK(!close(fds[0]));
	watched = fds[0];
	CHECK(!weft_scope_wait(&scope));
	watched = -1;
	CHECK(!weft_close(fds[1]));
	return unused;
}

int main(void)
{
	weft_rt_config_t config = {.workers = 1};

	CHECK(!weft_rt_run(&config, first, NULL, NULL));
	CHECK(closes == 0);
	printf("ok - a number that was closed twice\n");
}
