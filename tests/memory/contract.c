/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * contract [TEST]: the promises of weft/coro.h about stacks in memory of the caller's, one test for each. Without an
 * argument: all tests that return. The remaining tests end the process with a line.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weft/defer.h>
#include <weft/thread.h>
#include <weft/weft.h>

#include "require.h"

enum { PAGE = 4096, BYTES = 64 * 1024, DEEP_BYTES = 1024 };
#include "deep.h"

static _Alignas(PAGE) char memory[BYTES];

WEFT_EFFECT(int, ask, int, x);

static void *counts(void *argument)
{
	for (int i = 0; i < 3; i++)
		argument = weft_suspend(argument);
	return argument;
}

static void *goes_deep(void *argument)
{
	(void)deep((int)(long)argument);
	return weft_suspend(NULL);
}

static weft_attr_t attr_in(void *at, size_t bytes)
{
	return (weft_attr_t){.name = "m", .memory = at, .memory_size = bytes};
}

static weft_coro_t *make(weft_fn_t *fn, void *argument, const weft_attr_t *attr)
{
	weft_coro_t *k = weft_create_with(fn, argument, attr);

	if (!k)
		perror("weft_create_with");
	REQUIRE(k);
	return k;
}

static bool is_within(const void *at, const void *start, size_t bytes)
{
	return (const char *)at >= (const char *)start && (const char *)at < (const char *)start + bytes;
}

static void run_to_end(weft_coro_t *k)
{
	weft_request_t r = {&weft_suspended, NULL};

	for (int i = 0; i < 5 && !weft_returned(r); i++)
		r = weft_resume(k, (void *)(long)i, WEFT_HANDLE_NONE);
	REQUIRE(weft_returned(r) && r.payload == (void *)3);
}

/* ---- sizes ------------------------------------------------------------------------------------------------------ */

static const weft_policy_t policies[] = {WEFT_FIXED,	 WEFT_OVERCOMMIT, WEFT_COMMIT,
					 WEFT_SEGMENTED, WEFT_LOOKAHEAD,  WEFT_MMU};
#define EACH(policy)                                                                                                   \
	for (unsigned i_ = 0; i_ < sizeof policies / sizeof *policies; i_++)                                           \
		for (weft_policy_t policy = policies[i_]; policy; policy = WEFT_DEFAULT_POLICY)

/* The size of weft_memory_size is enough at every address; at some address, a cache line less is not enough. */
static void sizes_of(weft_attr_t attr)
{
	size_t least = weft_memory_size(&attr, 0), want = weft_memory_size(&attr, 20000);
	int refused = 0;
	weft_coro_t *k;

	REQUIRE(least && want > least && want <= BYTES - PAGE);
	for (size_t at = 0; at < 2 * 64; at++) {
		attr.memory = memory + at;
		attr.memory_size = want;
		k = make(counts, NULL, &attr);
		REQUIRE(weft_stack_usable(k) >= 20000);
		REQUIRE(is_within(k, memory + at, want) && weft_on_stack(k, (char *)k - 1));
		weft_delete(k);
		attr.memory_size = least;
		k = make(counts, NULL, &attr);
		run_to_end(k);
		weft_delete(k);
	}
	for (size_t at = 0; at < 64 + (least > PAGE ? PAGE : 0); at++) {
		attr.memory = memory + at;
		attr.memory_size = least - 64;
		k = weft_create_with(counts, NULL, &attr);
		if (!k) {
			REQUIRE(errno == ENOSPC);
			refused++;
		}
		weft_delete(k);
	}
	REQUIRE(refused);
}

static void sizes(void)
{
	EACH(policy)
	{
		sizes_of((weft_attr_t){.policy = policy});
		sizes_of((weft_attr_t){.policy = policy, .flags = WEFT_NO_GUARD});
		sizes_of((weft_attr_t){.policy = policy, .guard_size = 5000});
		REQUIRE(weft_memory_size(&(weft_attr_t){.policy = policy}, 8000) <=
			WEFT_MEMORY_BYTES(8000) + (policy == WEFT_MMU ? 2 * PAGE : 0));
	}
	REQUIRE(weft_memory_size(NULL, SIZE_MAX) == SIZE_MAX);
	REQUIRE(weft_memory_size(NULL, SIZE_MAX - 100) == SIZE_MAX);
	REQUIRE(weft_memory_size(&(weft_attr_t){.policy = WEFT_COPY}, 0) == 0);
	REQUIRE(weft_memory_size(&(weft_attr_t){.policy = WEFT_HEAP}, 0) == 0);
	REQUIRE(weft_memory_size(&(weft_attr_t){.flags = 1u << 30}, 0) == 0);
}

