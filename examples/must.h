/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * must.h: for programs that cannot continue without memory. They print one line, and end with exit code 1:
 *
 *   weft_coro_t *k = must(weft_create(fn, arg));
 *   weft_set_failure_hook(must_not_fail);                    a coroutine's stack cannot grow
 *   WEFT_HANDLER(h, …, weft_on_failure(must_have_memory));   weft_run has no coroutine, or its own failed
 */
#ifndef MUST_H
#define MUST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

static inline weft_coro_t *must(weft_coro_t *k)
{
	if (!k) {
		perror("no memory for a coroutine");
		exit(1);
	}
	return k;
}

/* The coroutine may be inside printf, so nothing here may wait for a lock that it holds. */
static inline void must_not_fail(weft_coro_t *k, weft_failure_t why)
{
	static const char text[] = "no memory for a coroutine's stack\n";

	(void)k;
	(void)why;
	_exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 2 : 1);
}

static inline void *must_have_memory(void *state, int error)
{
	(void)state;
	fprintf(stderr, "no memory for a coroutine: %s\n", strerror(error));
	exit(1);
}

#endif
