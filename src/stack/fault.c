/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The one handler of SIGSEGV and SIGBUS. From the fault's address it finds the slot by arithmetic, asks the policy what
 * the fault means, and acts:
 *   opened      return; the instruction runs again
 *   probe       a store that asks for more stack: go to where its prologue jumps to __morestack
 *   overflow    one line, then the default action: the process ends with a core at the faulting instruction
 *   spent       the coroutine fails: the interrupted thread continues in its resumer (coro layer)
 *   foreign     whoever was installed before us; SIG_DFL is restored, so that the fault ends the process
 * It takes no lock, allocates nothing, and runs on the thread's alternate stack whoever made that.
 */
#define _GNU_SOURCE /* registers of a signal context, mmap flags */

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/arch.h>

#include "arch/signal.h"
#include "internal/line.h"
#include "stack/policy.h"

#ifdef WEFT_HAVE_VALGRIND
#include <valgrind/memcheck.h>
#else
#define VALGRIND_MAKE_MEM_UNDEFINED(start, bytes) ((void)0)
#endif

static struct sigaction previous[2]; /* of SIGSEGV, of SIGBUS; constant once the handler is installed */

static atomic_size_t faults, failures, probes;

/* A fault above `open` with nobody opening is one that lost a race, at most a few times in a row. */
static __thread struct {
	void *address;
	unsigned count;
} raced __attribute__((tls_model("initial-exec")));

/* ---- handing on ------------------------------------------------------------------------------------------ */

static void die_by_default(int signal, const siginfo_t *info)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = SIG_DFL;
	sigaction(signal, &action, NULL);
	/* A fault happens again by itself; a signal that was sent does not. */
	if (info->si_code <= 0)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

static void hand_on(int signal, siginfo_t *info, void *context)
{
	const struct sigaction *old = &previous[signal == SIGBUS];
	sigset_t mask;

	if (!(old->sa_flags & SA_SIGINFO) && (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN)) {
		if (old->sa_handler == SIG_DFL || info->si_code > 0) /* the kernel does not let faults be ignored */
			die_by_default(signal, info);
		return;
	}
	/* The mask the handler asked for, as far as ours differs. */
	pthread_sigmask(SIG_BLOCK, &old->sa_mask, &mask);
	if (old->sa_flags & SA_NODEFER) {
		sigset_t self;

		sigemptyset(&self);
		sigaddset(&self, signal);
		pthread_sigmask(SIG_UNBLOCK, &self, NULL);
	}
	if (old->sa_flags & SA_SIGINFO)
		old->sa_sigaction(signal, info, context);
	else
		old->sa_handler(signal);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

/* ---- overflow ----------------------------------------------------------------------------------------------- */

static void report(const struct weft__slot *slot, const void *owner, const char *address, const char *what)
{
	size_t size = weft__class_bytes(slot->class);
	const char *policy = weft__policies[slot->policy]->name;
	struct weft__line line;
	const char *name;
	uint64_t id;

	weft__owner_describe(owner, &name, &id);
	weft__line_begin(&line);
	weft__line_text(&line, what);
	weft__line_text(&line, " in coroutine \"");
	weft__line_text(&line, name);
	weft__line_text(&line, "\" (#");
	weft__line_number(&line, id);
	weft__line_text(&line, "): ");
	weft__line_text(&line, policy);
	weft__line_text(&line, ", ");
	weft__line_bytes(&line, size);
	weft__line_text(&line, " reserved; fault at ");
	weft__line_address(&line, (uintptr_t)address);
	weft__line_text(&line, "; raise it with weft_attr.stack_size or WEFT_STACK=");
	weft__line_text(&line, policy);
	weft__line_text(&line, ":");
	weft__line_number(&line, 2 * size / 1024);
	weft__line_text(&line, "K");
	weft__line_write(&line);
}

/* ---- the decision -------------------------------------------------------------------------------------------- */

static bool lost_a_race(struct weft__slot *slot, void *address)
{
	if (atomic_load(&slot->opening)) { /* pairs with the counting in commit_fault */
		sched_yield();
		return true;
	}
	if (raced.address != address) {
		raced.address = address;
		raced.count = 0;
	}
	return ++raced.count < 4;
}

static bool fail(const struct weft__slot *slot, void *owner, char *address, enum weft__spent why, ucontext_t *context)
{
	char *sp = weft__context_sp(context);
	void *fp, *victim = weft__owner_choose(owner, address, why, &sp, &fp);

	if (!victim) {
		report(slot, owner, address, why == WEFT__SPENT_BUDGET ? "stack budget spent" : "stack overflow");
		return false;
	}
	if (weft__tls_growth) /* the resumer's stack may be a linked one, without room */
		sp = weft__tls_growth;
	atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed); /* a statistic */
	weft__context_call(context, weft__owner_fail, victim, sp, fp);
	VALGRIND_MAKE_MEM_UNDEFINED(sp - 512, 512 - 128); /* it does not see the stack pointer move */
	return true;
}

