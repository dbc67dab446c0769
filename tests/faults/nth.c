/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The n-th request for memory fails, for every possible n: a thread on a stack of each policy does a bit of everything,
 * each time in a new process. It must end correctly, or the thread ends with the overflow line. Linked with a library
 * built with WEFT_INJECT_FAULTS, except that the decision which request fails is in this file.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "internal/alloc_faults.h"
#include "scenario.h"

enum { KB = 1024, COROUTINES = 6, STEPS = 5 };

/* The requests number `first` to `first + width - 1` fail, counted while `counting`. */
static struct {
	unsigned first, width;
	bool counting;
	atomic_uint count;
} failing;

/* Called from anywhere, so without a check. */
__attribute__((no_split_stack)) bool weft__inject_fault(void)
{
	unsigned n = failing.counting ? atomic_fetch_add(&failing.count, 1) : 0;

	return failing.counting && n >= failing.first && n - failing.first < failing.width;
}

static atomic_uint hooked;

static void *sums(void *argument)
{
	size_t sum = 0;

	for (int i = 0; i < STEPS; i++) {
		use_stack((size_t)i * 3 * KB);
		sum += (size_t)weft_suspend((void *)sum);
	}
	return (char *)argument + sum;
}

/* From a failure to the resumer. */
static void hook(weft_coro_t *failed, weft_failure_t why)
{
	weft_attr_t attr = {.policy = WEFT_OVERCOMMIT, .flags = WEFT_SAVE_FPU};
	weft_coro_t *k = weft_create_with(sums, NULL, &attr);

	REQUIRE(why == weft_failure(failed) && why);
	atomic_fetch_add(&hooked, 1);
	if (!k)
		return;
	REQUIRE(resume(k).effect == &weft_suspended);
	weft_delete(k);
}

struct subject {
	weft_coro_t *k;
	weft_request_t last;
	size_t sum;
};

static void start(struct subject *s, weft_policy_t policy, unsigned flags)
{
	weft_attr_t attr = {.policy = policy, .flags = flags, .stack_size = policy == WEFT_COPY ? 64 * KB : 0};

	errno = 0;
	s->k = weft_create_with(sums, s, &attr);
	REQUIRE(s->k || errno == ENOMEM || errno == EAGAIN);
}

/* Their heap blocks are next to the caller's, of any size: if a frame writes beyond its block, this fails. */
#define SMALL_FRAMES(bytes)                                                                                            \
	static __attribute__((noinline)) size_t frames_of_##bytes(size_t depth)                                        \
	{                                                                                                              \
		volatile char frame[bytes];                                                                            \
                                                                                                                       \
		frame[0] = frame[bytes - 1] = (char)depth;                                                             \
		return depth ? frames_of_##bytes(depth - 1) + (size_t)(frame[0] == frame[bytes - 1]) : 0;              \
	}
SMALL_FRAMES(32)
SMALL_FRAMES(96)
SMALL_FRAMES(160)
SMALL_FRAMES(224)
SMALL_FRAMES(288)
SMALL_FRAMES(352)
SMALL_FRAMES(416)

static size_t frames_of_all_sizes(void)
{
	return frames_of_32(4) + frames_of_96(4) + frames_of_160(4) + frames_of_224(4) + frames_of_288(4) +
	       frames_of_352(4) + frames_of_416(4);
}

/* False when there is nothing more to do. */
static bool step(struct subject *s, size_t value)
{
	if (!s->k)
		return false;
	s->sum += value;
	s->last = weft_resume(s->k, (void *)value, WEFT_HANDLE_NONE);
	REQUIRE(frames_of_all_sizes() == 28);
	if (s->last.effect == &weft_suspended) {
		REQUIRE(s->last.payload == (void *)s->sum);
		return true;
	}
	if (s->last.effect == &weft_failed)
		REQUIRE(weft_failure(s->k) != WEFT_NO_FAILURE);
	else
		REQUIRE(weft_returned(s->last) && s->last.payload == (char *)s + s->sum);
	weft_delete(s->k);
	s->k = NULL;
	return false;
}

static int by_size(const void *a, const void *b)
{
	const int *x = a, *y = b;

	use_stack(2 * KB);
	return (*x > *y) - (*x < *y);
}

static void calls_back(void)
{
	int number[] = {5, 3, 9, 1, 7, 2, 8};

	qsort(number, 7, sizeof *number, by_size);
	for (int i = 1; i < 7; i++)
		REQUIRE(number[i - 1] < number[i]);
}

static void one_by_itself(weft_policy_t policy)
{
	struct subject s = {0};

	start(&s, policy, 0);
	for (size_t value = 0; step(&s, value); value++)
		use_stack(KB);
}

static void cloned(void)
{
	struct subject s = {0};
	weft_coro_t *clone;
	weft_request_t r;

	start(&s, WEFT_COPY, 0);
	if (step(&s, 0) && (clone = weft_clone(s.k))) {
		r = resume(clone);
		REQUIRE(r.effect == &weft_suspended ? !r.payload : r.effect == &weft_failed);
		weft_delete(clone);
	}
	for (size_t value = 1; step(&s, value); value++)
		;
}

static void uses_much(void *unused)
{
	(void)unused;
	use_stack(20 * KB);
}