/* ---- wrong uses ------------------------------------------------------------------------------------------------- */

static void refused(weft_attr_t attr, int error, const char *why)
{
	weft_coro_t own;
	char text[160] = "";

	errno = 0;
	REQUIRE(!weft_create_with(counts, NULL, &attr));
	REQUIRE(errno == error);
	memset(&own, 0, sizeof own);
	REQUIRE(weft_init(&own, counts, NULL, &attr) == -error);
	REQUIRE(weft_memory_unfit(&attr, text, sizeof text) == text);
	if (!strstr(text, why))
		fprintf(stderr, "says: %s\n", text);
	REQUIRE(strstr(text, why));
}

static void refusals(void)
{
	weft_attr_t attr = attr_in(memory, BYTES);
	weft_coro_t *k;
	char text[160];

	REQUIRE(!weft_memory_unfit(&attr, text, sizeof text));
	refused(attr_in(NULL, BYTES), EINVAL, "weft_attr.memory is NULL");
	refused(attr_in(memory, 0), ENOSPC, "memory of 0 bytes is too small");
	refused(attr_in(memory, 1000), ENOSPC, "needs 4622, and weft_memory_size says");
	refused(attr_in((void *)-64, 4096), ENOSPC, "too small");
	attr.policy = WEFT_COPY;
	refused(attr, EINVAL, "the policy copy keeps no frames in such memory");
	attr.policy = WEFT_HEAP;
	refused(attr, EINVAL, "the policy heap keeps no frames in such memory");
	attr.policy = WEFT_POLICY_COUNT;
	refused(attr, EINVAL, "unknown");
	attr = attr_in(memory, BYTES);
	attr.flags = WEFT_NO_GUARD;
	attr.guard_size = PAGE;
	refused(attr, EINVAL, "guard_size together with WEFT_NO_GUARD");
	attr.flags = 0;
	attr.guard_size = (size_t)1 << 30;
	refused(attr, EINVAL, "512 MiB");
	attr.guard_size = BYTES;
	refused(attr, ENOSPC, "too small");

	/* In use, also by a coroutine that is suspended for ever; then free. */
	attr = attr_in(memory, BYTES);
	k = make(counts, NULL, &attr);
	refused(attr, EBUSY, "delete it first");
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	refused(attr, EBUSY, "delete it first");
	weft_delete(k);
	REQUIRE(!weft_memory_unfit(&attr, text, sizeof text));
	/* A copy of a record in use is no coroutine. */
	attr = attr_in(memory, BYTES / 2);
	k = make(counts, NULL, &attr);
	memcpy(memory + BYTES / 2, memory, BYTES / 2);
	attr.memory = memory + BYTES / 2;
	weft_delete(make(counts, NULL, &attr));
	weft_delete(k);
	/* The flag is only valid with memory. */
	errno = 0;
	REQUIRE(!weft_create_with(counts, NULL, &(weft_attr_t){.flags = WEFT_MEMORY_ONLY}) && errno == EINVAL);
	/* Text that does not fit is cut. */
	attr = attr_in(NULL, 0);
	REQUIRE(weft_memory_unfit(&attr, text, 6) == text && !strcmp(text, "there"));
}

/* ---- ownership of the memory ------------------------------------------------------------------------------------- */

