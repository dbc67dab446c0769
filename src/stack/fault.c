/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The single handler of SIGSEGV and SIGBUS. From the fault's address it computes the slot, asks the policy for the
 * meaning of the fault, and acts:
 *   opened      return; the instruction runs again
 *   probe       a store that asks for more stack: continue where its prologue jumps to __morestack
 *   overflow    one line, then the default action: the process ends with a core at the faulting instruction
 *   spent       the coroutine fails: the interrupted thread continues in its resumer (coro layer)
 *   foreign     call the handler that was installed before this one; if it was SIG_DFL, restore it, so that the fault
 *               ends the process
 * It takes no lock, allocates nothing, and runs on the thread's alternate stack, whether the library or the program
 * made that.
 */
#define _GNU_SOURCE /* registers of a signal context, mmap flags */

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <weft/detail/arch.h>

#include "arch/signal.h"
#include "internal/message.h"
#include "internal/valgrind.h"
#include "os/os.h"
#include "stack/fault.h"

static atomic_size_t faults, probes;
_Atomic(const struct weft__fault_above *) weft__fault_above;

/* A fault above `open` while no thread opens pages has lost a race. That happens at most a few times in a row. */
static __thread struct {
	void *address;
	unsigned count;
} raced __attribute__((tls_model("initial-exec")));

/* ---- other handlers ---------------------------------------------------------------------------------------- */

/*
 * The library's handler exists three times. If the program replaces the first, the second is installed, and calls the
 * program's handler; that may call the first, which calls the handler that was installed at the beginning. So no chain
 * is a circle. The levels are for SIGSEGV; SIGBUS has only the first.
 */
enum { LEVELS = 3, SIGNALS = 2, COPIES = 4 };

static const int numbers[SIGNALS] = {SIGSEGV, SIGBUS};

/* The next handler of each level. Written to a copy that is not in use, because a fault on another thread may be
 * reading the current copy. */
static struct {
	struct sigaction copies[COPIES];
	atomic_uint writes, newest;
} previous[LEVELS][SIGNALS];

static void read_previous(int level, int number, struct sigaction *action)
{
	/* Acquire: pairs with the release in write_previous. */
	unsigned newest = atomic_load_explicit(&previous[level][number == SIGBUS].newest, memory_order_acquire);

	*action = previous[level][number == SIGBUS].copies[newest];
}

static void write_previous(int level, int number, const struct sigaction *action)
{
	unsigned to = (atomic_fetch_add(&previous[level][number == SIGBUS].writes, 1) + 1) % COPIES;

	previous[level][number == SIGBUS].copies[to] = *action;
	/* Release: pairs with the acquire in read_previous. */
	atomic_store_explicit(&previous[level][number == SIGBUS].newest, to, memory_order_release);
}

static void die_by_default(int signal, const siginfo_t *info)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = SIG_DFL;
	sigaction(signal, &action, NULL);
	/* A fault happens again by itself. A signal that was sent does not, nor does a signal for whose handler there
	 * was no room. */
	if (info->si_code <= 0 || info->si_code == SI_KERNEL)
		syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
}

static bool is_none(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && (action->sa_handler == SIG_DFL || action->sa_handler == SIG_IGN);
}

/* A handler that is installed twice may call itself as the next handler. `frame` distinguishes a call from such a
 * handler from the next fault after a handler that was left by siglongjmp: the kernel puts the frame of that fault at
 * the same place. */
static bool is_circle(int level, const void *context)
{
	static __thread struct {
		const void *context;
		char *frame;
	} asked[LEVELS] __attribute__((tls_model("initial-exec")));
	char *frame = __builtin_frame_address(0);

	if (asked[level].context == context && frame < asked[level].frame)
		return true;
	asked[level].context = context;
	asked[level].frame = frame;
	return false;
}

