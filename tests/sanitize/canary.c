/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Programs with a real mistake inside a coroutine, each in a function named culprit, whose caller is named victim. A
 * sanitizer or valgrind must report it, with a stack that names both. The argument chooses the mistake; each mistake is
 * made after a few switches, in a coroutine within a coroutine, so the tool must have followed the switches.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#define NOINLINE __attribute__((noinline))

WEFT_EFFECT(int, ask, int, what);

/* The compiler must not see through it. Not inlined: clang gives functions with assembly in them no fake stack frame.
 */
static NOINLINE void *hide(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

static NOINLINE void use(int value)
{
	__asm__ volatile("" : : "r"(value) : "memory");
}

static int shared;

static NOINLINE char *returns_local(void)
{
	char local[32];

	memset(hide(local), 1, sizeof local);
	return hide(local);
}

static NOINLINE void culprit_heap_overflow(void)
{
	char *memory = malloc(10);

	((char *)hide(memory))[10] = 1;
	free(memory);
}

static NOINLINE void culprit_heap_use_after_free(void)
{
	char *memory = malloc(10), *alias = hide(memory);

	free(memory);
	alias[3] = 1;
}

static NOINLINE void culprit_stack_overflow(void)
{
	char local[16];

	((char *)hide(local))[16 + ask(0)] = 1; /* suspended while computing the address */
	use(local[0]);
}

static NOINLINE void culprit_use_after_return(void)
{
	char *gone = returns_local();

	(void)ask(0);
	use(gone[5]);
}

/* Nothing orders the two accesses: the threads meet without synchronizing. */
static NOINLINE void culprit_race(void)
{
	static int arrived;

	__atomic_fetch_add(&arrived, 1, __ATOMIC_RELAXED);
	while (__atomic_load_n(&arrived, __ATOMIC_RELAXED) < 2)
		sched_yield();
	/* Often, because ThreadSanitizer misses two accesses at exactly the same moment. */
	for (int i = 0; i < 1000; i++)
		++*(volatile int *)&shared;
}

/* The threads run in sequence, but nothing that they do orders them. */
static int turn;

static NOINLINE void culprit_race_apart(void)
{
	++*(volatile int *)&shared;
}

/* Resumes a coroutine that another thread has resumed before, and passed on without synchronizing. */
static weft_coro_t *handed;

static NOINLINE void culprit_race_handed(void)
{
	weft_coro_t *k;

	while (!(k = __atomic_load_n(&handed, __ATOMIC_RELAXED)))
		usleep(200);
	(void)weft_resume(k, NULL, WEFT_HANDLE_ALL);
}

static NOINLINE void culprit_undefined(void)
{
	int large = 0x7fffffff;

	use(*(int *)hide(&large) + 1);
}

static NOINLINE void culprit_uninitialised(void)
{
	int local[4];

	hide(local);
	(void)ask(0);
	if (local[2])
		use(1);
}

/* Below the stack pointer, beyond the red zone. */
static NOINLINE void culprit_invalid_write(void)
{
	char *sp = __builtin_frame_address(0);

	((char *)hide(sp))[-8192] = 1;
}

static NOINLINE void culprit_leak(void)
{
	use(*(char *)hide(memset(malloc(77), 1, 77)));
}

static NOINLINE void culprit_none(void)
{
	use(ask(0));
}

static const struct mistake {
	const char *name;
	void (*culprit)(void);
} mistakes[] = {
    {"heap_overflow", culprit_heap_overflow},
    {"heap_use_after_free", culprit_heap_use_after_free},
    {"stack_overflow", culprit_stack_overflow},
    {"use_after_return", culprit_use_after_return},
    {"race", culprit_race},
    {"race_apart", culprit_race_apart},
    {"race_handed", culprit_race_handed},
    {"undefined", culprit_undefined},
    {"uninitialised", culprit_uninitialised},
    {"invalid_write", culprit_invalid_write},
    {"leak", culprit_leak},
    {"none", culprit_none},
};

static const struct mistake *mistake;

static NOINLINE void *victim(void *arg)
{
	(void)ask(1);
	mistake->culprit();
	(void)ask(1);
	return arg;
}

static void *outer(void *arg)
{
	weft_attr_t attr = {.name = "victim"};
	weft_coro_t *k = weft_create_with(victim, arg, &attr);

	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	return arg;
}

static void *waits(void *arg)
{
	weft_suspend(NULL);
	return arg;
}

static void *hand_over(void *arg)
{
	weft_coro_t *k = weft_create(waits, NULL);

	(void)weft_resume(k, NULL, WEFT_HANDLE_ALL);
	__atomic_store_n(&handed, k, __ATOMIC_RELAXED);
	return arg;
}

static void *run(void *number)
{
	bool apart = mistake->culprit == culprit_race_apart;
	weft_coro_t *k;
	weft_request_t r;

	if (mistake->culprit == culprit_race_handed && !number)
		return hand_over(number);
	while (apart && __atomic_load_n(&turn, __ATOMIC_RELAXED) != (int)(intptr_t)number)
		usleep(200);
	k = weft_create(outer, NULL);
	weft_handle (r, k, ask)
		weft_reply(ask, r, 0);
	weft_delete(k);
	__atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	for (size_t i = 0; argc == 2 && i < sizeof mistakes / sizeof *mistakes; i++)
		if (!strcmp(argv[1], mistakes[i].name))
			mistake = &mistakes[i];
	if (!mistake) {
		fprintf(stderr, "usage: canary MISTAKE\n");
		return 2;
	}
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i))
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	puts("survived");
	return 0;
}
