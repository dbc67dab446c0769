/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instrumented code on stacks of every kind: deep, with every kind of call at every distance from a chunk's end,
 * calling code that does not check and called back by it, leaving frames by longjmp, unwinding and exit, interrupted
 * by signals, in threads, forked, without memory. ./linked [NAME]; the policy is WEFT_STACK's.
 */
#define _GNU_SOURCE

#include <alloca.h>
#include <complex.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "faults/scenario.h"
#include "linked/aligned.h"
#include "linked/linked.h"

#define DEEP 20000

static bool grows(void)
{
	return weft_default_policy() >= WEFT_SEGMENTED && weft_default_policy() <= WEFT_MMU;
}

/* Contiguous stacks are too small for these depths. */
static long deep(void)
{
	return grows() ? DEEP : 100;
}

static size_t live(void)
{
	size_t n = 0;

	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		n += stats_of((weft_policy_t)p).live;
	return n;
}

static weft_coro_t *make(weft_fn_t *fn, void *argument)
{
	weft_coro_t *k = weft_create(fn, argument);

	REQUIRE(k);
	return k;
}

/* Runs fn(argument) in a coroutine to its end, and resumes it after each suspension. */
static void *run(weft_fn_t *fn, void *argument)
{
	weft_coro_t *k = make(fn, argument);
	weft_request_t r;

	do
		r = resume(k);
	while (!weft_returned(r) && r.effect != &weft_failed);
	REQUIRE(weft_returned(r));
	weft_delete(k);
	return r.payload;
}

static __attribute__((noinline)) long sum(long n)
{
	volatile long keep = n;

	return n ? sum(n - 1) + keep : 0;
}

static void *sums(void *n)
{
	return (void *)sum((long)n);
}

/* ---- depth ------------------------------------------------------------------------------------------------------ */

static void depth(void)
{
	long n = grows() ? 300000 : 500;
	weft_stack_stats_t stats;

	for (int again = 0; again < 3; again++)
		REQUIRE((long)run(sums, (void *)n) == n * (n + 1) / 2);
	stats = stats_of(weft_default_policy());
	REQUIRE(!grows() || stats.splits > 0);
	REQUIRE(!grows() || weft_default_policy() == WEFT_HEAP || stats.growths > 0);
	REQUIRE(live() == 0);
}

static __attribute__((noinline)) long wide(long n)
{
	volatile char frame[70000];

	frame[0] = frame[sizeof frame - 1] = (char)n;
	return n ? wide(n - 1) + (frame[0] == frame[sizeof frame - 1]) : 0;
}

static void *wides(void *n)
{
	return (void *)wide((long)n);
}

static void wide_frames(void)
{
	long n = grows() ? 100 : 1;

	REQUIRE((long)run(wides, (void *)n) == n);
}

/* ---- calls of all kinds, at every distance from the end ---------------------------------------------------------- */

/* The compiler must not change its arguments. */
#if defined(__clang__)
#define CALLED __attribute__((noinline))
#else
#define CALLED __attribute__((noinline, noipa))
#endif

typedef double vector __attribute__((vector_size(32)));

static CALLED double many(int a, double b, int c, float d, long e, long f, long g, long h, struct large i,
			  long double j, int k)
{
	volatile char frame[300];

	frame[0] = 1;
	return plain_many(a, b, c, d, e, f, g, h, i, j, k) * frame[0];
}

static CALLED struct large large(struct large a, long b)
{
	volatile char frame[200];

	frame[0] = 1;
	for (int at = 0; at < LARGE; at++)
		a.word[at] += b * frame[0];
	return a;
}

static CALLED int variadic(int count, ...)
{
	volatile char frame[400];
	va_list list;
	int total = 0;

	frame[0] = 1;
	va_start(list, count);
	while (count--)
		total += va_arg(list, int) * frame[0];
	va_end(list);
	return total;
}

static CALLED long double longer(long double a, long double b)
{
	volatile char frame[500];

	frame[0] = 2;
	return a * b + frame[0];
}

static CALLED double complex turned(double complex z)
{
	volatile double i = 1;

	return z * (I * i);
}

static CALLED vector vectors(vector a, vector b, vector c)
{
	volatile char frame[700];

	frame[0] = 1;
	return a * b + c * (double)frame[0];
}