static void hand_on(int level, int signal, siginfo_t *info, void *context)
{
	struct sigaction action, *old = &action;
	sigset_t mask;

	read_previous(level, signal, old);
	if (is_none(old) || is_circle(level, context)) {
		if (old->sa_handler != SIG_IGN || info->si_code > 0) /* the kernel does not let faults be ignored */
			die_by_default(signal, info);
		return;
	}
	/* Set the mask that the handler asked for, as far as it differs from the mask of this handler. */
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

void weft__line_owner(struct weft__line *line, const char *what, const void *owner)
{
	const char *name;
	uint64_t id;

	weft__owner_describe(owner, &name, &id);
	weft__line_text(line, what);
	weft__line_coroutine(line, name, id);
}

/* "WHAT POLICY, SIZE reserved; " */
static WEFT__COLD void line_size(struct weft__line *line, const char *what, const struct weft__slot *slot)
{
	weft__line_text(line, what);
	weft__line_text(line, weft__policies[slot->policy]->name);
	weft__line_text(line, ", ");
	weft__line_bytes(line, weft__slot_bytes(slot));
	weft__line_text(line, weft__is_callers(slot) ? " of the caller's memory; " : " reserved; ");
}

void weft__line_stack(struct weft__line *line, const struct weft__slot *slot, const char *address)
{
	line_size(line, ": ", slot);
	weft__line_text(line, "fault at ");
	weft__line_address(line, (uintptr_t)address);
}

static WEFT__COLD char *start_of(const struct weft__slot *slot)
{
	return weft__slot_start(slot);
}

/* A size for which the frame that reaches down to `lowest` fits: at least twice the size that did not suffice. */
static void line_remedy(struct weft__line *line, const struct weft__slot *slot, const void *owner, const char *lowest)
{
	const struct weft__fault_above *above = atomic_load(&weft__fault_above);
	const char *remedy = above ? above->remedy(owner) : NULL;
	size_t size = 2 * weft__slot_bytes(slot);

	if (weft__is_callers(slot))
		remedy = "weft_attr.memory_size: ";
	while (size - size / 8 < (size_t)(weft__slot_end(slot) - lowest))
		size *= 2;
	weft__line_text(line, "raise it with ");
	weft__line_text(line, remedy ? remedy : "weft_attr.stack_size or WEFT_STACK=");
	if (!remedy) {
		weft__line_text(line, weft__policies[slot->policy]->name);
		weft__line_text(line, ":");
	}
	weft__line_number(line, size / 1024);
	weft__line_text(line, "K");
}

/* Linked stacks: is it a stack for code without checks? */
static bool is_system_stack(const struct weft__slot *slot, const void *owner)
{
	const struct weft_link *link = owner;

	return link->chunk == &slot->chunk && !slot->chunk.limit;
}

void weft__report_overflow(const struct weft__slot *slot, const void *owner, const char *address)
{
	bool beyond = address < start_of(slot);
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "stack overflow");
	weft__line_owner(&line, " in ", owner);
	if (is_system_stack(slot, owner)) {
		weft__line_text(&line, ", on a system stack");
		weft__line_stack(&line, slot, address);
		weft__line_text(&line,
				"; code runs there that is not compiled for linked stacks, and what that code calls "
				"back: compile it by weft cc --policy, or let what goes deep be a coroutine");
		weft__line_write(&line);
		return;
	}
	weft__line_stack(&line, slot, address);
	if (beyond && !weft__slot_guard(slot)) {
		weft__line_text(&line, ", below it, so that memory there may have been written to; ");
	} else if (beyond) {
		weft__line_text(&line, ", beyond the guard of ");
		weft__line_bytes(&line, weft__slot_guard(slot));
		weft__line_text(&line, ", so that other stacks may have been written to; compile with "
				       "-fstack-clash-protection, and ");
	} else {
		weft__line_text(&line, "; ");
	}
	line_remedy(&line, slot, owner, beyond ? address : start_of(slot));
	weft__line_write(&line);
}

