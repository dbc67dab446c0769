/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A scenario that calls POSIX functions by their names. A failed call must set errno; EINTR may always occur. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <weft/posix.h>
#include <weft/sched.h>

static int need(int result)
{
	if (result < 0)
		weft_task_fail(-errno);
	return result;
}

static void close_both(int *fds)
{
	(void)close(fds[0]);
	(void)close(fds[1]);
}

static void *writes(void *argument)
{
	const struct timespec time = {0, 200000};
	const int *fds = argument;
	int i;

	for (i = 0; i < 3; i++) {
		(void)nanosleep(&time, NULL);
		need((int)TEMP_FAILURE_RETRY(write(fds[0], "x", 1)));
	}
	return NULL;
}

static void *reads(void *argument)
{
	const int *fds = argument;
	struct pollfd two[2] = {{fds[1], POLLIN, 0}, {fds[0], POLLIN, 0}};
	fd_set set;
	char byte;

	need((int)TEMP_FAILURE_RETRY(poll(two, 2, 10000)));
	if (two[0].revents != POLLIN || two[1].revents)
		abort();
	need((int)TEMP_FAILURE_RETRY(read(fds[1], &byte, 1)));
	FD_ZERO(&set);
	FD_SET(fds[1], &set);
	need((int)TEMP_FAILURE_RETRY(select(fds[1] + 1, &set, NULL, NULL, NULL)));
	need((int)TEMP_FAILURE_RETRY(recv(fds[1], &byte, 1, 0)));
	need((int)TEMP_FAILURE_RETRY(recv(fds[1], &byte, 1, 0)));
	return NULL;
}

void *posix_names(void *pass);
void *posix_names(void *pass)
{
	int fds[2], error;

	need(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	weft_defer(close_both, fds);
	WEFT_SCOPE(scope);
	error = weft_scope_spawn(&scope, reads, fds);
	error = error ? error : weft_scope_spawn(&scope, writes, fds);
	if (error)
		weft_scope_cancel(&scope, error);
	error = weft_scope_wait(&scope);
	if (error)
		weft_task_fail(error);
	return pass;
}