static void life(void)
{
	weft_attr_t attr = attr_in(memory, 16384);
	weft_coro_t own, *k;
	weft_stack_stats_t before, now;
	uint64_t id;

	REQUIRE(!weft_stack_stats(WEFT_OVERCOMMIT, &before));
	attr.policy = WEFT_OVERCOMMIT;
	k = make(counts, NULL, &attr);
	REQUIRE(!weft_stack_stats(WEFT_OVERCOMMIT, &now));
	REQUIRE(now.in_memory == 1 && now.live == before.live + 1 && now.reserved == before.reserved &&
		now.committed == before.committed);
	run_to_end(k);
	weft_reset(k, counts, NULL);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(weft_trim(k) == 0);
	REQUIRE(weft_coro_is_valid(k));
	weft_reset(k, counts, NULL);
	run_to_end(k);
	id = weft_id(k);
	weft_delete(k);
	/* Its state is deleted until the memory is reused; and no other coroutine gets the memory. */
	REQUIRE(weft_state(k) == WEFT_DELETED && weft_id(k) != id);
	REQUIRE(!weft_stack_stats(WEFT_OVERCOMMIT, &now) && now.in_memory == 0 && now.live == before.live &&
		now.cached == before.cached);
	memset(memory, 0xa5, 16384);
	for (int i = 0; i < 300; i++) {
		k = make(counts, NULL, NULL);
		REQUIRE(!is_within(k, memory, BYTES));
		weft_delete(k);
	}
	for (int i = 0; i < 16384; i++)
		REQUIRE(memory[i] == (char)0xa5);

	/* An object of the caller's; a new initialisation releases it first. */
	memset(&own, 0x5a, sizeof own);
	REQUIRE(!weft_init(&own, counts, NULL, &attr));
	REQUIRE(weft_on_stack(&own, memory + 8192));
	(void)weft_resume(&own, NULL, WEFT_HANDLE_NONE);
	REQUIRE(!weft_init(&own, counts, NULL, &attr));
	run_to_end(&own);
	REQUIRE(!weft_init(&own, counts, NULL, NULL));
	REQUIRE(!weft_stack_stats(WEFT_OVERCOMMIT, &now) && now.in_memory == 0);
	weft_release(&own);
}

static int at_end;

static void note(void *argument)
{
	(void)argument;
	at_end++;
}

static void *defers(void *argument)
{
	weft_defer(note, NULL);
	return weft_suspend(argument);
}

static void *asks(void *argument)
{
	(void)argument;
	return (void *)(long)ask(4);
}

static void uses(void)
{
	weft_attr_t attr = attr_in(memory + 7, 20011);
	weft_coro_t *k, *other;
	weft_request_t r;

	k = make(asks, NULL, &attr);
	r = weft_resume(k, NULL, weft_handles(ask));
	REQUIRE(weft_is(ask, r) && is_within(r.payload, memory, BYTES) && weft_args(ask, r)->x == 4);
	REQUIRE(!weft_reply_to(k, ask, r, 11));
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(weft_returned(r) && r.payload == (void *)11);
	weft_delete(k);
	k = make(defers, NULL, &attr);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	REQUIRE(at_end == 1);

	/* A coroutine that was never resumed. */
	k = make(counts, NULL, &attr);
	other = make(counts, NULL, NULL);
	run_to_end(other);
	weft_delete(other);
	weft_delete(k);
}

static void *switches(void *argument)
{
	weft_coro_t **pair = argument;

	for (int i = 0; i < 1000; i++)
		(void)weft_switch(pair[weft_current() == pair[0]], argument);
	return pair;
}

static void sideways(void)
{
	weft_attr_t attr = attr_in(memory, BYTES / 2), second = attr_in(memory + BYTES / 2, BYTES / 2);
	weft_coro_t *pair[2];

	pair[0] = make(switches, pair, &attr);
	pair[1] = make(switches, pair, &second);
	(void)weft_resume(pair[0], pair, WEFT_HANDLE_NONE);
	weft_delete(pair[0]);
	weft_delete(pair[1]);
}

/* ---- guards ----------------------------------------------------------------------------------------------------- */

static bool is_readable(const void *at)
{
	int ends[2];
	bool good;

	REQUIRE(!pipe(ends));
	good = write(ends[1], at, 1) == 1;
	close(ends[0]);
	close(ends[1]);
	return good;
}

/* Closed while the coroutine lives, and restored afterwards. */
static void guards(void)
{
	weft_attr_t attr = attr_in(memory + 100, BYTES - 100);
	weft_coro_t *k;
	int closed = 0;

	memset(memory, 0x3c, BYTES);
	attr.guard_size = PAGE + 1;
	for (int round = 0; round < 3; round++) {
		closed = 0;
		k = make(counts, NULL, &attr);
		for (int at = 0; at < BYTES; at += PAGE / 2)
			closed += !is_readable(memory + at);
		REQUIRE(closed == 4);
		REQUIRE(is_readable(memory + PAGE - 1) && !is_readable(memory + PAGE) &&
			is_readable(memory + 3 * PAGE));
		run_to_end(k);
		weft_delete(k);
		for (int at = 0; at < 3 * PAGE; at++)
			REQUIRE(memory[at] == 0x3c);
		memory[PAGE] = 0x3c;
	}
	attr.flags = 0;
	attr.guard_size = 0;
	attr.policy = WEFT_MMU;
	k = make(counts, NULL, &attr);
	REQUIRE(!is_readable(memory + PAGE) && is_readable(memory + 2 * PAGE));
	weft_delete(k);
	REQUIRE(is_readable(memory + PAGE));
}