struct pair {
	double a;
	long b;
};

static __attribute__((noinline)) struct pair paired(double a, long b)
{
	volatile char frame[260];

	frame[0] = 1;
	return (struct pair){a + frame[0], b - frame[0]};
}

static const struct large numbers = {{1, 2, 3, [LARGE - 1] = 4}};

static void each_kind(void)
{
	struct large l = large(numbers, 7), m = plain_large(numbers, 7);
	vector v = vectors((vector){1, 2, 3, 4}, (vector){5, 6, 7, 8}, (vector){1, 1, 1, 1});
	struct pair p = paired(1.5, 10);

	REQUIRE(many(1, 2.5, 3, 4.5f, 5, 6, 7, 8, numbers, 9.5L, 10) == 56.5 + 10);
	REQUIRE(l.word[0] == 8 && l.word[2] == 10 && l.word[LARGE - 1] == 11 && !memcmp(&l, &m, sizeof l));
	REQUIRE(variadic(10, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) == 55 && plain_sum(9, 1, 2, 3, 4, 5, 6, 7, 8, 9) == 45);
	REQUIRE(longer(3, 5) == 17 && turned(1 + 2 * I) == -2 + I);
	REQUIRE(v[0] == 6 && v[1] == 13 && v[2] == 22 && v[3] == 33);
	REQUIRE(p.a == 2.5 && p.b == 9);
}

static __attribute__((noinline)) long kinds_at(long n)
{
	volatile long keep = n;

	each_kind();
	return n ? kinds_at(n - 1) + (keep != n) : 0;
}

static void *kinds(void *n)
{
	return (void *)kinds_at((long)n);
}

/* Stacks are executable only in programs that request it: nested.c. */
static void no_code_on_stacks(void)
{
	char line[400];
	FILE *maps = fopen("/proc/self/maps", "r");

	REQUIRE(!run(kinds, (void *)10L));
	REQUIRE(maps);
	while (fgets(line, sizeof line, maps))
		REQUIRE(!strstr(line, " rwxp "));
	fclose(maps);
}

static void all_calls(void)
{
	REQUIRE(!run(kinds, (void *)(grows() ? 400L : 10L)));
}

/* ---- arrays ------------------------------------------------------------------------------------------------------ */

static __attribute__((noinline)) long array(long n, size_t bytes)
{
	volatile char vla[bytes];
	volatile char *more = alloca(bytes);

	for (size_t i = 0; i < bytes; i += 100)
		vla[i] = more[i] = (char)n;
	vla[bytes - 1] = more[bytes - 1] = (char)n;
	if (n && array(n - 1, bytes) != n - 1)
		return -1;
	for (size_t i = 0; i < bytes; i += 100)
		if (vla[i] != (char)n || more[i] != (char)n)
			return -1;
	return n;
}

