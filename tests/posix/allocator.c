/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An allocator that locks a mutex, as jemalloc and tcmalloc do, also before any constructor has run. */
#include <pthread.h>
#include <stddef.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void __libc_free(void *block);

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int made;

static void make(void)
{
	made = 1;
}

static void begin(void)
{
	pthread_once(&once, make);
	if (!made)
		__builtin_trap();
	pthread_mutex_lock(&mutex);
}

void *malloc(size_t bytes)
{
	void *block;

	begin();
	block = __libc_malloc(bytes);
	pthread_mutex_unlock(&mutex);
	return block;
}

void *calloc(size_t count, size_t bytes)
{
	void *block;

	begin();
	block = __libc_calloc(count, bytes);
	pthread_mutex_unlock(&mutex);
	return block;
}

void free(void *block)
{
	begin();
	__libc_free(block);
	pthread_mutex_unlock(&mutex);
}