static void pattern(void)
{
	weft_attr_t attr = attr_in(memory + 32768, 16384);

	(void)weft_resume(make(goes_deep, (void *)18, &attr), NULL, WEFT_HANDLE_NONE);
}

/* Frames that end below the memory, but never touched the pattern. */
static void *steps_over(void *argument)
{
	volatile char frame[17000];

	frame[16000] = 1;
	argument = weft_suspend(argument);
	return (char *)argument + frame[16000];
}

static void stepped_over(void)
{
	weft_attr_t attr = attr_in(memory + 32768, 16384);

	(void)weft_resume(make(steps_over, NULL, &attr), NULL, WEFT_HANDLE_NONE);
}

static void *returns_deep(void *argument)
{
	(void)deep((int)(long)argument);
	return argument;
}

static void returned(void)
{
	weft_attr_t attr = attr_in(memory + 16384, 16384);

	(void)weft_resume(make(returns_deep, (void *)18, &attr), NULL, WEFT_HANDLE_NONE);
}

static weft_coro_t *second_of_two;

static void *switches_deep(void *argument)
{
	(void)deep((int)(long)argument);
	return weft_switch(second_of_two, NULL);
}

static void switched(void)
{
	weft_attr_t attr = attr_in(memory + 16384, 16384);

	second_of_two = make(counts, NULL, NULL);
	(void)weft_resume(make(switches_deep, (void *)18, &attr), NULL, WEFT_HANDLE_NONE);
}

/* The pattern is not checked. */
static void unguarded(void)
{
	weft_attr_t attr = attr_in(memory + 32768, 16384);
	weft_coro_t *k;

	attr.flags = WEFT_NO_GUARD;
	k = make(goes_deep, (void *)18, &attr);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

static void guard(void)
{
	weft_attr_t attr = attr_in(memory, 20000);

	attr.guard_size = 1;
	(void)weft_resume(make(goes_deep, (void *)100, &attr), NULL, WEFT_HANDLE_NONE);
}

/* Under commit the coroutine fails. */
static void fails(void)
{
	weft_attr_t attr = attr_in(memory, 32768);
	weft_request_t r;
	weft_coro_t *k;

	attr.policy = WEFT_COMMIT;
	attr.guard_size = 1;
	for (int i = 0; i < 3; i++) {
		k = make(goes_deep, (void *)100, &attr);
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		REQUIRE(r.effect == &weft_failed && weft_failure(k) == WEFT_RESERVATION_SPENT);
		weft_delete(k);
	}
}

/* ---- origins of the memory --------------------------------------------------------------------------------------- */

static void mapped(int flags, int fd, size_t bytes, size_t guard)
{
	char *start = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
	weft_attr_t attr = attr_in(start, bytes);
	weft_coro_t *k;

	if (start == MAP_FAILED) {
		printf("skip - memory: no mapping of kind %#x here\n", (unsigned)flags);
		return;
	}
	attr.guard_size = guard;
	k = make(counts, NULL, &attr);
	run_to_end(k);
	weft_delete(k);
	memset(start, 1, bytes);
	REQUIRE(!munmap(start, bytes));
}

static void kinds(void)
{
	enum { HUGE = 2 << 20 };
	char on_stack[WEFT_MEMORY_BYTES(8192)], *block = malloc(30000);
	weft_attr_t attr = attr_in(on_stack, sizeof on_stack);
	int fd = memfd_create("stacks", 0);
	weft_coro_t *k;

	run_to_end(k = make(counts, NULL, &attr));
	weft_delete(k);
	attr = attr_in(block, 30000);
	run_to_end(k = make(counts, NULL, &attr));
	weft_delete(k);
	free(block);
	mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1, BYTES, PAGE);
	REQUIRE(fd >= 0 && !ftruncate(fd, BYTES));
	mapped(MAP_SHARED, fd, BYTES, 0);
	mapped(MAP_SHARED, fd, BYTES, PAGE);
	mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 2 * HUGE, 0);
	mapped(MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 2 * HUGE, HUGE);
	close(fd);
}

