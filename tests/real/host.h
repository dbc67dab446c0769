/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A host for the real programs: runs scripts in several ways (in main, in coroutines, in threads), each run by itself
 * with its own output, and demands that all runs of a script print the same.
 *
 * A program is host.c and an engine: engine_run executes a script, writes by run_printf and run_write, and may call
 * run_pause anywhere: inside a coroutine this suspends the run, and it is resumed later, perhaps by another thread.
 */
#ifndef TESTS_REAL_HOST_H
#define TESTS_REAL_HOST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct run {
	const char *script;
	const char *directory; /* the run's own, empty at the start */
	int number;
	int failed; /* the run failed: its output says why */
	unsigned long pauses;
	char *text; /* its output */
	size_t length, room;
};

/* Provided by the engine. */
extern const char engine_name[];
void engine_start(void); /* once, before anything else */
void engine_run(struct run *run);

/* Provided by the host. */
void run_write(struct run *run, const char *bytes, size_t length);
void run_printf(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
void run_pause(struct run *run);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_REAL_HOST_H */
