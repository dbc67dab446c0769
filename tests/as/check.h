/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For the programs of this directory, which are instrumented and self-checking: a run time calls `checks`. */
#ifndef TESTS_AS_CHECK_H
#define TESTS_AS_CHECK_H

#include <stdio.h>

#ifdef __cplusplus
extern "C"
#endif
    int
    checks(void);

static int check_failures;

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noipa))
#endif

#define CHECK(what)                                                                                                    \
	do {                                                                                                           \
		if (!(what)) {                                                                                         \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                     \
			check_failures++;                                                                              \
		}                                                                                                      \
	} while (0)

#endif
