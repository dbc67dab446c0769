/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Thread-local variables after a switch that moved the coroutine to another thread.
 *
 * Weft guarantees, with any compiler: weft_current() and everything in its own headers are the new thread's. Compilers
 * guarantee nothing about the program's variables. For them a function runs on one thread, so the address of a __thread
 * variable is computed once and kept over the switch, and so is the result of errno's accessor, which is declared
 * constant. gcc and clang do this from -O1 on, in executables (mostly errno and arrays) and in shared objects
 * (everything). No clobber prevents it. One way is known to work, and must work: a function that is neither inlined nor
 * known to have no effects, as THREAD_LOCAL of tls.h defines it.
 *
 * Plain accesses are counted, but need not be right. The lane requires some wrong accesses: without any, the other
 * checks prove nothing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <weft/weft.h>

#include "tls.h"

__thread long tls_exported;	    /* in a shared object found by a call of __tls_get_addr */
static __thread long tls_static;    /* at a constant offset, or a call for all of the file's */
static __thread char tls_array[64]; /* of which only the address is used */

THREAD_LOCAL(tls_static)
THREAD_LOCAL(tls_array)

static __attribute__((noinline)) void set_errno(int value)
{
	errno = value;
}

static __attribute__((noinline)) int get_errno(void)
{
	__asm__ volatile("" : : : "memory");
	return errno;
}

struct result result;

/* The optimizer can simplify each loop: the address is the same in all rounds. */
static void *body(void *unused)
{
	for (int round = 0; round < ROUNDS; round++) {
		tls_exported += 1;
		tls_static += 1;
		tls_array[round] = 1;
		errno = round;
		(void)weft_suspend(NULL);
		/* Now on the other thread, whose variables identify it. */
		result.plain += tls_exported != OTHER(round);
		result.plain += tls_static != OTHER(round);
		result.plain += tls_array[0] != (char)OTHER(round);
		result.plain += errno != (int)OTHER(round);
		result.function += *here_tls_static() != OTHER(round);
		result.function += (*here_tls_array())[0] != (char)OTHER(round);
		result.function += *address_of_exported() != OTHER(round);
		result.function += get_errno() != (int)OTHER(round);
		result.own += weft_current() != result.k;
	}
	return unused;
}

/* The thread's variables hold the round and the thread. */
static void mark(long value)
{
	tls_exported = tls_static = value;
	memset(tls_array, (int)value, sizeof tls_array);
	set_errno((int)value);
}

static pthread_barrier_t barrier;

static void *thread(void *number)
{
	long me = (long)number;

	for (int round = 0; round <= ROUNDS; round++) {
		pthread_barrier_wait(&barrier);
		if (round % 2 == me) {
			mark(round ? OTHER(round - 1) : 0);
			(void)weft_resume(result.k, NULL, WEFT_HANDLE_NONE);
		} else {
			mark(-1);
		}
	}
	return number;
}

static int run(void)
{
	pthread_t threads[2];

	result.k = weft_create(body, NULL);
	if (!result.k || pthread_barrier_init(&barrier, NULL, 2))
		return 1;
	for (long i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, thread, (void *)i))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	weft_delete(result.k);
	return 0;
}

int tls_test(void)
{
	if (run())
		return 2;
	printf("wrong: plain accesses %ld, by a function %ld, weft's own %ld\n", result.plain, result.function,
	       result.own);
	return result.function || result.own;
}