static void report_stray(const struct weft__slot *slot, const void *owner, const void *running, const char *address)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line, "stray pointer: ");
	if (running)
		weft__line_owner(&line, "", running);
	else
		weft__line_text(&line, "code outside of any coroutine");
	weft__line_text(&line, " touched the guard of ");
	if (running == owner)
		weft__line_text(&line, "its own stack");
	else
		weft__line_owner(&line, "", owner);
	weft__line_stack(&line, slot, address);
	weft__line_text(&line, "; no stack has overflowed: look for a bad pointer or index there");
	weft__line_write(&line);
}

/* The kernel has dropped the signal, and its number is lost. */
static void report_no_room(const struct weft__slot *slot, const void *running)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_owner(&line, "a signal came in ", running);
	line_size(&line, ", and its stack had no room for the handler: ", slot);
	weft__line_text(&line, "install handlers by weft_sigaction, or with SA_ONSTACK");
	weft__line_write(&line);
}

/* ---- which stack caused the fault ------------------------------------------------------------------------------ */

/*
 * A frame that does not fit is below the stack pointer, or near it: probes, the red zone, a call's return address.
 * Other touches of a guard come from a wrong pointer. A signal handler on the alternate stack has no frames here.
 */
enum { NEAR = 2 * WEFT__PAGE };

static bool is_near(const char *address, const ucontext_t *context)
{
	const char *sp = weft__context_sp(context);

	return !weft__context_on_alt_stack(context) && (uintptr_t)sp <= (uintptr_t)address + NEAR;
}

/* Did the running stack's frames skip its guard, and touch memory further down? */
static bool stepped_over(const struct weft__slot *running, const char *address, const ucontext_t *context)
{
	const size_t furthest = (size_t)1 << 30;
	const char *sp = weft__context_sp(context);

	return running && sp < running->chunk.low && (size_t)(running->chunk.low - sp) < furthest &&
	       address < start_of(running) && is_near(address, context);
}

/* The arena does not contain memory of the caller's. */
static bool is_on(const struct weft__slot *slot, const char *sp)
{
	return weft__is_callers(slot) ? sp >= slot->chunk.low && sp < (const char *)slot : weft__arena_find(sp) == slot;
}

/* Signals without SA_ONSTACK need kilobytes below the stack pointer, which the kernel does not open. */
static bool lacked_room(const siginfo_t *info, const struct weft__slot *running, const ucontext_t *context)
{
	return !WEFT_CANARY(lost_signals_are_not_told) && info->si_code == SI_KERNEL && running &&
	       !weft__context_on_alt_stack(context) && is_on(running, weft__context_sp(context)) &&
	       weft__context_lacks_room(context);
}

/* ---- the decision -------------------------------------------------------------------------------------------- */

static bool lost_a_race(struct weft__slot *slot, void *address)
{
	/* Pairs with the counting in commit_fault, in which a thread that a fork lost stays counted forever. */
	if (atomic_load(&slot->opening) && !weft__os_lost_threads()) {
		weft__os_yield();
		return true;
	}
	if (raced.address != address) {
		raced.address = address;
		raced.count = 0;
	}
	return ++raced.count < 4;
}

enum answer { DONE, REPORTED, NOT_OURS };

void weft__fault_count(void)
{
	atomic_fetch_add_explicit(&faults, 1, memory_order_relaxed); /* a statistic */
}

static bool probe(const struct weft__slot *slot, const char *address, ucontext_t *context)
{
	const void *pc = weft__context_pc(context);
	void *slow = weft__has_probes() ? weft__probe_at(pc) : NULL;

	if (!slow)
		return false;
	if (address < slot->chunk.low)
		weft__probe_learn(pc);
	weft__context_jump(context, slow);
	atomic_fetch_add_explicit(&probes, 1, memory_order_relaxed); /* a statistic */
	return true;
}

static enum answer answer(struct weft__slot *slot, char *address, ucontext_t *context)
{
	/* Acquire: the owner's name and number were written before `owner` was set. */
	void *owner = atomic_load_explicit(&slot->owner, memory_order_acquire);
	const struct weft__slot *frames;
	const void *running;