/* A record that an earlier process left in a file does not prevent the use; a record of this process does. */
static void left_in_a_file(void)
{
	int fd = memfd_create("stacks", 0), status;
	char *start;
	pid_t child;

	REQUIRE(fd >= 0 && !ftruncate(fd, BYTES));
	start = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(start != MAP_FAILED);
	weft_attr_t attr = attr_in(start, BYTES);

	child = fork();
	if (!child) {
		(void)make(counts, NULL, &attr);
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child && !status);
	/* The record has the child's process number, which is this process's here: so the memory is in use. */
	REQUIRE(!weft_create_with(counts, NULL, &attr) && errno == EBUSY);
	memset(start + BYTES - PAGE, 0, PAGE);
	weft_delete(make(counts, NULL, &attr));
}

/* ---- threads, forks --------------------------------------------------------------------------------------------- */

static void *thread(void *argument)
{
	char here;

	REQUIRE(is_within(&here, memory, BYTES));
	(void)deep((int)(long)argument);
	return &memory[1];
}

static void threads(void)
{
	weft_attr_t attr = attr_in(memory + 3, BYTES - 3);
	pthread_t t;
	void *result;

	for (int i = 0; i < 20; i++) {
		attr.policy = i % 2 ? WEFT_OVERCOMMIT : WEFT_COMMIT;
		attr.guard_size = i % 3 ? 0 : PAGE;
		REQUIRE(!weft_thread_create(&t, &attr, thread, (void *)20));
		REQUIRE(!pthread_join(t, &result) && result == &memory[1]);
		memset(memory, 0, BYTES);
	}
	attr.memory_size = 100;
	REQUIRE(weft_thread_create(&t, &attr, thread, NULL) == ENOSPC);
}

static void *made_elsewhere(void *k)
{
	run_to_end(k);
	weft_delete(k);
	return NULL;
}

/* A coroutine in memory may be resumed and deleted by another thread, which has no coroutines of its own. */
static void wanders(void)
{
	weft_attr_t attr = attr_in(memory, BYTES);
	weft_stack_stats_t now;
	pthread_t t;

	REQUIRE(!pthread_create(&t, NULL, made_elsewhere, make(counts, NULL, &attr)));
	REQUIRE(!pthread_join(t, NULL));
	REQUIRE(!weft_stack_stats(WEFT_DEFAULT_POLICY, &now) && !now.in_memory);
}

static void overflowed_thread(void)
{
	weft_attr_t attr = attr_in(memory + 16384, 16384);
	pthread_t t;

	REQUIRE(!weft_thread_create(&t, &attr, thread, (void *)18));
	(void)pthread_join(t, NULL);
}

static void forks(void)
{
	weft_attr_t attr = attr_in(memory, BYTES);
	weft_coro_t *k;
	int status;
	pid_t child;

	attr.guard_size = PAGE;
	k = make(counts, NULL, &attr);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	child = fork();
	REQUIRE(child >= 0);
	if (!child) {
		(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
		weft_delete(k);
		memset(memory, 0, BYTES);
		run_to_end(make(counts, NULL, &attr));
		_exit(0);
	}
	REQUIRE(waitpid(child, &status, 0) == child && !status);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_reset(k, counts, NULL);
	run_to_end(k);
	weft_delete(k);
}

static const struct {
	const char *name;
	void (*run)(void);
	bool returns;
} tests[] = {{"sizes", sizes, true},
	     {"refusals", refusals, true},
	     {"life", life, true},
	     {"uses", uses, true},
	     {"sideways", sideways, true},
	     {"guards", guards, true},
	     {"unguarded", unguarded, true},
	     {"fails", fails, true},
	     {"kinds", kinds, true},
	     {"left_in_a_file", left_in_a_file, true},
	     {"threads", threads, true},
	     {"wanders", wanders, true},
	     {"forks", forks, true},
	     {"pattern", pattern, false},
	     {"stepped_over", stepped_over, false},
	     {"returned", returned, false},
	     {"switched", switched, false},
	     {"guard", guard, false},
	     {"overflowed_thread", overflowed_thread, false}};

int main(int count, char **arguments)
{
	int run = 0;

	for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
		if (count > 1 ? !strcmp(arguments[1], tests[i].name) : tests[i].returns) {
			tests[i].run();
			printf("ok - %s\n", tests[i].name);
			run++;
		}
	return run ? 0 : 2;
}
