/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * threads.h: shared by the experiments with whole threads (D1, D2, D3). A program's work runs in t threads, all started
 * through Weft on the policy in force; with plain=1 they are plain threads of the system.
 *
 * `stack` is the contiguous stack that the work needs at its deepest, in bytes.
 */
#ifndef LAB_THREADS_H
#define LAB_THREADS_H

#include "deep.h"
#include "lab.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LAB_MOST_THREADS = 1024 };

/* A heap frame's block takes this many times the bytes of the smallest contiguous frame. */
enum { LAB_HEAP_FACTOR = 384 / 16 };

/*
 * Touches as much memory as the stacks will use, and frees it. In a virtual machine the host provides a page when the
 * guest first touches it, at up to two seconds per GB, and reclaims the pages that the guest leaves free. This cost is
 * a property of the machine, not of the policy, so the clock must not count it. The guest's own page faults count.
 */
static inline void lab_back_memory(size_t bytes)
{
	size_t most = (size_t)sysconf(_SC_AVPHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 4 * 3, i;
	char *start;

	if (!strcmp(weft_policy_name(weft_default_policy()), "heap"))
		bytes *= LAB_HEAP_FACTOR;
	if (bytes > most)
		bytes = most;
	start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (start == MAP_FAILED)
		return;
	(void)madvise(start, bytes, MADV_HUGEPAGE);
	for (i = 0; i < bytes; i += 4096)
		((volatile char *)start)[i] = 1;
	munmap(start, bytes);
}

/* The base of a thread's job; it is the first member of a program's own type. */
struct lab_thread {
	pthread_t thread;
};

static inline void lab_thread_plain(struct lab_thread *t, size_t stack, void *(*work)(void *))
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	errno = pthread_attr_setstacksize(&attr, (stack + LAB_STACK_RESERVE + 4095) & ~(size_t)4095);
	if (!errno)
		errno = pthread_create(&t->thread, &attr, work, t);
	if (errno)
		lab_die("pthread_create");
	pthread_attr_destroy(&attr);
}

static inline void lab_thread_weft(struct lab_thread *t, size_t stack, void *(*work)(void *))
{
	const size_t most = (size_t)1 << 30;
	weft_attr_t attr = {.name = "lab", .stack_size = lab_stack_for(stack)};

	if (attr.stack_size > most)
		lab_cannot("a contiguous stack of %zu MiB: Weft's have 1024 at most", attr.stack_size >> 20);
	errno = weft_thread_create(&t->thread, &attr, work, t);
	if (errno < 0)
		errno = -errno;
	if (errno)
		lab_die("weft_thread_create");
}

/* Starts `count` threads and waits for all, timed. `jobs`: an array of objects of `size` bytes that begin with a
 * lab_thread. */
static inline void lab_threads_run(void *jobs, size_t size, int64_t count, size_t stack, bool plain,
				   void *(*work)(void *))
{
	char *job = jobs;
	int64_t i;

	if (count < 1 || count > LAB_MOST_THREADS) {
		errno = 0;
		lab_die("t must be 1…1024: starting the threads");
	}
	lab_back_memory(stack * (size_t)count);
	lab_start();
	for (i = 0; i < count; i++)
		(plain ? lab_thread_plain : lab_thread_weft)((struct lab_thread *)(job + (size_t)i * size), stack,
							     work);
	for (i = 0; i < count; i++)
		pthread_join(((struct lab_thread *)(job + (size_t)i * size))->thread, NULL);
	lab_stop();
}

/* Like lab_report, and reports how often stacks of the policy in force grew meanwhile. */
static inline int lab_report_growth(uint64_t ops, int64_t result)
{
	weft_stack_stats_t stats = {0};
	char text[32], more[120];

	weft_stack_stats(WEFT_DEFAULT_POLICY, &stats);
	snprintf(text, sizeof(text), "%" PRId64, result);
	snprintf(more, sizeof(more), ", \"growths\": %zu, \"splits\": %zu, \"probes\": %zu, \"faults\": %zu",
		 stats.growths, stats.splits, stats.probes, stats.faults);
	return lab_report_more(ops, text, more);
}

#endif /* LAB_THREADS_H */