	if (!owner)
		return NOT_OURS;
	if (slot->chunk.limit && address < atomic_load(&slot->open) && probe(slot, address, context))
		return DONE;
	running = weft__owner_running(weft__context_sp(context), &frames);
	if (address < slot->chunk.low && (running != owner || !is_near(address, context))) {
		report_stray(slot, owner, running, address);
		return REPORTED;
	}
	switch (weft__policies[slot->policy]->fault(slot, address)) {
	case WEFT__FAULT_OPENED:
		weft__fault_count();
		return DONE;
	case WEFT__FAULT_RACED:
		return lost_a_race(slot, address) ? DONE : NOT_OURS;
	case WEFT__FAULT_OVERFLOW:
		weft__report_overflow(slot, owner, address);
		return REPORTED;
	case WEFT__FAULT_BUDGET:
		return weft__fault_spent(slot, owner, address, WEFT__SPENT_BUDGET, context) ? DONE : REPORTED;
	case WEFT__FAULT_MEMORY:
		return weft__fault_spent(slot, owner, address, WEFT__SPENT_MEMORY, context) ? DONE : REPORTED;
	case WEFT__FAULT_RESERVATION:
		return weft__fault_spent(slot, owner, address, WEFT__SPENT_RESERVATION, context) ? DONE : REPORTED;
	case WEFT__FAULT_FOREIGN:
		break;
	}
	return NOT_OURS;
}

/* A slot that lost its memory reads as zeros, like an object that was never made: a resume jumps to address 0. */
static bool resumed_deleted(const siginfo_t *info, ucontext_t *context)
{
	void *k;

	if (info->si_code <= 0 || info->si_addr || !weft__context_resumes_nothing(context, &k) || !k ||
	    (uintptr_t)k % 16)
		return false;
	weft__context_jump(context, (void *)weft__in_deleted);
	return true;
}

/* A coroutine whose function is NULL jumps to address 0 when it is first resumed. A creation does not check the
 * function. */
static bool called_null(const siginfo_t *info, ucontext_t *context, const void *running)
{
	char *sp = weft__context_sp(context);
	const void *from = NULL;

	if (info->si_code <= 0 || info->si_addr || weft__context_pc(context) || !running ||
	    weft__os_read(&from, sp, sizeof from) < sizeof from || !weft__owner_lacks_function(running, from) ||
	    WEFT_CANARY(calls_of_null_are_foreign))
		return false;
	weft__context_call(context, weft__owner_die_no_function, (void *)running, sp, NULL);
	return true;
}

/* In debug builds a resume checks the pointer. Here the code around the fault distinguishes a resume from other uses of
 * NULL. */
static bool resumed_null(const siginfo_t *info, const ucontext_t *context)
{
	unsigned char code[2 * WEFT__CODE_AROUND];
	const char *pc = weft__context_pc(context);

	return info->si_code > 0 && (uintptr_t)info->si_addr == weft__owner_read_first &&
	       weft__is_resume(code, weft__os_read(code, pc - WEFT__CODE_AROUND, sizeof code));
}

/* Like resumed_null, for a resumption that is NULL. */
static bool used_null(const siginfo_t *info, ucontext_t *context)
{
	unsigned char code[WEFT__CODE_OF_USE];

	if (info->si_code <= 0 || info->si_addr ||
	    !weft__is_use(code, weft__os_read(code, weft__context_pc(context), sizeof code), weft__owner_id_at,
			  weft__owner_serial_at))
		return false;
	weft__context_call(context, weft__owner_die_no_resumption, NULL, weft__context_sp(context), NULL);
	return true;
}

static bool overflowed_alt_stack(const siginfo_t *info)
{
	struct weft__thread *thread = weft__tls_thread;
	struct weft__line line;

	if (!thread || info->si_code <= 0 || !weft__os_alt_stack_guards(thread->alt_stack, info->si_addr))
		return false;
	weft__line_begin(&line);
	weft__line_text(&line, "a signal handler overflowed the thread's alternate signal stack of ");
	weft__line_bytes(&line, WEFT__ALT_STACK);
	weft__line_text(&line, ": let it use less, or give the thread a larger one by sigaltstack before its first ");
	weft__line_text(&line, "coroutine");
	weft__line_write(&line);
	return true;
}

