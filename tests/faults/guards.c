/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Guards: frames larger than the guard, stray pointers into guards, guards of other sizes. Each scenario is a process.
 * Coroutines have the default policy, so that WEFT_STACK chooses. With PROBED, and -fstack-clash-protection: only the
 * scenarios about probes. With LINKED, and code for linked stacks: system stacks.
 */
#include <errno.h>
#include <weft/thread.h>

#include "scenario.h"

enum { KB = 1024, MB = 1024 * 1024, FRAME = 256 * KB };

static weft_attr_t attr = {.stack_size = 64 * KB};

static weft_coro_t *make(const char *name, weft_fn_t *fn, void *argument)
{
	weft_coro_t *k;

	attr.name = name;
	k = weft_create_with(fn, argument, &attr);
	REQUIRE(k);
	return k;
}

#ifndef LINKED
static void *once(void *argument)
{
	return argument;
}

static bool is_commit(void)
{
	return weft_default_policy() == WEFT_COMMIT;
}

/* On commit stacks a coroutine without more room fails, and the process continues. */
static void expect_overflow(weft_coro_t *k)
{
	weft_request_t r = resume(k);

	REQUIRE(is_commit() && r.effect == &weft_failed && weft_failure(k) == WEFT_RESERVATION_SPENT);
	fputs("weft: stack overflow in coroutine \"subject\"", stderr);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
}

static __attribute__((noinline)) size_t large_frames(size_t count)
{
	volatile char frame[FRAME];
	size_t frames = 1;

	frame[0] = (char)count;
	if (count > 1)
		frames += large_frames(count - 1);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return frames;
}

static void *in_large_frames(void *argument)
{
	large_frames(8);
	return argument;
}
#endif

#ifdef PROBED
static void large_frame(void)
{
	for (int i = 0; i < 8; i++)
		make("neighbour", once, NULL);
	expect_overflow(make("subject", in_large_frames, NULL));
}

static const struct scenario scenarios[] = {
    {"a frame larger than the guard, with probes", large_frame, SIGSEGV,
     "weft: stack overflow in coroutine \"subject\""},
};
#elif defined(LINKED)
static int compares(const void *a, const void *b)
{
	use_stack(20 * MB);
	return (a > b) - (a < b);
}

static void *sorts(void *argument)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof *numbers, compares);
	return argument;
}

static void system_stack(void)
{
	resume(make("subject", sorts, NULL));
}

static void *compares_in_coroutine(void *argument)
{
	use_stack(20 * MB);
	return argument;
}

static int compares_well(const void *a, const void *b)
{
	weft_coro_t *k = make("inner", compares_in_coroutine, NULL);

	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
	return (a > b) - (a < b);
}

static void *sorts_well(void *argument)
{
	int numbers[] = {3, 1, 2};

	qsort(numbers, 3, sizeof *numbers, compares_well);
	return argument;
}

/* The remedy in the message helps. */
static void system_stack_advice(void)
{
	REQUIRE(weft_returned(resume(make("subject", sorts_well, NULL))));
}

static const struct scenario scenarios[] = {
    {"a comparison that overflows a system stack", system_stack, SIGSEGV,
     "; code runs there that is not compiled for linked stacks, and what that code calls back: compile it by weft cc "
     "--policy, or let what goes deep be a coroutine\n"},
    {"the same, named", system_stack, SIGSEGV,
     "weft: stack overflow in coroutine \"subject\" (#1), on a system stack: overcommit, 8 MiB reserved; fault at 0x"},
    {"a comparison that follows the advice", system_stack_advice, 0, NULL},
};
#else

/* ---- guards of other sizes ------------------------------------------------------------------------------------ */

static void large_guard(void)
{
	attr.guard_size = 2 * FRAME;
	for (int i = 0; i < 8; i++)
		make("neighbour", once, NULL);
	expect_overflow(make("subject", in_large_frames, NULL));
}

static char *lowest(const weft_coro_t *k)
{
	return (char *)(uintptr_t)k - weft_stack_usable(k);
}

/* A stack with a large guard has as much room as one without, and never comes from the cache of other stacks. */
static void guards_apart(void)
{
	weft_coro_t *plain[40], *guarded[40];
	size_t usable = weft_stack_usable(make("first", once, NULL));

	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 40; i++) {
			attr.guard_size = 0;
			plain[i] = make("plain", uses_stack, (void *)(40ul * KB));
			attr.guard_size = (i % 4 + 1) * 100ul * KB;
			guarded[i] = make("guarded", uses_stack, (void *)(40ul * KB));
			REQUIRE(weft_stack_usable(plain[i]) / 4096 == usable / 4096);
			REQUIRE(weft_stack_usable(guarded[i]) >= usable);
			REQUIRE(weft_on_stack(guarded[i], lowest(guarded[i]) - attr.guard_size));
			REQUIRE(!weft_on_stack(plain[i], lowest(plain[i]) - 100 * KB));
		}
		for (int i = 0; i < 40; i++) {
			REQUIRE(weft_returned(resume(plain[i])) && weft_returned(resume(guarded[i])));
			weft_delete(plain[i]);
			weft_delete(guarded[i]);
		}
		if (round == 1)
			weft_stack_trim();
	}
}

