/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Runs a few threads of a few steps in every order, and lets every load return every value that C's memory model
 * allows: a model checker for the library's own sources, unchanged.
 *
 *   1. They are compiled with -fsanitize=thread, which makes each atomic operation, and each access to memory that
 *      others may see, a call of ThreadSanitizer's; checker.c is what these calls reach.
 *   2. A thread is a coroutine. It is suspended before each atomic operation; the checker decides who goes on.
 *   3. Orders that differ only in steps which do not touch each other are one order: dynamic partial-order reduction
 *      (Flanagan and Godefroid) with sleep sets (Godefroid).
 *   4. Memory keeps every store. A load may return the newest or, unless happens-before, coherence or the order of
 *      sequentially consistent operations forbids it, an older one. So what the processor at hand never does is tried
 *      too: what is ordered too weakly fails here.
 *   5. Other accesses are checked for races: each must be ordered with those of other threads by happens-before.
 *   6. Futexes, the clock, threads, malloc and free are the checker's. Time stands until all threads wait. All of them
 *      waiting without a deadline is a failure: a lost wake-up.
 *   7. A thread that spins (weft__pause) goes on when what it read last has changed.
 *
 * Not tried: stores to one place that others see in another order than that in which they were done here; loads that
 * return what is stored later (load buffering); compare-and-exchange that fails for no reason; a futex's wait that ends
 * for no reason. Threads and steps are as few as a scenario has; `random` in place of `all` is for those with too many.
 *
 * After CDSChecker (Norris and Demsky), which does more about the order of stores. That the compiler can call a model
 * checker at each access is known from C11Tester.
 */
#ifndef WEFT_TESTS_ORDERS_CHECKER_H
#define WEFT_TESTS_ORDERS_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ORDERS_THREADS = 6 }; /* with those that they make, and the scenario's begin and end */

struct scenario {
	const char *name;
	void (*begin)(void);			  /* before the threads; may be NULL, as the others may */
	void (*thread[ORDERS_THREADS - 1])(void); /* up to the first NULL */
	void (*end)(void);			  /* when all have ended */
	void (*all_wait)(void);			  /* whenever all threads wait, before time passes */
	unsigned preemptions;			  /* most of them in an order that is tried; 0: any number */
	unsigned stale;				  /* most loads that return what is not the newest; 0: any number */
	bool random;				  /* orders are drawn, for there are too many */
	bool time_runs;				  /* a wait with a deadline may end at any time, as if late */
	bool no_crowd;				  /* a thread may be alone at first: see sched/single_thread.h */
};

/* Fails, and prints the steps that led here. */
#define HOLDS(condition) ((condition) ? (void)0 : orders_fail(#condition, __FILE__, __LINE__))
void orders_fail(const char *what, const char *file, int line);

/* What a thread saw, for who wants to know that all of it was seen. */
void orders_saw(unsigned bit);

extern const struct scenario queue_scenarios[], object_scenarios[], runtime_scenarios[];

#endif