static bool reported_above(const char *address)
{
	const struct weft__fault_above *above = atomic_load(&weft__fault_above);

	return above && above->reports(address);
}

/* Another thread is replacing the probe. */
static bool trapped(const siginfo_t *info, ucontext_t *context)
{
	void *to = NULL;

	if (info->si_code == SI_KERNEL && weft__has_probes() && WEFT_NO_CANARY(traps_are_foreign))
		to = weft__probe_trapped(weft__context_pc(context));
	if (to)
		weft__context_jump(context, to);
	return to;
}

static enum answer decide(siginfo_t *info, void *context)
{
	struct weft__slot *slot = info->si_code > 0 ? weft__arena_find(info->si_addr) : NULL;
	const struct weft__slot *frames;
	const void *running = weft__owner_running(weft__context_sp(context), &frames);

	if (trapped(info, context))
		return DONE;
	if (info->si_code > 0 && frames && weft__is_callers(frames) && weft__callers_closed(frames, info->si_addr))
		slot = (struct weft__slot *)frames;
	/* Before stepped_over: an activity's stacks have guards outside of the arena, and `frames` is their group's. */
	if (info->si_code > 0 && !slot && reported_above(info->si_addr))
		return REPORTED;
	if (info->si_code > 0 && frames != slot && stepped_over(frames, info->si_addr, context)) {
		weft__report_overflow(frames, running, info->si_addr);
		return REPORTED;
	}
	if (lacked_room(info, frames, context)) {
		report_no_room(frames, running);
		return REPORTED;
	}
	if (slot)
		return answer(slot, info->si_addr, context);
	if (resumed_deleted(info, context) || called_null(info, context, running) || used_null(info, context))
		return DONE;
	if (resumed_null(info, context)) /* a handler of the program's may still recover */
		weft__owner_report_null();
	return overflowed_alt_stack(info) ? REPORTED : NOT_OURS;
}

static void on_fault(int level, int signal, siginfo_t *info, void *context)
{
	int saved = errno;
	enum answer result = decide(info, context);

	if (result == REPORTED)
		die_by_default(signal, info);
	else if (result == NOT_OURS)
		hand_on(level, signal, info, context);
	errno = saved;
}

bool weft__fault_handle(int number, siginfo_t *info, void *context)
{
	int saved = errno;
	enum answer result = decide(info, context);

	if (result == REPORTED)
		die_by_default(number, info);
	errno = saved;
	return result != NOT_OURS;
}

/* ---- staying the first handler that is called ------------------------------------------------------------------- */

static void first(int signal, siginfo_t *info, void *context)
{
	on_fault(0, signal, info, context);
}

static void second(int signal, siginfo_t *info, void *context)
{
	on_fault(1, signal, info, context);
}

static void third(int signal, siginfo_t *info, void *context)
{
	on_fault(2, signal, info, context);
}

typedef void handler_t(int, siginfo_t *, void *);

static handler_t *const handlers[LEVELS] = {first, second, third};
static atomic_int level; /* the highest installed level of handlers of SIGSEGV */
static atomic_bool installed;

static void install(int number, handler_t *handler)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	sigemptyset(&action.sa_mask);
	sigaction(number, &action, NULL);
}

/* The level of a handler of the library, -1 for all other handlers. */
static int level_of(const struct sigaction *action)
{
	for (int i = 0; i < LEVELS; i++)
		if (action->sa_flags & SA_SIGINFO && action->sa_sigaction == handlers[i])
			return i;
	return -1;
}

static bool same(const struct sigaction *a, const struct sigaction *b)
{
	return a->sa_flags == b->sa_flags &&
	       a->sa_handler == b->sa_handler; /* which share their memory with sa_sigaction */
}

/* The level of the library's handler that must precede `theirs`: an old level if it preceded `theirs` before. -1: none
 * is left. */