static int error_of(size_t guard_size, unsigned flags)
{
	weft_attr_t wanted = {.guard_size = guard_size, .flags = flags};
	weft_coro_t *k = weft_create_with(once, NULL, &wanted);
	int error = k ? 0 : errno;

	weft_delete(k);
	return error;
}

static void sizes_of_guards(void)
{
	REQUIRE(error_of(1, 0) == 0);
	REQUIRE(error_of(1 * MB, 0) == 0);
	REQUIRE(error_of((size_t)1 << 30, 0) == EINVAL);
	REQUIRE(error_of(SIZE_MAX, 0) == EINVAL);
	REQUIRE(error_of(4 * KB, WEFT_NO_GUARD) == EINVAL);
}

static void large_guard_of_thread(void)
{
	weft_attr_t wanted = {.policy = WEFT_FIXED, .name = "subject", .guard_size = 2 * FRAME};
	pthread_t thread;

	REQUIRE(!weft_thread_create(&thread, &wanted, in_large_frames, NULL));
	pthread_join(thread, NULL);
}

/* ---- frames that step over the guard -------------------------------------------------------------------------- */

static weft_coro_t *high, *low;

/* A frame whose lowest byte is at `target`. */
static __attribute__((noinline)) void *reaches(void *target)
{
	char here;
	volatile char *frame = __builtin_alloca((size_t)(&here - (char *)target));

	*frame = 1;
	return NULL;
}

static void neighbours(weft_fn_t *fn, size_t above_low)
{
	weft_coro_t *other;

	high = make("subject", fn, NULL);
	low = make("subject", fn, NULL);
	if (low > high)
		other = low, low = high, high = other;
	weft_reset(high, fn, lowest(low) + above_low);
}

static void steps_into_guard(void)
{
	neighbours(reaches, (size_t)-2 * KB);
	resume(high);
}

/* A frame of a closed stack: no memory must be opened for it. */
static void steps_into_closed(void)
{
	neighbours(reaches, 20 * KB);
	resume(high);
	REQUIRE(!is_commit()); /* it is open there, and the error is not noticed */
	fputs("beyond the guard of 8 KiB", stderr);
	raise(SIGSEGV);
}

/* ---- stray pointers ------------------------------------------------------------------------------------------- */

static void *writes(void *address)
{
	*(volatile char *)address = 1;
	return NULL;
}

static void stray_outside(void)
{
	writes(lowest(make("subject", once, NULL)) - 100);
}

static void stray_inside(void)
{
	weft_coro_t *subject = make("subject", once, NULL);

	resume(make("writer", writes, lowest(subject) - 100));
}

static void stray_in_own(void)
{
	weft_coro_t *subject = make("subject", writes, NULL);

	weft_reset(subject, writes, lowest(subject) - 100);
	resume(subject);
}

static void handler_writes(int number)
{
	(void)number;
	writes(lowest(weft_current()) - 100);
}

static void *raises_deep(void *argument)
{
	volatile char frame[40 * KB];

	frame[0] = 1;
	raise(SIGUSR1);
	__asm__ volatile("" : : "r"(frame) : "memory");
	return argument;
}

static void stray_in_handler(void)
{
	weft_signal(SIGUSR1, handler_writes);
	resume(make("subject", raises_deep, NULL));
}

#define STRAY "weft: stray pointer: "
#define ADVICE "; no stack has overflowed: look for a bad pointer or index there\n"

static const struct scenario scenarios[] = {
    {"a frame smaller than a large guard", large_guard, SIGSEGV, "weft: stack overflow in coroutine \"subject\""},
    {"a frame smaller than a thread's large guard", large_guard_of_thread, SIGSEGV,
     "weft: stack overflow in coroutine \"subject\" (#0): fixed, 1 MiB reserved; fault at 0x"},
    {"stacks with other guards are apart", guards_apart, 0, NULL},
    {"sizes of guards", sizes_of_guards, 0, NULL},
    {"a frame that steps into another one's guard", steps_into_guard, SIGSEGV,
     ", beyond the guard of 8 KiB, so that other stacks may have been written to; compile with "
     "-fstack-clash-protection, "
     "and raise it with weft_attr.stack_size or WEFT_STACK="},
    {"a frame that steps into another one's closed stack", steps_into_closed, SIGSEGV, "beyond the guard of 8 KiB"},
    {"a stray pointer from outside", stray_outside, SIGSEGV,
     STRAY "code outside of any coroutine touched the guard of coroutine \"subject\" (#1): "},
    {"a stray pointer from another coroutine", stray_inside, SIGSEGV,
     STRAY "coroutine \"writer\" (#2) touched the guard of coroutine \"subject\" (#1): "},
    {"a stray pointer into the own guard", stray_in_own, SIGSEGV,
     STRAY "coroutine \"subject\" (#1) touched the guard of its own stack: "},
    {"a stray pointer in a signal handler", stray_in_handler, SIGSEGV, ADVICE},
};
#endif

int main(int count, char **arguments)
{
	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