static long resident(void)
{
	long size, pages;
	FILE *file = fopen("/proc/self/statm", "r");

	REQUIRE(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
	fclose(file);
	return pages * 4096;
}

static void *arrays_body(void *unused)
{
	(void)unused;
	for (int i = 0; i < 30; i++)
		REQUIRE(array(20, 100 + (size_t)i * 40) == 20);
	if (!grows())
		return NULL;
	for (int i = 0; i < 100; i++)
		REQUIRE(array(10, 50000) == 10);
	return NULL;
}

static void arrays(void)
{
	long before;

	run(arrays_body, NULL);
	before = resident();
	for (int i = 0; i < 30; i++)
		run(arrays_body, NULL);
	REQUIRE(resident() < before + (20 << 20));
}

/* ---- code that does not check ------------------------------------------------------------------------------------ */

static void *calls_plain(void *argument)
{
	(void)argument;
	REQUIRE(plain_depth(100) == 100);
	REQUIRE(plain_calls(sum, 50) == 1276);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;

	REQUIRE(sum(30) == 465);
	if (x % 64 == 0)
		weft_suspend(NULL);
	return (x > y) - (x < y);
}

static void *sorts(void *argument)
{
	int number[500];
	unsigned state = (unsigned)(size_t)argument;

	for (int i = 0; i < 500; i++)
		number[i] = (int)((state = state * 1103515245 + 12345) >> 8);
	qsort(number, 500, sizeof *number, compare);
	for (int i = 1; i < 500; i++)
		REQUIRE(number[i - 1] <= number[i]);
	return NULL;
}

static void *rotates(void *argument)
{
	weft_coro_t **k = argument;

	for (int left = 8; left > 0;) {
		left = 0;
		for (int i = 0; i < 8; i++)
			if (weft_state(k[i]) == WEFT_SUSPENDED)
				left += !weft_returned(resume(k[i]));
	}
	return NULL;
}

/* C library functions suspend during a callback, several at a time, and continue in other threads. */
static void callbacks(void)
{
	weft_coro_t *k[2][8];
	pthread_t thread[2];

	run(calls_plain, NULL);
	REQUIRE((long)run(plain_body, (void *)50L) == 50);
	for (int round = 0; round < 10; round++) {
		for (int t = 0; t < 2; t++)
			for (int i = 0; i < 8; i++) {
				k[t][i] = make(sorts, (void *)(size_t)(round * 16 + t * 8 + i));
				resume(k[t][i]);
			}
		for (int t = 0; t < 2; t++)
			REQUIRE(!pthread_create(&thread[t], NULL, rotates, k[t]));
		for (int t = 0; t < 2; t++) {
			pthread_join(thread[t], NULL);
			for (int i = 0; i < 8; i++)
				weft_delete(k[t][i]);
		}
	}
	REQUIRE(live() == 0);
}

static void *on_system_body(void *unused)
{
	(void)unused;
	for (long n = 0; n < (grows() ? 200 : 4); n++)
		REQUIRE(weft_on_system_stack(plain_depth, 1000L) == 1000);
	REQUIRE(weft_on_system_stack(plain_many, 1, 2.5, 3, 4.5f, 5L, 6L, 7L, 8L, numbers, 9.5L, 10) == 66.5);
	REQUIRE(weft_on_system_stack(plain_large, numbers, 7L).word[LARGE - 1] == 11);
	REQUIRE(weft_on_system_stack(plain_sum, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9) == 45);
	REQUIRE(weft_on_system_stack(plain_calls, sum, weft_on_system_stack(plain_depth, 20L)) == 211);
	return NULL;
}

static void system_stacks(void)
{
	run(on_system_body, NULL);
	on_system_body(NULL);
	REQUIRE(live() == 0);
}

/* ---- frames that are left otherwise ------------------------------------------------------------------------------ */

static jmp_buf out, middle;

static __attribute__((noinline)) long jumps(long n)
{
	volatile long keep = n;

	if (!n)
		longjmp(keep % 2 ? middle : out, 5);
	return jumps(n - 1) + keep;
}

static int compare_and_jump(const void *a, const void *b)
{
	(void)a;
	(void)b;
	sum(100);
	plain_jump(&out, 7);
	return 0;
}

static __attribute__((noinline)) long jumps_within(long n)
{
	volatile long keep = n;
	int array[4] = {3, 2, 1, 0};

	if (n)
		return jumps_within(n - 1) + (keep != n);
	if (setjmp(middle) == 0)
		longjmp(middle, 1);
	REQUIRE(sum(deep()) == deep() * (deep() + 1) / 2);
	if (setjmp(out) == 0)
		jumps(deep());
	REQUIRE(sum(200) == 20100);
	if (setjmp(out) == 0)
		qsort(array, 4, sizeof *array, compare_and_jump);
	REQUIRE(sum(deep()) == deep() * (deep() + 1) / 2);
	return 0;
}

static void *jumps_body(void *unused)
{
	volatile int rounds = 0;

	(void)unused;
	if (setjmp(out) == 5)
		rounds++;
	if (rounds < 20)
		jumps(deep() / 2 * 2);
	for (long n = 0; n < (grows() ? 300 : 3); n++)
		REQUIRE(jumps_within(n) == 0);
	return NULL;
}

static void jumping(void)
{
	run(jumps_body, NULL);
	jumps_body(NULL);
	REQUIRE(live() == 0);
}

static int unwound;

static void note(void *unused)
{
	(void)unused;
	REQUIRE(sum(100) == 5050);
	unwound++;
}

static __attribute__((noinline)) long leaves(long n, bool waits)
{
	volatile long result;

	if (!n && !waits)
		pthread_exit((void *)77);
	if (!n)
		sum(200); /* makes a commit stack grow: the signal of pthread_cancel needs room */
	while (!n)
		pause();
	pthread_cleanup_push(note, NULL);
	result = leaves(n - 1, waits) + 1;
	pthread_cleanup_pop(0);
	return result;
}

static void *leaves_body(void *waits)
{
	return (void *)leaves(grows() ? 300 : 30, waits);
}

static void *leaves_thread(void *waits)
{
	run(leaves_body, waits);
	return NULL;
}

static void thread_ends(void)
{
	for (int kind = 0; kind < 4; kind++) { /* exit or cancel; in a coroutine or on the thread's stack */
		void *(*fn)(void *) = kind & 1 ? leaves_thread : leaves_body;
		size_t lost = live();
		pthread_t thread;
		void *result;

		unwound = 0;
		REQUIRE(!weft_thread_create(&thread, NULL, fn, (void *)(size_t)(kind & 2)));
		usleep(kind & 2 ? 50000 : 0);
		if (kind & 2)
			pthread_cancel(thread);
		pthread_join(thread, &result);
		REQUIRE(result == (kind & 2 ? PTHREAD_CANCELED : (void *)77));
		REQUIRE(unwound == (grows() ? 300 : 30));
		/* The thread frees its stack; the coroutine is not deleted. */
		REQUIRE(kind & 1 ? live() > lost : live() == lost);
	}
}

static __attribute__((noinline)) long exits(long n)
{
	volatile long keep = n;

	if (!n)
		exit(0);
	return exits(n - 1) + keep;
}

static void *exits_body(void *unused)
{
	(void)unused;
	return (void *)exits(deep());
}

static void at_exit(void)
{
	if (sum(100) != 5050)
		_exit(3);
}

static void process_ends(void)
{
	atexit(at_exit);
	run(exits_body, NULL);
	_exit(2);
}

/* ---- deletion ---------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) long waits_at(long n)
{
	volatile long keep = n;

	if (!n)
		weft_suspend(NULL);
	return n ? waits_at(n - 1) + keep : 0;
}

static void *waits(void *n)
{
	return (void *)waits_at((long)n);
}

static int suspends(const void *a, const void *b)
{
	weft_suspend(NULL);
	return a < b;
}

static void *waits_in_sort(void *unused)
{
	int array[3] = {1, 2, 3};

	qsort(array, 3, sizeof *array, suspends);
	return unused;
}

static void deleting(void)
{
	weft_coro_t *k[50];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 50; i++) {
			k[i] = make(i % 5 ? waits : waits_in_sort, (void *)(deep() / 20 * (i % 20)));
			resume(k[i]);
			if (i % 3 == 0) {
				weft_reset(k[i], waits, (void *)(deep() / 20 * (i % 7)));
				resume(k[i]);
			}
		}
		for (int i = 0; i < 50; i++)
			weft_delete(k[i]);
		REQUIRE(live() == 0);
	}
}

static void *makes_tiny(void *unused)
{
	weft_attr_t attr = {.policy = weft_default_policy(), .stack_size = 512};
	weft_coro_t *k[300];

	for (long i = 0; i < 300; i++) {
		k[i] = weft_create_with(waits, (void *)(i % 3 * 10), &attr);
		REQUIRE(k[i]);
		resume(k[i]);
	}
	for (long i = 0; i < 300; i++) {
		REQUIRE(weft_returned(resume(k[i])));
		weft_delete(k[i]);
	}
	return unused;
}

static void tiny(void)
{
	run(makes_tiny, NULL);
	REQUIRE(live() == 0);
}

/* Frames that know their contents, of three sizes: neighbours' frames are directly below and above in memory. */
static __attribute__((noinline)) long leaf(long n)
{
	volatile long here[14];

	for (long i = 0; i < 14; i++)
		here[i] = n;
	return here[n & 7] + here[13] - 2 * n;
}

static __attribute__((noinline)) long rest(long seed)
{
	char text[40], copy[40];

	memset(text, (int)(seed % 26) + 'a', sizeof text - 1);
	text[sizeof text - 1] = 0;
	memcpy(copy, text, sizeof copy);
	weft_suspend(NULL);
	return strcmp(copy, text) + (strlen(copy) != sizeof copy - 1) + leaf(seed);
}

#define FILLED(words)                                                                                                  \
	static __attribute__((noinline)) long filled##words(long n, long seed)                                         \
	{                                                                                                              \
		volatile long here[words];                                                                             \
		long wrong;                                                                                            \
                                                                                                                       \
		for (long i = 0; i < words; i++)                                                                       \
			here[i] = seed << 32 | n << 16 | i;                                                            \
		wrong = n ? filled##words(n - 1, seed) : rest(seed);                                                   \
		for (long i = 0; i < words; i++)                                                                       \
			wrong += here[i] != (seed << 32 | n << 16 | i);                                                \
		return wrong + leaf(n);                                                                                \
	}

FILLED(1)
FILLED(2)
FILLED(3)
FILLED(4)
FILLED(9)
FILLED(26)

static void *fills(void *argument)
{
	long seed = (long)argument, wrong = 0;

	for (long round = 0; round < 4; round++) {
		wrong += filled1(seed * (round + 1) % 24, seed);
		wrong += filled2(seed * (round + 3) % 20, seed);
		wrong += filled3(seed * (round + 5) % 18, seed);
		wrong += filled4(seed * (round + 7) % 16, seed);
		wrong += filled9((seed + round) % 9, seed);
		wrong += filled26((seed + round) % 5, seed);
	}
	return (void *)wrong;
}

/* Tiny and small chunks are adjacent in memory: frames must stay in their chunks. */
static void small_chunks(void)
{
	enum { COUNT = 400 };
	weft_attr_t attr = {.policy = weft_default_policy()};
	weft_coro_t *k[COUNT];
	size_t left = COUNT;

	for (long i = 0; i < COUNT; i++) {
		attr.stack_size = i % 3 ? 512 : 2048;
		REQUIRE((k[i] = weft_create_with(fills, (void *)(i * 7919 % 1009), &attr)));
	}
	while (left)
		for (long i = 0; i < COUNT; i++) {
			weft_request_t r;

			if (!k[i])
				continue;
			r = resume(k[i]);
			if (!weft_returned(r))
				continue;
			REQUIRE(!r.payload);
			weft_delete(k[i]);
			k[i] = NULL;
			left--;
		}
	REQUIRE(live() == 0);
}

/* The memory of a coroutine that waits at a given depth of calls, and the number of chunks linked for it. */
struct taken {
	size_t bytes, chunks;
};

static struct taken calls_deep(long calls, size_t size)
{
	enum { COUNT = 5000 };
	weft_attr_t attr = {.policy = weft_default_policy(), .stack_size = size};
	weft_coro_t **k = malloc(COUNT * sizeof *k);
	size_t bytes, splits = stats_of(attr.policy).splits;

	REQUIRE(k);
	for (long i = 0; i < COUNT; i++) {
		k[i] = weft_create_with(waits, (void *)calls, &attr);
		REQUIRE(k[i] && resume(k[i]).effect == &weft_suspended);
	}
	bytes = weft_stack_resident(attr.policy);
	splits = stats_of(attr.policy).splits - splits;
	/* All coroutines are equal. (heap counts the blocks that its lists did not have.) */
	REQUIRE(attr.policy == WEFT_HEAP || splits % COUNT == 0);
	for (long i = 0; i < COUNT; i++) {
		weft_request_t r = resume(k[i]);

		REQUIRE(weft_returned(r) && (long)r.payload == calls * (calls + 1) / 2);
		weft_delete(k[i]);
	}
	free(k);
	REQUIRE(weft_stack_trim() >= (size_t)COUNT * 100 && weft_stack_trim() == 0);
	return (struct taken){bytes / COUNT, splits / COUNT};
}

/* A call or two fit into a tiny chunk. Deeper calls use two small chunks, and then a page. */
static void small_chunks_are_small(void)
{
	struct taken taken = calls_deep(1, 1024);
	bool seen[3] = {false};

	if (weft_default_policy() != WEFT_SEGMENTED && weft_default_policy() != WEFT_LOOKAHEAD)
		return;
#ifdef __OPTIMIZE__ /* unoptimized frames need more */
	REQUIRE(taken.bytes < 900 && taken.chunks == 0);
#endif
	for (long calls = 1; taken.chunks < 3; calls++) {
		taken = calls_deep(calls, 2048);
		if (taken.chunks < 3) {
			REQUIRE(taken.bytes < 1300 + 1100 * taken.chunks);
			seen[taken.chunks] = true;
		}
	}
	REQUIRE(seen[0] && seen[1] && seen[2]);
}

/* ---- trimming */

static void *deep_then_waits(void *n)
{
	long result = sum((long)n);

	weft_suspend(NULL);
	return (void *)(result + sum((long)n));
}

static void trimming(void)
{
	enum { COUNT = 20 };
	long n = grows() ? 5000 : 1500, total = n * (n + 1);
	bool trims = weft_default_policy() != WEFT_HEAP && weft_default_policy() != WEFT_COPY;
	weft_attr_t attr = {.policy = weft_default_policy(), .stack_size = 256 << 10};
	weft_coro_t *k[COUNT];
	size_t before, after, bytes = 0;

	for (int i = 0; i < COUNT; i++) {
		k[i] = weft_create_with(deep_then_waits, (void *)n, &attr);
		REQUIRE(k[i]);
		resume(k[i]);
	}
	before = weft_stack_resident(weft_default_policy());
	for (int i = 0; i < COUNT; i++)
		bytes += weft_trim(k[i]);
	after = weft_stack_resident(weft_default_policy());
	REQUIRE(!trims || (bytes >= COUNT * 20000 && before >= after + COUNT * 20000));
	for (int i = 0; i < COUNT; i++) {
		weft_request_t r = resume(k[i]);

		REQUIRE(weft_returned(r) && (long)r.payload == total);
		REQUIRE(weft_trim(k[i]) == 0);
		weft_delete(k[i]);
	}
}

/* A coroutine trims its own stack after a deep recursion, and recurses to the same depth again. */
static void *deep_and_trims(void *argument)
{
	long n = (long)argument, before, again, result = sum(n);

	before = (long)stats_of(weft_default_policy()).splits;
	result += sum(n);
	again = (long)stats_of(weft_default_policy()).splits - before;
	for (int i = 0; i < 3; i++) {
		(void)weft_trim(weft_current());
		weft_suspend(NULL);
		result += sum(n);
	}
	before = (long)stats_of(weft_default_policy()).splits - before - again;
	/* Cached chunks are not linked anew, and freed chunks are. */
	REQUIRE(weft_default_policy() == WEFT_HEAP || again == 0);
	REQUIRE(n > 100 || weft_default_policy() != WEFT_SEGMENTED || before >= 3);
	return (void *)result;
}

static void trimming_oneself(void)
{
	for (long n = 40; n < 2000; n *= 7) {
		weft_attr_t attr = {.policy = weft_default_policy(),
				    .stack_size = n < 100 && grows() ? 1024 : 256 << 10};
		weft_coro_t *k = weft_create_with(deep_and_trims, (void *)n, &attr);
		weft_request_t r;

		REQUIRE(k);
		for (int i = 0; i < 3; i++)
			REQUIRE(!weft_returned(resume(k)));
		r = resume(k);
		REQUIRE(weft_returned(r) && (long)r.payload == 5 * (n * (n + 1) / 2));
		weft_delete(k);
	}
}

static void *waits_a_bit(void *argument)
{
	long n = (long)argument, result = sum(n % 7);

	weft_suspend(NULL);
	return (void *)(result + sum(n % 11));
}

static void end_it(weft_coro_t *k, long n)
{
	weft_request_t r = resume(k);

	REQUIRE(weft_returned(r));
	REQUIRE((long)r.payload == (n % 7 * (n % 7 + 1) + n % 11 * (n % 11 + 1)) / 2);
	weft_delete(k);
}

/* Small coroutines share pages with their neighbours, and so do their frames. Their cached memory can be freed, except
 * memory that a living neighbour needs, and is reused later. */
static void trimming_small_ones(void)
{
	enum { COUNT = 4000 };
	weft_attr_t attr = {.policy = weft_default_policy(), .stack_size = 1024};
	weft_coro_t **k = malloc(COUNT * sizeof *k);

	REQUIRE(k);
	for (int round = 0; round < 3; round++) {
		size_t kept;

		weft_stack_trim();
		for (long i = 0; i < COUNT; i++) {
			k[i] = weft_create_with(waits_a_bit, (void *)i, &attr);
			REQUIRE(k[i] && resume(k[i]).effect == &weft_suspended);
		}
		for (long i = 0; i < COUNT; i++)
			if (i % 20)
				weft_delete(k[i]);
		REQUIRE(weft_stack_trim() > COUNT * 100);
		for (long i = 0; i < COUNT; i += 20)
			end_it(k[i], i);
		kept = weft_stack_trim();
		REQUIRE(kept > 0 && weft_stack_trim() == 0);
	}
	free(k);
}

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void *thread_body(void *n)
{
	REQUIRE(sum((long)n) == (long)n * ((long)n + 1) / 2);
	run(sums, n);
	REQUIRE(!weft_current());
	return n;
}

static void threads(void)
{
	pthread_t thread[64];
	weft_attr_t attr = {.name = "worker", .policy = weft_default_policy(), .stack_size = grows() ? 16384 : 65536};
	void *result;

	for (long i = 0; i < 64; i++)
		REQUIRE(!weft_thread_create(&thread[i], i % 2 ? &attr : NULL, thread_body, (void *)(deep() / 2 + i)));
	for (long i = 0; i < 64; i++) {
		REQUIRE(!pthread_join(thread[i], &result));
		REQUIRE((long)result == deep() / 2 + i);
	}
	for (long i = 0; i < 64; i++) /* by the name that programs use */
		REQUIRE(!pthread_create(&thread[i], NULL, thread_body, (void *)(long)(100 + i)));
	for (long i = 0; i < 64; i++)
		pthread_join(thread[i], NULL);
	REQUIRE(live() == 0);
	attr.policy = WEFT_POLICY_COUNT;
	REQUIRE(weft_thread_create(&thread[0], &attr, thread_body, NULL) == EINVAL);
}

/* ---- blocks of threads that have ended -------------------------------------------------------------------------- */

static pthread_barrier_t both;

static void *goes_deep(void *n)
{
	run(sums, n);
	pthread_barrier_wait(&both); /* until then the thread owns its blocks */
	return NULL;
}

static void inheriting(void)
{
	pthread_t thread[2];
	size_t splits;

	if (weft_default_policy() != WEFT_HEAP)
		return;
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, goes_deep, (void *)(long)DEEP));
	for (int i = 0; i < 2; i++)
		REQUIRE(!pthread_join(thread[i], NULL));
	splits = stats_of(WEFT_HEAP).splits;
	run(sums, (void *)(long)(2 * DEEP - 1000));
	/* One for each thread that left blocks; new blocks would be counted by the dozen. */
	REQUIRE(stats_of(WEFT_HEAP).splits - splits < DEEP / 100);
	pthread_barrier_destroy(&both);
}

