/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_TLS_H
#define WEFT_TESTS_TLS_H

#include <weft/weft.h>

enum { ROUNDS = 16 };

/* The value of the variables in the thread that continues the coroutine after this round. */
#define OTHER(round) (1000L + (round))

struct result {
	long plain, function, own; /* number of reads that did not give the thread's value */
	weft_coro_t *k;
};

/* Defines here_VARIABLE(), the address of a thread-local variable in the thread that calls it. */
#define THREAD_LOCAL(variable)                                                                                         \
	static __attribute__((noinline)) __typeof__(&(variable)) here_##variable(void)                                 \
	{                                                                                                              \
		__asm__ volatile("" : : : "memory");                                                                   \
		return &(variable);                                                                                    \
	}

extern __thread long tls_exported;
long *address_of_exported(void);
int tls_test(void);

#endif
