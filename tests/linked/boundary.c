/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * boundary [THREADS]: in each thread a coroutine under mmu goes down through the end of its chunk, and calls an empty
 * function in a loop at each depth. If the call crosses to the next chunk, it must soon stop faulting. In the second
 * pass of all threads, the test measures the processor time of a call at the worst depth, and takes the median of all
 * threads. boundary trap: a thread reaches a probe while another thread has a trap in its place, and later finds the
 * jump.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

enum { DEPTHS = 600, LEARN = 40, CALLS = 200, MOST_THREADS = 64 };

/* Its frame is larger than its callers' frames together, so that this call crosses the boundary. */
static __attribute__((noinline)) long empty(long n)
{
	volatile long frame[100];

	frame[0] = n;
	return frame[0] + 1;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static __attribute__((noinline)) long calls(int count)
{
	long sum = 0;

	for (int i = 0; i < count; i++)
		sum = empty(sum);
	return sum;
}

struct work {
	pthread_t thread;
	double worst;
	long sum;
};

/* The best of three runs, because other processes disturb. */
static __attribute__((noinline)) double measured(struct work *w)
{
	double best = 1e9;

	w->sum += calls(LEARN);
	for (int i = 0; i < 3; i++) {
		double start = now();

		w->sum += calls(CALLS);
		start = (now() - start) / CALLS;
		best = start < best ? start : best;
	}
	return best;
}

static __attribute__((noinline)) void descend(struct work *w, int n)
{
	volatile int here[16] = {n};
	double each = measured(w);

	if (each > w->worst)
		w->worst = each;
	if (n)
		descend(w, n - 1);
	here[1] = here[0];
}

static void *body(void *w)
{
	descend(w, DEPTHS);
	return NULL;
}

/* The run time's layout of this program's probes. */
struct probe {
	int pc, slow, compare;
};
extern const struct probe __start_weft_probes[], __stop_weft_probes[];

static unsigned char *probe_of_empty(void)
{
	for (const struct probe *p = __start_weft_probes; p < __stop_weft_probes; p++) {
		unsigned char *pc = (unsigned char *)&p->pc + p->pc;

		if ((uintptr_t)pc - (uintptr_t)empty < 8)
			return pc;
	}
	return NULL;
}

static void *body_of_trap(void *pc)
{
	static const unsigned char trap = 0xf4;
	int memory = open("/proc/self/mem", O_WRONLY);
	long sum;

	if (!pc || pwrite(memory, &trap, 1, (off_t)(uintptr_t)pc) != 1)
		abort();
	sum = calls(1000);
	printf("%s - a trap in the place of a probe\n", sum == 1000 ? "ok" : "not ok");
	return NULL;
}

static int trap(void)
{
	const weft_attr_t attr = {.policy = WEFT_MMU};
	weft_coro_t *k = weft_create_with(body_of_trap, probe_of_empty(), &attr);

	if (!k)
		abort();
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return 0;
}

static pthread_barrier_t all_have_learned;
static weft_stack_stats_t learned;

static void go(struct work *w)
{
	const weft_attr_t attr = {.policy = WEFT_MMU, .stack_size = 64 << 10};
	weft_coro_t *k = weft_create_with(body, w, &attr);

	if (!k)
		abort();
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

static void *run(void *argument)
{
	struct work *w = argument;

	go(w);
	if (pthread_barrier_wait(&all_have_learned) == PTHREAD_BARRIER_SERIAL_THREAD)
		weft_stack_stats(WEFT_MMU, &learned);
	pthread_barrier_wait(&all_have_learned);
	w->worst = 0;
	go(w);
	return NULL;
}

static int by_worst(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return (x->worst > y->worst) - (x->worst < y->worst);
}

int main(int argc, char **argv)
{
	static struct work work[MOST_THREADS];
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	weft_stack_stats_t s;
	size_t each;

	if (argc > 1 && !strcmp(argv[1], "trap"))
		return trap();
	pthread_barrier_init(&all_have_learned, NULL, (unsigned)threads);
	for (int i = 0; i < threads; i++)
		if (pthread_create(&work[i].thread, NULL, run, &work[i]))
			return 2;
	for (int i = 0; i < threads; i++)
		pthread_join(work[i].thread, NULL);
	qsort(work, (size_t)threads, sizeof *work, by_worst);
	weft_stack_stats(WEFT_MMU, &s);
	each = (s.probes - learned.probes) / (size_t)threads;
	/* Some chunks are added, because other functions cross to a chunk. */
	printf(
	    "%s - %d threads: %zu faults each in the end, %zu chunks added, at the worst depth a call takes %.0f ns\n",
	    s.splits && each < 20 ? "ok" : "not ok", threads, each, s.splits, work[threads / 2].worst);
	return s.splits && each < 20 ? 0 : 1;
}
