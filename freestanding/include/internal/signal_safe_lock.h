/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* In place of src/internal/signal_safe_lock.h: the core has a lock for dlopen and weft_set_default beside threads,
 * and a lock for the program's array. */
#ifndef WEFT_FREESTANDING_ONCE_H
#define WEFT_FREESTANDING_ONCE_H

#include <stdatomic.h>

#include "internal/message.h"

typedef atomic_flag pthread_mutex_t;
#define PTHREAD_MUTEX_INITIALIZER ATOMIC_FLAG_INIT

static inline int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void))
{
	(void)before;
	(void)parent;
	(void)child;
	return 0;
}

#define WEFT__LOCK_OF_FILE(mutex)                                                                                      \
	static void lock(void)                                                                                         \
	{                                                                                                              \
		while (atomic_flag_test_and_set_explicit(&(mutex), memory_order_acquire))                              \
			;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	static void unlock(void)                                                                                       \
	{                                                                                                              \
		atomic_flag_clear_explicit(&(mutex), memory_order_release);                                            \
	}                                                                                                              \
	_Static_assert(1, "a semicolon follows")

#endif