/* ---- signals ----------------------------------------------------------------------------------------------------- */

static volatile long interrupted;

static void on_alarm(int number)
{
	(void)number;
	if (sum(40) != 820)
		abort();
	interrupted++;
}

static void *switches(void *n)
{
	for (long i = 0; i < (long)n; i++) {
		sum(i % 200);
		weft_suspend(NULL);
	}
	return NULL;
}

static void *nests(void *inner)
{
	for (int i = 0; i < 4; i++)
		run(switches, (void *)20);
	weft_suspend(NULL);
	return inner;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};

	/* A signal frame needs open memory; code for linked stacks sets this flag by itself. */
	if (weft_default_policy() == WEFT_COMMIT)
		action.sa_flags |= SA_ONSTACK;
	REQUIRE(!sigaction(SIGALRM, &action, NULL));
	REQUIRE(!setitimer(ITIMER_REAL, &often, NULL));
	while (interrupted < 1500) {
		run(switches, (void *)100);
		run(nests, NULL);
		run(sums, (void *)deep());
		run(jumps_body, NULL);
		run(sorts, (void *)1);
		run(arrays_body, NULL);
	}
	REQUIRE(!setitimer(ITIMER_REAL, &never, NULL));
	REQUIRE(signal(SIGALRM, SIG_DFL) == on_alarm);
}

