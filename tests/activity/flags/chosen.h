/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions with several definitions, or several names: the linker chooses the definition that a call runs. */
#ifndef WEFT_TESTS_ACTIVITY_CHOSEN_H
#define WEFT_TESTS_ACTIVITY_CHOSEN_H

#include <stddef.h>
#include <sys/types.h>

struct stat;

/* chosen.c has a weak definition, which returns n. The other functions here return 1000 times n or more. */
int overridden(int n);
int strong(int n);
/* Other names of strong(). */
int alias(int n);
int weak_alias(int n);
/* A version is chosen when the program starts. */
int cloned(int n);
/* Linked with --wrap: __wrap_wrapped calls wrapped. */
int wrapped(int n);
/* The library has this function; a program may replace it. The library calls it in calls_interposed. */
int interposed(int n);
int calls_interposed(int n);
/* The sum of the n numbers that follow, in thousands. */
double dots(int n, ...);
/* Names of libc. The functions of these names here do something else. */
ssize_t send(int n, const void *data, size_t size, int flags);
unsigned sleep(unsigned n);
int stat(const char *name, struct stat *n);

#endif
