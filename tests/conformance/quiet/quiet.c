/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Once stacks are warm, a creation makes no system calls except one in 1024, which reads the thread's signal mask;
 * switches and performs make none. The kernel ends this process (SIGSYS) at any other call. Neither operation
 * allocates.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <weft/weft.h>

enum { WARM = 3000, ROUNDS = 3000, AT_ONCE = 20 };

WEFT_FAMILY(state, (int, get), (void, put, int, value));
WEFT_EFFECT(int, ask, int, x);
WEFT_EFFECT(int, give_up, int, x);
WEFT_EXCEPTION(fail, int, x);

static int on_get(void *state)
{
	return *(int *)state;
}

static void on_put(void *state, int value)
{
	*(int *)state = value;
}

static void *on_ask(void *state, weft_resumption_t *k, int x)
{
	return *(int *)state % 2 ? weft_continue(ask, k, x + 1) : weft_tail_continue(ask, k, x + 1);
}

static void *on_end(void *state, int x)
{
	return x ? state : NULL;
}

WEFT_HANDLER(handler, weft_tail(get, on_get), weft_tail(put, on_put), weft_general(ask, on_ask),
	     weft_abort(give_up, on_end), weft_abort(fail, on_end));

static int cleaned, allocations;

static void clean(void *unused)
{
	cleaned += unused != NULL;
}

static void *body(void *argument)
{
	int round = *(int *)argument;

	weft_defer(clean, argument);
	put(get() + 1);
	if (ask(1) != 2)
		return NULL;
	if (round % 3 == 0)
		give_up(1);
	if (round % 3 == 1)
		fail(1);
	return argument;
}

static void *suspends(void *argument)
{
	weft_defer(clean, argument);
	for (;;)
		weft_suspend(argument);
}

static bool create(int round)
{
	int state = round;
	weft_coro_t *k[AT_ONCE];
	bool right = weft_run(&handler, &state, body, &round) && state == round + 1;

	for (int i = 0; i < AT_ONCE; i++) {
		k[i] = weft_create(suspends, &state);
		right &= k[i] && weft_resume(k[i], NULL, WEFT_HANDLE_NONE).payload == &state;
	}
	for (int i = 0; i < AT_ONCE; i++)
		weft_delete(k[i]);
	if (WEFT_CANARY(asks_the_kernel))
		(void)getppid();
	return right;
}

static void *switches(void *argument)
{
	for (int i = 0;; i++) {
		put(get() + 1);
		if (ask(i) != i + 1)
			return NULL;
		weft_suspend(argument);
	}
}

static bool run_on(weft_coro_t *k, int *state)
{
	weft_request_t r = weft_resume_under(k, NULL, &handler, state);

	if (!weft_is(ask, r))
		return false;
	weft_reply(ask, r, weft_args(ask, r)->x + 1);
	return weft_resume_under(k, NULL, &handler, state).effect == &weft_suspended;
}

/* Forbids every call except these. Filters add up. */
static bool forbid(const int *allowed, unsigned count)
{
	struct sock_filter code[16] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)};
	struct sock_fprog program = {.filter = code};
	unsigned n = 1;

	for (unsigned i = 0; i < count; i++)
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
							 (unsigned char)(count - i), 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

extern void *__libc_malloc(size_t bytes);

void *malloc(size_t bytes)
{
	allocations++;
	return __libc_malloc(bytes);
}

int main(void)
{
	static const int when_creating[] = {SYS_exit_group,	SYS_write,	  SYS_prctl,	  SYS_seccomp,
					    SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_sigaltstack},
			 when_switching[] = {SYS_exit_group, SYS_write};
	weft_coro_t *k = weft_create(switches, &cleaned);
	bool right = k && run_on(k, &(int){0});
	int state = 0, before;

	for (int i = 0; i < WARM; i++)
		right &= create(i);
	before = allocations;
	if (!forbid(when_creating, sizeof when_creating / sizeof *when_creating)) {
		puts("skip - the kernel has no filters of system calls");
		return 77;
	}
	for (int i = 0; i < ROUNDS; i++)
		right &= create(i);
	if (!forbid(when_switching, sizeof when_switching / sizeof *when_switching))
		return 1;
	for (int i = 0; i < ROUNDS; i++)
		right &= run_on(k, &state);
	right &= state == ROUNDS && allocations == before && cleaned == (WARM + ROUNDS) * (AT_ONCE + 1);
	if (write(1, right ? "ok\n" : "does not hold\n", right ? 3 : 14) < 0)
		_exit(1);
	_exit(!right);
}