/* ---- fork -------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) long forks(long n)
{
	volatile long keep = n;
	int status;
	pid_t child;

	if (n)
		return forks(n - 1) + (keep != n);
	child = fork();
	REQUIRE(child >= 0);
	if (child) {
		REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 9);
		return 0;
	}
	REQUIRE(sum(deep()) == deep() * (deep() + 1) / 2);
	run(sums, (void *)deep());
	return 9;
}

static void *forks_body(void *unused)
{
	long result = forks(deep() / 4);

	(void)unused;
	if (result)
		_exit((int)result);
	REQUIRE(sum(100) == 5050);
	return NULL;
}

static void forking(void)
{
	run(forks_body, NULL);
}

/* ---- walking ----------------------------------------------------------------------------------------------------- */

static int walked;

static __attribute__((noinline)) long walks(long n)
{
	static void *frame[1000];
	volatile long keep = n;

	if (!n)
		walked = backtrace(frame, 1000);
	return n ? walks(n - 1) + keep : 0;
}

static void *walks_body(void *n)
{
	return (void *)walks((long)n);
}

static void walking(void)
{
	for (long n = 20; n <= 500; n += 60) {
		int before;

		walks(0);
		before = walked;
		run(walks_body, (void *)n);
		/* The frames of the coroutine, of this function and main, and at most two more at each change of
		 * stack. */
		REQUIRE(walked >= n + before && walked <= n * 2 + before + 20);
	}
}