static int level_before(const struct sigaction *theirs)
{
	int highest = atomic_load(&level);
	struct sigaction known;

	for (int i = 0; i <= highest; i++) {
		read_previous(i, SIGSEGV, &known);
		if (same(&known, theirs) && (i || is_none(theirs)))
			return i;
	}
	if (highest + 1 == LEVELS)
		return -1;
	write_previous(highest + 1, SIGSEGV, theirs);
	atomic_store(&level, highest + 1);
	return highest + 1;
}

static void report_replaced(void)
{
	static atomic_flag reported = ATOMIC_FLAG_INIT;
	struct weft__line line;

	if (atomic_flag_test_and_set(&reported))
		return;
	weft__line_begin(&line);
	weft__line_text(&line,
			"another handler of SIGSEGV replaced Weft's: stacks of commit and mmu cannot grow, and ");
	weft__line_text(&line, "overflows are not reported; install handlers of SIGSEGV with weft_sigaction, or call ");
	weft__line_text(&line, "weft_handle_fault in them");
	weft__line_write(&line);
}

/* The process in which a thread is installing a handler, else 0. In the child of a concurrent fork the value names the
 * parent, so no thread of the child is installing. */
static atomic_int installing;

static bool begin_to_install(void)
{
	int self = getpid(), other = atomic_load(&installing);

	return (!other || (other != self && !WEFT_CANARY(waits_for_lost_threads))) &&
	       atomic_compare_exchange_strong(&installing, &other, self);
}

static void stay_in_front(void)
{
	struct sigaction now;
	int before;

	if (sigaction(SIGSEGV, NULL, &now) || level_of(&now) >= 0 || !begin_to_install())
		return;
	before = level_before(&now);
	if (before < 0)
		report_replaced();
	else
		install(SIGSEGV, handlers[before]);
	atomic_store(&installing, 0);
}

void weft__fault_ready(struct weft__thread *thread)
{
	weft__os_unblock_faults();
	(void)weft__os_alt_stack_enter(&thread->alt_stack);
	stay_in_front();
}

/* A handler that runs on the interrupted stack may need more stack. */
static void unblock_in_handlers(void)
{
	struct sigaction action;

	for (int number = 1; number < NSIG; number++) {
		if (sigaction(number, NULL, &action) || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN ||
		    action.sa_flags & SA_ONSTACK ||
		    !(sigismember(&action.sa_mask, SIGSEGV) || sigismember(&action.sa_mask, SIGBUS)))
			continue;
		sigdelset(&action.sa_mask, SIGSEGV);
		sigdelset(&action.sa_mask, SIGBUS);
		sigaction(number, &action, NULL);
	}
}

void weft__fault_install(void)
{
	struct sigaction action;

	unblock_in_handlers();
	/* The handler that was there before must be known before a fault can come. In the child of a fork that
	 * interrupts this, the library's handler is installed already. */
	for (int i = 0; i < 2; i++) {
		if (sigaction(numbers[i], NULL, &action) || level_of(&action) >= 0)
			continue;
		write_previous(0, numbers[i], &action);
		install(numbers[i], first);
	}
	atomic_store(&installed, true);
}

int weft__fault_sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction now;
	int at;

	if (!atomic_load(&installed) || !(number == SIGSEGV || number == SIGBUS))
		return sigaction(number, action, old);
	if (number == SIGSEGV)
		stay_in_front();
	sigaction(number, NULL, &now);
	at = level_of(&now);
	if (at < 0) /* there are more handlers than levels */
		return sigaction(number, action, old);
	if (old)
		read_previous(at, number, old);
	if (action)
		write_previous(at, number, action);
	return 0;
}

void weft__fault_stats(weft_policy_t policy, weft_stack_stats_t *stats)
{
	if (weft__policies[policy]->linked)
		stats->probes = atomic_load_explicit(&probes, memory_order_relaxed);
	if (!weft__policies[policy]->closed || weft__policies[policy]->linked)
		return;
	stats->faults = atomic_load_explicit(&faults, memory_order_relaxed);
	if (weft__fault_failures)
		stats->failures = weft__fault_failures();
}
