/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The library's own mutexes. libweft-posix.so replaces pthread_mutex_lock by a function that may suspend a task. The
 * library's code must not be suspended while it takes a lock, so it calls libc's functions by these pointers.
 */
#ifndef WEFT_SRC_INTERNAL_MUTEX_H
#define WEFT_SRC_INTERNAL_MUTEX_H

#include <pthread.h>
#include <weft/base.h>

/* Defined in signal_safe_lock.c. Initially pthread_mutex_lock and pthread_mutex_unlock; weft__posix_meet_others stores
 * libc's own functions. libweft-rt.so uses the pointers of libweft.so. */
struct weft__mutex_calls {
	int (*lock)(pthread_mutex_t *mutex);
	int (*unlock)(pthread_mutex_t *mutex);
};
extern WEFT_API struct weft__mutex_calls weft__mutex_calls;

static inline void weft__mutex_lock(pthread_mutex_t *mutex)
{
	(void)weft__mutex_calls.lock(mutex);
}

static inline void weft__mutex_unlock(pthread_mutex_t *mutex)
{
	(void)weft__mutex_calls.unlock(mutex);
}

#endif
