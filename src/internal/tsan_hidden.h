/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What ThreadSanitizer must not see of the library. The program has ThreadSanitizer and the library has not, but
 * ThreadSanitizer intercepts each call of pthread_mutex_lock, and takes the library's locks for the program's. A warm
 * list's lock would order all that two threads do before and after, and hide the races between their coroutines.
 *
 * So locks are taken unseen. Then nothing orders a thread that gives a stack back and the one that gets it next, whose
 * accesses would look like races: what ThreadSanitizer knows of the stack's memory is forgotten when it leaves its
 * thread, as free does with a block.
 *
 * A library that is built with ThreadSanitizer shows it everything, locks too: there it looks at the library itself.
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

/* ThreadSanitizer takes no notice of what this thread does until weft__unseen_end, nor of memcpy, which it intercepts
 * too. */
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

/* What the thread that releases has done is before what the thread that acquires does. For memory that is not whole
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
