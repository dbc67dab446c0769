/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * threads.h: what the experiments with whole threads share (D1, D2, D3). A program's work runs in t threads, all
 * started through Weft on the policy in force; with plain=1 they are plain threads of the system.
 *
 * `stack` is what the work needs at its deepest, in bytes.
 */
#ifndef LAB_THREADS_H
#define LAB_THREADS_H

#include "deep.h"
#include "lab.h"
#include <pthread.h>

enum { LAB_MOST_THREADS = 1024 };

/* What a thread works on; the first member of a program's own. */
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
	weft_attr_t attr = {.name = "lab", .stack_size = lab_stack_for(stack)};

	errno = weft_thread_create(&t->thread, &attr, work, t);
	if (errno < 0)
		errno = -errno;
	if (errno)
		lab_die("weft_thread_create");
}

/* Start `count` threads and wait for all, timed. `jobs`: an array of things of `size` bytes, a lab_thread first. */
static inline void lab_threads_run(void *jobs, size_t size, int64_t count, size_t stack, bool plain,
				   void *(*work)(void *))
{
	char *job = jobs;
	int64_t i;

	if (count < 1 || count > LAB_MOST_THREADS) {
		errno = 0;
		lab_die("t must be 1…1024: starting the threads");
	}
	lab_start();
	for (i = 0; i < count; i++)
		(plain ? lab_thread_plain : lab_thread_weft)((struct lab_thread *)(job + (size_t)i * size), stack,
							     work);
	for (i = 0; i < count; i++)
		pthread_join(((struct lab_thread *)(job + (size_t)i * size))->thread, NULL);
	lab_stop();
}

/* As lab_report, and how often stacks of the policy in force grew meanwhile. */
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
