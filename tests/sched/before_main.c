/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tasks, locks and I/O in a constructor, which runs before main. The library's own constructors run earlier. */
#include "check.h"

#include <weft/io.h>

static bool ran;

static void *reads_and_writes(void *pass)
{
	int fds[2];
	char byte = 0;

	CHECK(weft_sleep(MS) == 0 && weft_pipe(fds) == 0);
	CHECK(weft_write(fds[1], "x", 1) == 1 && weft_read(fds[0], &byte, 1) == 1 && byte == 'x');
	CHECK(weft_close(fds[0]) == 0 && weft_close(fds[1]) == 0);
	ran = true;
	return pass;
}

__attribute__((constructor)) static void before_main(void)
{
	weft_mutex_t mutex = {0};
	weft_scope_t scope;
	void *result = NULL;

	CHECK(weft_mutex_lock(&mutex) == 0 && weft_mutex_unlock(&mutex) == 0);
	CHECK(weft_sleep(MS) == 0 && weft_now() > 0 && weft_task_yield() == 0);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(weft_scope_spawn(&scope, reads_and_writes, NULL) == -EPERM);
	CHECK(weft_scope_wait(&scope) == 0);
	CHECK(reads_and_writes(&mutex) == &mutex); /* called by the thread */
	ran = false;
	CHECK(weft_rt_run(NULL, reads_and_writes, &mutex, &result) == 0 && result == &mutex && ran);
	CHECK(weft_simulate(1, NULL, reads_and_writes, &mutex, &result) == 0);
}

int main(void)
{
	CHECK(ran);
	return 0;
}