/* ---- without memory ---------------------------------------------------------------------------------------------- */

static void *endless(void *unused)
{
	(void)unused;
	return (void *)sum(1L << 40);
}

static void limit_memory(void)
{
	struct rlimit limit;
	long size = resident();

	REQUIRE(size > 0);
	limit.rlim_cur = limit.rlim_max = (rlim_t)1 << 30;
	REQUIRE(!setrlimit(RLIMIT_AS, &limit));
}

static void out_of_memory(void)
{
	weft_coro_t *k;
	weft_request_t r;

	limit_memory();
	for (int again = 0; again < 3; again++) {
		k = make(endless, NULL);
		r = resume(k);
		REQUIRE(r.effect == &weft_failed && r.payload == k && weft_failure(k) != WEFT_NO_FAILURE);
		REQUIRE(weft_state(k) == WEFT_FINISHED);
		weft_delete(k);
		weft_stack_trim();
		REQUIRE((long)run(sums, (void *)100) == 5050);
	}
}

static void thread_out_of_memory(void)
{
	weft_attr_t attr = {.name = "main work"};
	pthread_t thread;

	limit_memory();
	REQUIRE(!weft_thread_create(&thread, &attr, endless, NULL));
	pthread_join(thread, NULL);
}

int main(int count, char **argument)
{
	static const struct scenario always[] = {
	    {"depth", depth, 0, ""},
	    {"wide frames", wide_frames, 0, ""},
	    {"all kinds of calls", all_calls, 0, ""},
	    {"over-aligned arguments", aligned_arguments, 0, ""},
	    {"no code on stacks", no_code_on_stacks, 0, ""},
	    {"arrays", arrays, 0, ""},
	    {"callbacks", callbacks, 0, ""},
	    {"system stacks", system_stacks, 0, ""},
	    {"longjmp", jumping, 0, ""},
	    {"pthread_exit and cancellation", thread_ends, 0, ""},
	    {"exit", process_ends, 0, ""},
	    {"deletion", deleting, 0, ""},
	    {"tiny stacks", tiny, 0, ""},
	    {"small chunks", small_chunks, 0, ""},
	    {"how small chunks are", small_chunks_are_small, 0, ""},
	    {"trimming", trimming, 0, ""},
	    {"trimming oneself", trimming_oneself, 0, ""},
	    {"trimming what small ones left", trimming_small_ones, 0, ""},
	    {"threads", threads, 0, ""},
	    {"blocks of threads that have ended", inheriting, 0, ""},
	    {"signals", signals, 0, ""},
	    {"fork", forking, 0, ""},
	    {"backtrace", walking, 0, ""},
	};
	static const struct scenario growing[] = {
	    {"out of memory", out_of_memory, 0, ""},
	    {"a thread out of memory", thread_out_of_memory, SIGABRT, "weft: stack overflow in a thread"},
	};
	int failed;

	failed = run_scenarios(always, sizeof always / sizeof *always, count, argument);
	if (grows())
		failed |= run_scenarios(growing, sizeof growing / sizeof *growing, count, argument);
	return failed;
}
