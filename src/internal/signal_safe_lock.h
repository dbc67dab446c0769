/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Locks and one-time calls that detect a call from a signal handler which interrupted the same thread in the middle of
 * them: the handler would wait forever for the thread that it interrupted. A flag of the thread is set before the wait
 * and cleared after the work.
 *
 * A coroutine whose stack cannot grow fails in the middle of a function, and its locks stay locked. So the stack that
 * the work will need is touched before.
 */
#ifndef WEFT_SRC_SIGNAL_SAFE_LOCK_H
#define WEFT_SRC_SIGNAL_SAFE_LOCK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "internal/message.h"
#include "internal/tsan_hidden.h"

#define WEFT__FLAG_OF_THREAD static __thread __attribute__((tls_model("initial-exec"))) bool

enum { WEFT__WORK_BYTES = 3072 }; /* frames of the work under a lock, compiled without optimization */

/* Read only: a stack without a guard may end before these bytes do. */
static __attribute__((noinline, unused)) void weft__touch_stack(void)
{
	char below[WEFT__WORK_BYTES];

	__asm__ volatile("" : "=m"(below));
	(void)*(volatile char *)below;
}

/* Like weft__touch_stack, for work that needs a few hundred bytes, if the compiler optimizes. Usually these are in the
 * task's current page; if each of a thousand tasks touched a second page, each would cause one more TLB miss. */
static inline __attribute__((always_inline)) void weft__touch_near_stack(void)
{
#if defined(__OPTIMIZE__) && !WEFT__SANITIZED
	const uintptr_t page = 4096, here = (uintptr_t)__builtin_frame_address(0);

	if (__builtin_expect(here % page >= 1024, 1))
		return;
#endif
	weft__touch_stack();
}

static inline void weft__begin(bool *inside)
{
	weft__touch_stack();
	if (__builtin_expect(*inside, 0))
		weft__die_in_handler();
	*inside = true;
	__asm__ volatile("" : : : "memory");
}

static inline void weft__end(bool *inside)
{
	__asm__ volatile("" : : : "memory");
	*inside = false;
}

/* Defines lock() and unlock() for this mutex, the only lock of a file. Work under the lock needs less stack than
 * WEFT__WORK_BYTES. */
#define WEFT__LOCK_OF_FILE(mutex)                                                                                      \
	WEFT__FLAG_OF_THREAD weft__locked;                                                                             \
                                                                                                                       \
	static __attribute__((noinline)) void lock(void)                                                               \
	{                                                                                                              \
		weft__lock_file(&weft__locked, &(mutex));                                                              \
	}                                                                                                              \
                                                                                                                       \
	static __attribute__((noinline)) void unlock(void)                                                             \
	{                                                                                                              \
		weft__unlock_file(&weft__locked, &(mutex));                                                            \
	}                                                                                                              \
	_Static_assert(1, "a semicolon follows")

/* signal_safe_lock.c. `inside`: true while the thread has this file's lock. */
void weft__lock_file(bool *inside, pthread_mutex_t *mutex);
void weft__unlock_file(bool *inside, pthread_mutex_t *mutex);

/* pthread_once for one place in the source. */
#define WEFT__CALL_ONCE(function)                                                                                      \
	do {                                                                                                           \
		static pthread_once_t weft__once = PTHREAD_ONCE_INIT;                                                  \
		static atomic_bool weft__done;                                                                         \
		WEFT__FLAG_OF_THREAD weft__inside;                                                                     \
                                                                                                                       \
		/* Acquire: pairs with the release below. */                                                           \
		if (__builtin_expect(atomic_load_explicit(&weft__done, memory_order_acquire), 1))                      \
			break;                                                                                         \
		weft__begin(&weft__inside);                                                                            \
		weft__unseen_begin();                                                                                  \
		pthread_once(&weft__once, function);                                                                   \
		weft__unseen_end();                                                                                    \
		weft__end(&weft__inside);                                                                              \
		atomic_store_explicit(&weft__done, true, memory_order_release);                                        \
	} while (0)

#endif
