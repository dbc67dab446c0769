/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * closed [PART]: memory of commit stacks that is not open yet, for each mechanism that opens it (WEFT_COMMIT): the
 * threads and system calls that may touch it, a child of fork, the budget. The last part makes random programs and
 * compares the library's statistics of its memory with a model: WEFT_SEED=N repeats one program.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <weft/weft.h>

enum { PAGE = 4096, FRAME = PAGE - 64 };

static const weft_attr_t on_commit = {.policy = WEFT_COMMIT};
static bool failed;

static void result(bool good, const char *what)
{
	printf("%s - %s\n", good ? "ok" : "not ok", what);
	failed |= !good;
}

static weft_stack_stats_t stats(void)
{
	weft_stack_stats_t s;

	weft_stack_stats(WEFT_COMMIT, &s);
	return s;
}

static __attribute__((noinline)) void descend(long pages)
{
	volatile char frame[FRAME];

	frame[0] = 1;
	if (pages > 1)
		descend(pages - 1);
	(void)frame[0];
}

/* Recurses to the depth that each resume gives. */
static void *goes(void *pages)
{
	while (pages) {
		descend((long)pages);
		pages = weft_suspend(NULL);
	}
	return NULL;
}

static bool fails(weft_coro_t *k, long pages)
{
	return weft_resume(k, (void *)pages, WEFT_HANDLE_NONE).effect == &weft_failed;
}

/* Suspended, after a recursion of this depth. */
static weft_coro_t *made(long pages)
{
	weft_coro_t *k = weft_create_with(goes, (void *)pages, &on_commit);

	if (!k || fails(k, pages)) {
		perror("closed: made");
		exit(2);
	}
	return k;
}

/* ---- accesses to closed memory ----------------------------------------------------------------------------------- */

static bool is_missing(void)
{
	return !strcmp(weft_commit_mechanism(), "userfaultfd");
}

/* Without the privilege, system calls fail as they do with the mechanism "signal". */
static bool has_right(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void *reads(void *got)
{
	char *here = (char *)__builtin_frame_address(0) - 25 * PAGE;
	int zero = open("/dev/zero", O_RDONLY);

	*(ssize_t *)got = read(zero, here, 2 * PAGE);
	close(zero);
	return NULL;
}

static void system_calls(void)
{
	weft_coro_t *k;
	ssize_t got = 0;

	k = weft_create_with(reads, &got, &on_commit);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	result(got == 2 * PAGE, "system calls into closed memory");
}

static volatile int handled;
static long process, thread;

static void on_signal(int number)
{
	handled = number;
}

/* The kernel writes the handler's frame just below the stack pointer, which is at the end of the open part. */
static __attribute__((noinline)) void raise_at_the_end(char *open)
{
	char *here = __builtin_frame_address(0);
	volatile char *room = __builtin_alloca((size_t)(here - open) - 512);

	room[0] = 1;
	(void)syscall(SYS_tgkill, process, thread, SIGUSR1);
	room[1] = 1;
}

static void *signalled(void *unused)
{
	char *end = (char *)(((uintptr_t)__builtin_frame_address(0) | (PAGE - 1)) + 1);

	(void)unused;
	raise_at_the_end(end - 2 * PAGE);
	return NULL;
}

static void signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};
	weft_coro_t *k;

	weft_stack_trim();
	sigaction(SIGUSR1, &action, NULL);
	process = getpid();
	thread = syscall(SYS_gettid); /* so that the dynamic linker, which needs stack, has resolved the function */
	k = weft_create_with(signalled, NULL, &on_commit);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	result(handled == SIGUSR1, "a signal's frame in closed memory");
}

static void others(void)
{
	weft_coro_t *k = made(1);
	size_t before = stats().committed;
	char *low;

	low = (char *)k->link.sp - 20 * PAGE;
	memset(low, 1, 16);
	result(low[0] == 1 && stats().committed >= before + 17 * PAGE, "who does not run on the stack");
	weft_delete(k);
}

static void stale(void)
{
	weft_coro_t *k = made(10);

	weft_delete(k);
	weft_stack_trim();
	result(weft_state(k) == WEFT_DELETED || weft_id(k) == 0, "a deleted coroutine, whose memory was dropped");
}

/* ---- spent budgets --------------------------------------------------------------------------------------------- */

static void spent(void)
{
	size_t budget = weft_set_budget((size_t)1 << 40);
	weft_coro_t *k = made(2);
	bool ended;

	weft_stack_trim();
	weft_set_budget(stats().committed + 10 * PAGE);
	ended = fails(k, 40);
	result(ended && weft_failure(k) == WEFT_BUDGET_SPENT, "a spent budget ends the coroutine");
	weft_set_budget((size_t)1 << 40);
	weft_reset(k, goes, (void *)40);
	result(!fails(k, 40), "which can be reset, and go deeper with a larger budget");
	weft_delete(k);
	weft_set_budget(budget);
}

