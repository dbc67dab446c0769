/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Default handlers of the four effects, for threads outside of tasks: a waiting thread sleeps on its waiter's word.
 * Also the system's part: futexes, the clock, spinning.
 */
#define _GNU_SOURCE
#include "sched/sched.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "internal/libc.h"
#include "internal/message.h"
#include "os/os.h"

void weft__pause(unsigned *turns)
{
	/* The thread that is waited for may not be running. */
	if (++*turns % 64 == 0)
		weft__os_yield();
#if defined(__x86_64__) || defined(__i386__)
	else
		__builtin_ia32_pause();
#endif
}

void weft__spin_wait(uint32_t *lock)
{
	unsigned turns = 0;

	do
		weft__pause(&turns);
	/* Acquire: pairs with weft__spin_unlock. Bit 0 alone is the lock: see weft__spin_lock_bit. */
	while (__atomic_load_n(lock, __ATOMIC_RELAXED) & 1 || __atomic_fetch_or(lock, 1, __ATOMIC_ACQUIRE) & 1);
}

void weft__futex_wait(uint32_t *word, uint32_t value, uint64_t deadline)
{
	struct timespec at = weft__timespec(deadline);

	syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, deadline == WEFT_NEVER ? NULL : &at, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

void weft__futex_wake(uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

uint64_t weft__clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * WEFT__NANOSECONDS + (uint64_t)now.tv_nsec;
}

/* Afterwards the waiter may be gone. If its memory has another use by then, the futex may wake a thread spuriously. */
static void wake_thread(weft_waiter_t *w)
{
	uint32_t *word = &w->state;

	/* Release: pairs with the acquire of wait_in_thread. */
	__atomic_fetch_or(word, WEFT__WOKEN,
			  WEFT_CANARY_OR(threads_wake_unordered, __ATOMIC_RELAXED, __ATOMIC_RELEASE));
	weft__futex_wake(word);
}

static void wait_in_thread(weft_waiter_t *w)
{
	uint64_t deadline = w->timer.at;
	uint32_t state;

	w->wake = wake_thread;
	if (!weft_waiter_park(w))
		return;
	/* DONE is not sufficient: a thread that set DONE just after the waiter was parked has not yet called `wake`. */
	while (!((state = __atomic_load_n(&w->state, __ATOMIC_ACQUIRE)) & WEFT__WOKEN)) {
		weft__futex_wait(&w->state, state, deadline);
		if (deadline == WEFT_NEVER || weft__clock() < deadline)
			continue;
		if (weft_waiter_claim(w, -ETIMEDOUT))
			return;
		deadline = WEFT_NEVER; /* another thread is completing it */
	}
}

static int yield_thread(void)
{
	weft__os_yield();
	return 0;
}

static void say_nowhere(void)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "a task was started outside of weft_rt_run, where no runtime would run it: start it "
			       "in the function that weft_rt_run runs, or by weft_rt_spawn");
	weft__line_write(&line);
}

/* The first call also prints a message: programs that ignore the result would end in silence. */
static int spawn_nowhere(struct weft_spawn *what)
{
	static bool said;

	if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED))
		say_nowhere();
	if (what->handle)
		*what->handle = (weft_task_t){.scope = what->scope, .error = -EPERM};
	return -EPERM;
}

WEFT__LAST_WORDS(static, die_cancelled, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(
	    &line, "weft_cancelled was performed outside of a task, where nothing handles it: perform it in a task");
	weft__line_die(&line);
}

static void end_cancelled(void)
{
	struct weft__task *task = weft__task();

	if (task)
		weft_exit(task->k, &weft_effect_weft_cancelled, NULL);
	die_cancelled();
}

__attribute__((constructor(104))) static void set_defaults(void)
{
	weft_set_default(weft_op_wait, wait_in_thread);
	weft_set_default(weft_op_yield, yield_thread);
	weft_set_default(weft_op_spawn, spawn_nowhere);
	weft_set_default(weft_op_now, weft__clock);
	weft_set_default(weft_cancelled, end_cancelled);
}
