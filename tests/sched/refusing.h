/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Refuses requests for memory, threads and descriptors in turn: the k-th request, for every k, or all requests from the
 * k-th on. Each run is a process of its own. The program must succeed, or fail with an error that the headers name. It
 * must not crash, hang, or leak memory. Linked with --wrap for each function that asks the system.
 *
 * A test defines program(), and calls refuse_all() or refuse().
 */
#ifndef WEFT_TESTS_SCHED_REFUSING_H
#define WEFT_TESTS_SCHED_REFUSING_H

#include "check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

/* Returns 0, or the error that ended the program. */
static int program(void);

/* ---- refusing --------------------------------------------------------------------------------------------------- */

static struct {
	unsigned first, width;
	uint32_t count; /* requests so far; atomic */
	bool counting;	/* atomic */
	bool of_others; /* the requests of this thread are not refused */
	pthread_t self;
	long blocks; /* living blocks of malloc; atomic */
} refusing;

static bool refused(void)
{
	unsigned n;

	if (!__atomic_load_n(&refusing.counting, __ATOMIC_RELAXED) ||
	    (refusing.of_others && pthread_equal(pthread_self(), refusing.self)))
		return false;
	n = __atomic_fetch_add(&refusing.count, 1, __ATOMIC_RELAXED);
	return n >= refusing.first && n - refusing.first < refusing.width;
}

static void *counted(void *block)
{
	if (block)
		__atomic_fetch_add(&refusing.blocks, 1, __ATOMIC_RELAXED);
	return block;
}

#define WRAPPED(result, name, parameters, arguments, failed, error, keep)                                              \
	result __real_##name parameters;                                                                               \
	result __wrap_##name parameters;                                                                               \
	result __wrap_##name parameters                                                                                \
	{                                                                                                              \
		if (!refused())                                                                                        \
			return keep(__real_##name arguments);                                                          \
		errno = error;                                                                                         \
		return failed;                                                                                         \
	}

WRAPPED(void *, malloc, (size_t size), (size), NULL, ENOMEM, counted)
WRAPPED(void *, calloc, (size_t count, size_t size), (count, size), NULL, ENOMEM, counted)
WRAPPED(void *, aligned_alloc, (size_t alignment, size_t size), (alignment, size), NULL, ENOMEM, counted)
WRAPPED(void *, mmap, (void *at, size_t size, int access, int flags, int fd, off_t offset),
	(at, size, access, flags, fd, offset), MAP_FAILED, ENOMEM, )
WRAPPED(int, mprotect, (void *at, size_t size, int access), (at, size, access), -1, ENOMEM, )
WRAPPED(FILE *, open_memstream, (char **text, size_t *size), (text, size), NULL, ENOMEM, )
WRAPPED(int, timerfd_create, (int clock, int flags), (clock, flags), -1, EMFILE, )

/* Not wrapped with --wrap, because the library already has a __wrap_pthread_create for programs. */
typedef int create_t(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg);

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
	return refused() ? EAGAIN : ((create_t *)dlsym(RTLD_NEXT, "pthread_create"))(thread, attr, fn, arg);
}

void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size)
{
	if (refused()) {
		errno = ENOMEM;
		return NULL;
	}
	return block ? __real_realloc(block, size) : counted(__real_realloc(NULL, size));
}

void __real_free(void *block);
void __wrap_free(void *block);
void __wrap_free(void *block)
{
	if (block)
		__atomic_fetch_sub(&refusing.blocks, 1, __ATOMIC_RELAXED);
	__real_free(block);
}

/* ---- in a process of its own ------------------------------------------------------------------------------------ */

/* Exit codes that no sanitizer uses. */
enum { WENT_WELL = 40, SAID_SO, NO_MORE };

/* Memory that the first run leaves allocated may be kept for the next run. A second run must leave no more. */
static int refuse(unsigned first, unsigned width)
{
	long blocks;
	int error;

	alarm(30);
	refusing.first = first;
	refusing.width = width;
	__atomic_store_n(&refusing.counting, true, __ATOMIC_RELAXED);
	error = program();
	__atomic_store_n(&refusing.counting, false, __ATOMIC_RELAXED);
	if (__atomic_load_n(&refusing.count, __ATOMIC_RELAXED) <= first)
		return NO_MORE;
	CHECK(program() == 0);
	blocks = __atomic_load_n(&refusing.blocks, __ATOMIC_RELAXED);
	refusing.first = first;
	refusing.count = 0;
	__atomic_store_n(&refusing.counting, true, __ATOMIC_RELAXED);
	(void)program();
	__atomic_store_n(&refusing.counting, false, __ATOMIC_RELAXED);
	CHECK(__atomic_load_n(&refusing.blocks, __ATOMIC_RELAXED) <= blocks);
	return error ? SAID_SO : WENT_WELL;
}

static int refuse_each(unsigned width)
{
	unsigned k, fine = 0, said = 0;
	int status;
	pid_t child;

	for (k = 0;; k++) {
		fflush(NULL);
		child = fork();
		if (!child)
			exit(refuse(k, width));
		CHECK(child > 0 && waitpid(child, &status, 0) == child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == NO_MORE)
			break;
		if (!WIFEXITED(status) || (WEXITSTATUS(status) != WENT_WELL && WEXITSTATUS(status) != SAID_SO)) {
			printf("not ok - request %u, %u in a row: %s %d; to repeat it: refuse one %u %u\n", k, width,
			       WIFSIGNALED(status) ? "signal" : "code",
			       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), k, width);
			return 1;
		}
		fine += WEXITSTATUS(status) == WENT_WELL;
		said += WEXITSTATUS(status) == SAID_SO;
	}
	printf("%s - %u requests, each with %u in a row refused: %u went well, %u said so\n",
	       k > 50 && said > 10 ? "ok" : "not ok", k, width, fine, said);
	return 0;
}

static int refuse_all(void)
{
	return refuse_each(1) | refuse_each(3) | refuse_each(1000000);
}

#endif
