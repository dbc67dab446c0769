/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hides the library's synchronization from ThreadSanitizer, if the program is built with ThreadSanitizer and the
 * library is not. ThreadSanitizer intercepts each call of pthread_mutex_lock, and takes the library's locks for the
 * program's. The lock of a warm list would order all operations of two threads before and after, and hide the races
 * between their coroutines.
 *
 * So ThreadSanitizer does not see these locks. Then nothing orders the thread that releases a stack and the next thread
 * that takes it, and their accesses would look like races. So ThreadSanitizer forgets earlier accesses to a stack's
 * memory when the stack leaves its thread, as it does when free releases a block.
 *
 * A library that is built with ThreadSanitizer hides nothing from it, because then the library itself is checked.
 */
#ifndef WEFT_SRC_INTERNAL_TSAN_HIDDEN_H
#define WEFT_SRC_INTERNAL_TSAN_HIDDEN_H

#include <pthread.h>
#include <stddef.h>
#include <weft/base.h>

#include "internal/mutex.h"

#if !WEFT__TSAN
/* Present if the program is built with ThreadSanitizer. */
void AnnotateIgnoreSyncBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreSyncEnd(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesBegin(const char *file, int line) __attribute__((weak));
void AnnotateIgnoreWritesEnd(const char *file, int line) __attribute__((weak));
void __tsan_acquire(void *address) __attribute__((weak));
void __tsan_release(void *address) __attribute__((weak));

static inline bool weft__on_tsan(void)
{
	return AnnotateIgnoreSyncBegin != NULL;
}

/* ThreadSanitizer ignores all operations of this thread until weft__unseen_end, and memcpy too, which it intercepts. */
static inline void weft__unseen_begin(void)
{
	if (weft__unlikely(weft__on_tsan())) {
		AnnotateIgnoreSyncBegin(__func__, __LINE__);
		AnnotateIgnoreWritesBegin(__func__, __LINE__);
	}
}

static inline void weft__unseen_end(void)
{
	if (weft__unlikely(weft__on_tsan())) {
		AnnotateIgnoreWritesEnd(__func__, __LINE__);
		AnnotateIgnoreSyncEnd(__func__, __LINE__);
	}
}

/* Order the operations of the releasing thread before those of the acquiring thread. For memory that is not whole
 * pages. */
static inline void weft__seen_release(void *address)
{
	if (weft__unlikely(weft__on_tsan()))
		__tsan_release(address);
}

static inline void weft__seen_acquire(void *address)
{
	if (weft__unlikely(weft__on_tsan()))
		__tsan_acquire(address);
}
#else
#define weft__on_tsan() false
#define weft__unseen_begin() ((void)0)
#define weft__unseen_end() ((void)0)
#define weft__seen_release(address) ((void)(address))
#define weft__seen_acquire(address) ((void)(address))
#endif

static inline void weft__lock_unseen(pthread_mutex_t *mutex)
{
	weft__unseen_begin();
	weft__mutex_lock(mutex);
}

static inline void weft__unlock_unseen(pthread_mutex_t *mutex)
{
	weft__mutex_unlock(mutex);
	weft__unseen_end();
}

#endif