enum answer { DONE, REPORTED, NOT_OURS };

static bool probe(ucontext_t *context)
{
	void *slow = weft__probe_at(weft__context_pc(context));

	if (!slow)
		return false;
	weft__context_jump(context, slow);
	atomic_fetch_add_explicit(&probes, 1, memory_order_relaxed); /* a statistic */
	return true;
}

static enum answer answer(struct weft__slot *slot, char *address, ucontext_t *context)
{
	/* Acquire: the owner's name and number were written before it was set. */
	void *owner = atomic_load_explicit(&slot->owner, memory_order_acquire);

	if (!owner)
		return NOT_OURS;
	if (slot->chunk.limit && address < atomic_load(&slot->open) && probe(context))
		return DONE;
	switch (weft__policies[slot->policy]->fault(slot, address)) {
	case WEFT__FAULT_OPENED:
		atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed); /* a statistic */
		return DONE;
	case WEFT__FAULT_RACED:
		return lost_a_race(slot, address) ? DONE : NOT_OURS;
	case WEFT__FAULT_OVERFLOW:
		report(slot, owner, address, "stack overflow");
		return REPORTED;
	case WEFT__FAULT_BUDGET:
		return fail(slot, owner, address, WEFT__SPENT_BUDGET, context) ? DONE : REPORTED;
	case WEFT__FAULT_RESERVATION:
		return fail(slot, owner, address, WEFT__SPENT_RESERVATION, context) ? DONE : REPORTED;
	case WEFT__FAULT_FOREIGN:
		break;
	}
	return NOT_OURS;
}

/* A slot that lost its memory reads as zeros: resuming its coroutine jumped to address 0. */
static bool resumed_deleted(const siginfo_t *info, ucontext_t *context)
{
	void *k;

	if (info->si_code <= 0 || info->si_addr || !weft__context_resumes_nothing(context, &k) || !weft__arena_has(k))
		return false;
	weft__context_jump(context, (void *)weft__in_deleted);
	return true;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	struct weft__slot *slot = info->si_code > 0 ? weft__arena_find(info->si_addr) : NULL;
	enum answer result = NOT_OURS;
	int saved = errno;

	if (slot)
		result = answer(slot, info->si_addr, context);
	else if (resumed_deleted(info, context))
		result = DONE;
	if (result == REPORTED)
		die_by_default(signal, info);
	else if (result == NOT_OURS)
		hand_on(signal, info, context);
	errno = saved;
}

void weft__fault_install(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = on_fault;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	/* Who was there before must be known before a fault can come. */
	sigaction(SIGSEGV, NULL, &previous[0]);
	sigaction(SIGBUS, NULL, &previous[1]);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

void weft__fault_stats(weft_policy_t policy, weft_stack_stats_t *stats)
{
	if (weft__policies[policy]->linked)
		stats->probes = atomic_load_explicit(&probes, memory_order_relaxed);
	if (!weft__policies[policy]->closed || weft__policies[policy]->linked)
		return;
	stats->faults = atomic_load_explicit(&faults, memory_order_relaxed);
	stats->failures = atomic_load_explicit(&failures, memory_order_relaxed);
}
