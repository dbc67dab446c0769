/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library of activities' code, for programs that yield and for plain ones. */
#ifndef WEFT_TESTS_ACTIVITY_LIBRARY_H
#define WEFT_TESTS_ACTIVITY_LIBRARY_H

/* Yields n times, and returns the sum of all below n. */
long library_sum(int n);
/* The sum of f(i) of all i below n. */
long library_map(long (*f)(long), int n);
/* Runs a group of its own, in which activities take turns; returns how many did, or -1. */
long library_group(int n);

#endif
