/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the back end of a runtime, after a byte went through a pipe. */
#include "../sched/check.h"

#include <weft/io.h>

static void *reads(void *fd)
{
	char byte;

	CHECK(weft_read(*(int *)fd, &byte, 1) == 1);
	return NULL;
}

static void *run(void *unused)
{
	int fds[2];

	CHECK(weft_pipe(fds) == 0);
	WEFT_SCOPE(scope);
	CHECK(weft_scope_spawn(&scope, reads, &fds[0]) == 0);
	weft_sleep(MS);
	CHECK(weft_write(fds[1], "x", 1) == 1);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	printf("back end %s\n", weft_io_backend());
	return unused;
}

int main(void)
{
	return weft_rt_run(NULL, run, NULL, NULL) != 0;
}