/* ---- fork ------------------------------------------------------------------------------------------------------ */

static int in_child(weft_coro_t *k)
{
	size_t before = stats().faults;
	weft_coro_t *other;

	if (strcmp(weft_commit_mechanism(), "signal"))
		return 1;
	if (fails(k, 50) || stats().faults == before)
		return 2;
	other = made(1);
	weft_delete(k);
	weft_stack_trim();
	weft_set_budget(stats().committed + 4 * PAGE);
	return fails(other, 50) ? 0 : 3;
}

static void forks(void)
{
	weft_coro_t *k;
	int status;
	pid_t child;

	weft_stack_trim();
	k = made(5);
	child = fork();
	if (!child)
		_exit(in_child(k));
	waitpid(child, &status, 0);
	if (status)
		printf("# child: %x\n", (unsigned)status);
	result(!status, "a child of fork has stacks that grow, and a budget");
	result(!fails(k, 50), "and so has its parent");
	weft_delete(k);
}

/* ---- random programs ------------------------------------------------------------------------------------------- */

enum { STACKS = 40, STEPS = 4000 };

static uint64_t random_state;

static unsigned below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

/* The model: the minimum number of pages that each coroutine has touched since it was made. */
static struct stack {
	weft_coro_t *k;
	long pages;
} stack[STACKS];

static size_t budget;

static void *other_goes(void *pages)
{
	return goes(pages);
}

/* Few pages, or many, depending on the function. */
static long depth(bool other)
{
	return other ? 1 + (long)below(4) : below(5) ? 12 : 1 + (long)below(50);
}

static const char *wrong(size_t before)
{
	weft_stack_stats_t s = stats();
	size_t least = 0;

	for (int i = 0; i < STACKS; i++)
		least += stack[i].k ? (size_t)stack[i].pages * FRAME : 0;
	if (s.committed > before && s.committed > budget)
		return "more was committed than the budget has";
	if (s.committed < least)
		return "less is committed than was touched";
	if (weft_stack_resident(WEFT_COMMIT) > s.committed)
		return "more is in memory than is committed";
	return NULL;
}

static const char *run(struct stack *it, bool other)
{
	long pages = depth(other);

	if (fails(it->k, pages)) {
		size_t committed = stats().committed;

		weft_delete(it->k);
		it->k = NULL;
		/* Each level touches one more page. Cached stacks are freed before a coroutine fails. */
		return committed + PAGE > budget ? NULL : "a coroutine failed within the budget";
	}
	if (pages > it->pages)
		it->pages = pages;
	return NULL;
}

static const char *step(void)
{
	struct stack *it = &stack[below(STACKS)];
	bool other = (it - stack) % 2;

	if (!below(200))
		weft_stack_trim();
	if (!below(50)) {
		budget = (size_t)(100 + below(900)) * PAGE;
		weft_set_budget(budget);
	}
	if (it->k && !below(3)) {
		weft_delete(it->k);
		it->k = NULL;
		return NULL;
	}
	if (it->k)
		return run(it, other);
	it->k = weft_create_with(other ? other_goes : goes, (void *)1, &on_commit);
	it->pages = 1;
	if (it->k)
		return fails(it->k, 1) ? "a coroutine failed that needs nothing" : run(it, other);
	return errno == EDQUOT && stats().committed + 2 * PAGE > budget ? NULL : "nothing was made within the budget";
}

static void random_programs(void)
{
	const char *seed = getenv("WEFT_SEED"), *why = NULL;
	size_t before;

	random_state = seed ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL);
	printf("# seed %llu\n", (unsigned long long)random_state);
	budget = (size_t)1 << 30;
	weft_set_budget(budget);
	for (int i = 0; i < STEPS && !why; i++) {
		before = stats().committed;
		why = step();
		if (!why)
			why = wrong(before);
	}
	for (int i = 0; i < STACKS; i++)
		weft_delete(stack[i].k);
	weft_stack_trim();
	if (why)
		printf("# %s\n", why);
	result(!why, "random programs agree with the model");
	result(!stats().committed, "nothing is committed at the end");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
		bool needs_right;
	} parts[] = {
	    {"calls", system_calls, true},
	    {"signals", signals, true},
	    {"others", others, false},
	    {"stale", stale, false},
	    {"spent", spent, false},
	    {"forks", forks, false},
	    {"random", random_programs, false},
	};
	const char *asked = getenv("WEFT_COMMIT");

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (asked && strcmp(asked, weft_commit_mechanism())) {
		printf("not ok - %s was asked for\n", asked);
		return 1;
	}
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (argc > 1 ? !strcmp(argv[1], parts[i].name) : !parts[i].needs_right || (is_missing() && has_right()))
			parts[i].run();
	return failed;
}
