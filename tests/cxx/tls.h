/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef WEFT_TESTS_TLS_H
#define WEFT_TESTS_TLS_H

#include <weft/weft.h>

enum { ROUNDS = 16 };

/* What the variables of the thread hold that continues the coroutine after this round. */
#define OTHER(round) (1000L + (round))

struct result {
	long plain, function, own; /* how many reads gave another value than the thread's */
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