static void *has_cleanup(void *argument)
{
	weft_defer(uses_much, NULL);
	weft_suspend(NULL);
	return argument;
}

/* Without memory only the cleanup is abandoned. */
static void deleted(weft_policy_t policy)
{
	weft_attr_t attr = {.policy = policy, .stack_size = 64 * KB};
	weft_coro_t *k[2];

	for (int i = 0; i < 2; i++) { /* under "copy" the first is not resident when it is deleted */
		k[i] = weft_create_with(has_cleanup, NULL, &attr);
		if (k[i])
			resume(k[i]);
	}
	for (int i = 0; i < 2; i++)
		weft_delete(k[i]);
}

static void several(void)
{
	static const struct {
		weft_policy_t policy;
		unsigned flags;
	} kind[COROUTINES] = {{WEFT_COPY, 0},	{WEFT_HEAP, WEFT_SAVE_FPU}, {WEFT_COPY, WEFT_SAVE_EXCEPTIONS},
			      {WEFT_COMMIT, 0}, {WEFT_SEGMENTED, 0},	    {WEFT_COPY, 0}};
	struct subject s[COROUTINES] = {{0}};
	bool more = true;

	for (int i = 0; i < COROUTINES; i++)
		start(&s[i], kind[i].policy, kind[i].flags);
	for (size_t round = 0; more; round++) {
		more = false;
		for (int i = 0; i < COROUTINES; i++)
			more |= step(&s[i], round ? round + (size_t)i : 0);
		use_stack(round * KB);
		if (round == 2)
			weft_stack_trim();
	}
}

static void *everything(void *argument)
{
	use_stack(9 * KB);
	one_by_itself(WEFT_COPY);
	cloned();
	several();
	for (int p = WEFT_COMMIT; p < WEFT_POLICY_COUNT; p++)
		deleted((weft_policy_t)p);
	calls_back();
	return argument;
}

static void *was_there(void *argument)
{
	weft_coro_t *k = make_on(WEFT_COPY, 64 * KB, sums, NULL);

	resume(k);
	weft_delete(k);
	return argument;
}

/* Prepares state for copied coroutines: a region and records that a thread left, but no landing. */
static void prepare(void)
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, was_there, NULL));
	REQUIRE(!pthread_join(thread, NULL));
	weft_delete(make_on(WEFT_COPY, 64 * KB, sums, NULL)); /* its landing is this thread's now */
	weft_stack_trim();
}

static void one_thread(const void *argument)
{
	weft_attr_t attr = {.name = "subject", .policy = *(const weft_policy_t *)argument};
	pthread_t thread;
	void *result;
	int error;

	weft_set_failure_hook(hook);
	prepare();
	failing.counting = true;
	error = weft_thread_create(&thread, &attr, everything, &thread);
	if (error)
		REQUIRE(error == ENOMEM || error == EAGAIN);
	else
		REQUIRE(!pthread_join(thread, &result) && result == &thread);
	failing.counting = false;
	for (int p = 1; p < WEFT_POLICY_COUNT; p++)
		REQUIRE(stats_of((weft_policy_t)p).live == 0);
	if (atomic_load(&failing.count) <= failing.first)
		_exit(1); /* there are not so many */
	if (atomic_load(&hooked))
		_exit(2);
}

static const char *const contract = "stack overflow in a thread";

/* Tries each n until no request is left. Prints how the processes ended. */
static bool all_of_them(weft_policy_t policy, unsigned width)
{
	unsigned fine = 0, failed = 0, ended = 0;

	for (failing.first = 0, failing.width = width;; failing.first++) {
		struct outcome o = in_child_with(one_thread, &policy);

		if (o.code == 1)
			break;
		if (o.signal == SIGABRT && strstr(o.text, contract)) {
			ended++;
		} else if (!o.signal && (o.code == 0 || o.code == 2)) {
			fine++;
			failed += o.code == 2;
		} else {
			printf("not ok - request %u: signal %d, code %d: %s\n", failing.first, o.signal, o.code,
			       o.text);
			return false;
		}
	}
	printf("# policy %d, %u in a row: %u requests; %u went well, a coroutine failed in %u of them; %u ended\n",
	       policy, width, failing.first, fine, failed, ended);
	return fine > 8 && failed && failing.first > 10 && (ended || policy == WEFT_OVERCOMMIT);
}

/* Without arguments, all; `nth POLICY FIRST WIDTH`: only this one, in this process, for a debugger. */
int main(int arguments, char **argument)
{
	static const weft_policy_t policies[] = {WEFT_OVERCOMMIT, WEFT_SEGMENTED, WEFT_HEAP};
	static const unsigned widths[] = {1, 2, 5, 1000};
	bool good = true;

	if (arguments > 3) {
		weft_policy_t policy = (weft_policy_t)atoi(argument[1]);

		failing.first = (unsigned)atoi(argument[2]);
		failing.width = (unsigned)atoi(argument[3]);
		one_thread(&policy);
		return 0;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t p = 0; p < 3; p++)
		for (size_t w = 0; w < 4; w++) {
			bool passed = all_of_them(policies[p], widths[w]);

			printf("%s %zu - policy %d, %u requests in a row fail\n", passed ? "ok" : "not ok",
			       4 * p + w + 1, policies[p], widths[w]);
			good &= passed;
		}
	return !good;
}
