/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a few threads of a few steps in every order, and lets every load return every value that C's memory model
 * allows: a model checker for the library's own sources, unchanged.
 *
 *   1. The sources are compiled with -fsanitize=thread, which turns each atomic operation, and each access to memory
 *      that other threads may see, into a call of ThreadSanitizer's interface; checker.c implements this interface.
 *   2. A thread is a coroutine. It is suspended before each atomic operation; the checker decides which thread runs
 *      next.
 *   3. Orders that differ only in steps which do not touch each other are one order: dynamic partial-order reduction
 *      (Flanagan and Godefroid) with sleep sets (Godefroid).
 *   4. Memory keeps every store. A load may return the newest or, unless happens-before, coherence or the order of
 *      sequentially consistent operations forbids it, an older one. So the checker also tries behaviour that this
 *      machine's processor never shows: an order that is too weak fails here.
 *   5. Other accesses are checked for races: each must be ordered with those of other threads by happens-before.
 *   6. Futexes, the clock, threads, malloc and free are the checker's. Time stands until all threads wait. All of them
 *      waiting without a deadline is a failure: a lost wake-up.
 *   7. A thread that spins (weft__pause) continues when the value that it read last has changed.
 *
 * Not tried: stores to one place that other threads see in an order different from their execution here; loads that
 * return a value stored later (load buffering); a compare-and-exchange that fails spuriously; a futex's wait that ends
 * spuriously. Scenarios have few threads and steps; scenarios with too many orders draw them (`random`).
 *
 * Based on CDSChecker (Norris and Demsky), which covers more orders of stores. C11Tester introduced the idea that the
 * compiler calls a model checker at each access.
 */
#ifndef WEFT_TESTS_ORDERS_CHECKER_H
#define WEFT_TESTS_ORDERS_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDERS_THREADS = 6 }; /* including the threads that they create, and the scenario's begin and end */

struct scenario {
	const char *name;
	void (*begin)(void);			  /* before the threads; may be NULL, like the other functions */
	void (*thread[ORDERS_THREADS - 1])(void); /* up to the first NULL */
	void (*end)(void);			  /* when all have ended */
	void (*all_wait)(void);			  /* whenever all threads wait, before time passes */
	unsigned preemptions;			  /* maximum number in an order that is tried; 0: any number */
	unsigned stale;				  /* maximum number of loads of an older value; 0: any number */
	bool random;				  /* orders are drawn at random, because there are too many */
	bool time_runs;				  /* a wait with a deadline may end at any time, as if late */
	bool no_crowd;				  /* a thread may be alone at first: see sched/single_thread.h */
};

/* Fails, and prints the steps that led here. */
#define HOLDS(condition) ((condition) ? (void)0 : orders_fail(#condition, __FILE__, __LINE__))
void orders_fail(const char *what, const char *file, int line);

/* Records what a thread saw, for a scenario that requires all outcomes to be seen. */
void orders_saw(unsigned bit);

extern const struct scenario queue_scenarios[], object_scenarios[], runtime_scenarios[];

#endif
