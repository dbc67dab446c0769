/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Signals that programs block, handlers that they install over Weft's, alternate stacks that they disable: stacks grow
 * nevertheless, and overflows are reported. Each scenario is a process. Coroutines have the default policy, so that
 * WEFT_STACK chooses. "mmu" needs this file compiled for it, with INSTRUMENTED: then sigaction is weft_sigaction, and a
 * prologue's store finds the end of the alternate stack while the kernel has no room left there for a signal.
 */
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <weft/thread.h>

#include "scenario.h"
#include "stack/buffers.h"
#include "stack/copy.h"

enum { KB = 1024 };

static weft_coro_t *make(weft_fn_t *fn, size_t argument)
{
	return make_on(WEFT_DEFAULT_POLICY, 256 * KB, fn, (void *)argument);
}

/* On a stack that is closed at first. */
static void grow(void)
{
	weft_coro_t *k = make(uses_stack, 150 * KB);

	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
	weft_stack_trim();
}

static void on_thread(void *(*start)(void *))
{
	pthread_t thread;

	REQUIRE(!pthread_create(&thread, NULL, start, NULL));
	pthread_join(thread, NULL);
}

static void block_all(void)
{
	sigset_t all;

	sigfillset(&all);
	REQUIRE(!pthread_sigmask(SIG_BLOCK, &all, NULL));
}

/* ---- blocked signals ------------------------------------------------------------------------------------------ */

static void blocked_before(void)
{
	block_all();
	grow();
}

static void *grows_on_thread(void *argument)
{
	grow();
	return argument;
}

static void blocked_in_worker(void)
{
	grow();
	block_all();
	on_thread(grows_on_thread);
}

static void *resumes_on_thread(void *argument);
static weft_coro_t *migrated;

static void *resumes_on_thread(void *argument)
{
	REQUIRE(weft_returned(resume(migrated)));
	return argument;
}

static void blocked_where_resumed(void)
{
	migrated = make(uses_stack, 150 * KB);
	block_all();
	on_thread(resumes_on_thread);
}

/* Noticed when the library next calls the kernel. */
static void blocked_later(void)
{
	grow();
	block_all();
	grow();
}

static void blocked_and_overflows(void)
{
	block_all();
	resume(make_on(WEFT_FIXED, 64 * KB, uses_stack, (void *)(200ul * KB)));
}

static void uses_stack_in_handler(int number)
{
	(void)number;
	use_stack(150 * KB);
}

static void *raises(void *argument)
{
	raise(SIGUSR1); /* the handler runs on this stack */
	return argument;
}

static struct sigaction blocking_all(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = uses_stack_in_handler;
	sigfillset(&action.sa_mask);
	return action;
}

#ifndef INSTRUMENTED
static void full_mask_before(void)
{
	struct sigaction action = blocking_all();

	REQUIRE(!(sigaction)(SIGUSR1, &action, NULL));
	REQUIRE(weft_returned(resume(make_on(WEFT_COMMIT, 256 * KB, raises, NULL))));
	REQUIRE(!(sigaction)(SIGUSR1, NULL, &action));
	REQUIRE(action.sa_handler == uses_stack_in_handler && sigismember(&action.sa_mask, SIGTERM));
}
#endif

/* weft_sigaction makes its handlers run on the alternate stack, of 64 KiB; here only the mask is checked. */
static void full_mask_after(void)
{
	struct sigaction action = blocking_all();

	grow();
	REQUIRE(!weft_sigaction(SIGUSR1, &action, NULL));
	REQUIRE(!(sigaction)(SIGUSR1, NULL, &action));
	REQUIRE(!sigismember(&action.sa_mask, SIGSEGV) && !sigismember(&action.sa_mask, SIGBUS));
	REQUIRE(sigismember(&action.sa_mask, SIGTERM) && action.sa_flags & SA_ONSTACK);
}

#ifndef INSTRUMENTED
static pid_t self;

/* `left` bytes are between this frame and the end of the open part. */
static void *raises_near_the_end(void *left)
{
	char *open = (char *)((uintptr_t)weft_current() & ~(uintptr_t)(4 * KB - 1)) - 4 * KB;
	volatile char *frame = __builtin_alloca((size_t)((char *)__builtin_frame_address(0) - open) - (size_t)left);
	long result;

	frame[0] = 1;
	/* No function call, because it might need the room. */
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"((long)SYS_tgkill), "D"((long)self), "S"((long)self), "d"((long)SIGUSR1)
			 : "rcx", "r11", "memory");
	return result ? NULL : left;
}

static void does_nothing(int number)
{
	(void)number;
}

static void no_room_for_a_signal(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = does_nothing;
	REQUIRE(!(sigaction)(SIGUSR1, &action, NULL));
	self = getpid();
	resume(make(raises_near_the_end, 600));
}

static void room_by_weft_sigaction(void)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_handler = does_nothing;
	REQUIRE(!weft_sigaction(SIGUSR1, &action, NULL));
	self = getpid();
	REQUIRE(weft_returned(resume(make(raises_near_the_end, 600))));
}
#endif

/* ---- handlers of SIGSEGV -------------------------------------------------------------------------------------- */

static volatile int *const nowhere = (volatile int *)0x1230;
static volatile int handled;
static sigjmp_buf back;

static void jumps_back(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	handled += info->si_addr == (void *)nowhere;
	siglongjmp(back, 1);
}

/* doc: begin handler */
static void asks_first(int number, siginfo_t *info, void *context)
{
	if (weft_handle_fault(number, info, context))
		return;
	jumps_back(number, info, context); /* the program's own action */
}
/* doc: end */

static void install(void (*handler)(int, siginfo_t *, void *), struct sigaction *old)
{
	struct sigaction action;

	memset(&action, 0, sizeof action);
	action.sa_sigaction = handler;
	action.sa_flags = SA_SIGINFO | SA_ONSTACK;
	REQUIRE(!(sigaction)(SIGSEGV, &action, old));
}

/* The program's handler gets faults that do not concern Weft. */
static void fault_once(void)
{
	int before = handled;

	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	REQUIRE(handled == before + 1);
}

static void handler_asks_first(void)
{
	weft_coro_t *k = make(uses_stack, 150 * KB);

	install(asks_first, NULL);
	REQUIRE(weft_returned(resume(k)));
	fault_once();
	grow();
	fault_once();
}

static void handler_asks_first_overflow(void)
{
	weft_coro_t *k = make_on(WEFT_FIXED, 64 * KB, uses_stack, (void *)(200ul * KB));

	install(asks_first, NULL);
	resume(k);
}

static void handler_over_ours(void)
{
	grow();
	install(jumps_back, NULL);
	grow();
	fault_once();
	grow();
}

static struct sigaction replaced;

static void hands_on(int number, siginfo_t *info, void *context)
{
	handled++;
	replaced.sa_sigaction(number, info, context);
}

/* A handler forwards to Weft's handler, which forwards to an earlier handler: no cycle. */
static void handlers_between(void)
{
	install(jumps_back, NULL);
	grow();
	install(hands_on, &replaced);
	grow();
	handled = 0;
	if (!sigsetjmp(back, 1))
		*nowhere = 1;
	REQUIRE(handled == 2);
	grow();
}

#ifndef INSTRUMENTED
/* Installed twice, so that the handler to which it forwards calls it again. */
static void handlers_in_a_circle(void)
{
	install(hands_on, &replaced);
	grow();
	install(hands_on, &replaced);
	grow();
	install(hands_on, &replaced);
	*nowhere = 1;
}
#endif

static void default_over_ours(void)
{
	grow();
	signal(SIGSEGV, SIG_DFL);
	grow();
	*nowhere = 1;
}

static void jumps_back_too(int number, siginfo_t *info, void *context)
{
	jumps_back(number, info, context);
}

static void jumps_back_as_well(int number, siginfo_t *info, void *context)
{
	jumps_back(number, info, context);
}

/* Temporarily, and repeatedly. */
static void handlers_come_and_go(void)
{
	struct sigaction old;

	grow();
	for (int i = 0; i < 10; i++) {
		install(i % 2 ? jumps_back : jumps_back_too, &old);
		fault_once();
		grow();
		fault_once();
		REQUIRE(!(sigaction)(SIGSEGV, &old, NULL));
		grow();
	}
}

#ifndef INSTRUMENTED
static void too_many_handlers(void)
{
	grow();
	install(jumps_back, NULL);
	grow();
	install(jumps_back_too, NULL);
	grow();
	install(jumps_back_as_well, NULL);
	weft_delete(make(uses_stack, 0));
	weft_delete(make_on(WEFT_FIXED, 0, uses_stack, NULL));
}
#endif

static void handler_behind_ours(void)
{
	struct sigaction action, old;

	grow();
	memset(&action, 0, sizeof action);
	action.sa_sigaction = jumps_back;
	action.sa_flags = SA_SIGINFO;
	REQUIRE(!weft_sigaction(SIGSEGV, &action, &old));
	REQUIRE(old.sa_handler == SIG_DFL);
	grow();
	fault_once();
	REQUIRE(!weft_sigaction(SIGSEGV, NULL, &old));
	REQUIRE(old.sa_sigaction == jumps_back);
	REQUIRE(weft_signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	grow();
	*nowhere = 1;
}

/* ---- the alternate stack -------------------------------------------------------------------------------------- */

static void disable(void)
{
	const stack_t none = {.ss_flags = SS_DISABLE};

	REQUIRE(!sigaltstack(&none, NULL));
}

static void no_alternate_stack(void)
{
	grow();
	disable();
	grow();
}

static void *disables(void *argument)
{
	char theirs[64 * KB];
	const stack_t stack = {.ss_sp = theirs, .ss_size = sizeof theirs};

	REQUIRE(!sigaltstack(&stack, NULL));
	grow();
	disable();
	grow();
	return argument;
}

static void theirs_taken_away(void)
{
	on_thread(disables);
	grow();
}

#ifndef INSTRUMENTED
static void uses_much(int number)
{
	(void)number;
	use_stack(200 * KB);
}

static void handler_overflows(void)
{
	struct sigaction action;

	grow();
	memset(&action, 0, sizeof action);
	action.sa_handler = uses_much;
	action.sa_flags = SA_ONSTACK;
	REQUIRE(!(sigaction)(SIGUSR1, &action, NULL));
	raise(SIGUSR1);
}
#endif

/* ---- handlers that make coroutines ---------------------------------------------------------------------------- */

#ifndef INSTRUMENTED
static volatile sig_atomic_t armed;

/* The signal arrives while the library is in a system call: in its first call, or under a lock. */
static void come(void)
{
	if (armed) {
		armed = 0;
		alarm(10); /* for a library that deadlocks with itself */
		raise(SIGUSR1);
	}
}

int madvise(void *start, size_t bytes, int advice)
{
	come();
	return (int)syscall(SYS_madvise, start, bytes, advice);
}

void *mmap(void *start, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	come();
	return (void *)syscall(SYS_mmap, start, bytes, protection, flags, fd, offset);
}

static void makes_one(int number)
{
	(void)number;
	weft_delete(weft_create(uses_stack, NULL));
}

static void made_in_the_first_call(void)
{
	signal(SIGUSR1, makes_one);
	armed = 1;
	grow();
}

static void made_under_a_lock(void)
{
	grow();
	signal(SIGUSR1, makes_one);
	armed = 1;
	make_on(WEFT_COPY, 128 * KB, uses_stack, NULL);
	make_on(WEFT_FIXED, 128 * KB, uses_stack, NULL);
	weft_stack_trim();
}

static void trims_regions(int number)
{
	(void)number;
	(void)weft__regions_trim(weft__tls_thread);
}

static void trims_buffers(int number)
{
	(void)number;
	(void)weft__buffers_trim();
}

static void trims_blocks(int number)
{
	(void)number;
	(void)weft__blocks_trim();
}

/* Each holds its file's lock at its first system call. */
static void trimmed_while_trimming(void (*trim)(int))
{
	weft_coro_t *k = make_on(WEFT_COPY, 128 * KB, uses_stack, (void *)(64ul * KB));

	REQUIRE(weft_returned(resume(k)));
	weft_delete(k);
	signal(SIGUSR1, trim);
	armed = 1;
	trim(0);
}

static void regions_trimmed(void)
{
	trimmed_while_trimming(trims_regions);
}

static void buffers_trimmed(void)
{
	trimmed_while_trimming(trims_buffers);
}

static void blocks_trimmed(void)
{
	trimmed_while_trimming(trims_blocks);
}

/* Only debug builds of the library notice this. */
static void made_on_alternate_stack(void)
{
	grow();
	weft_signal(SIGUSR1, makes_one);
	raise(SIGUSR1);
#if !WEFT_DEBUG
	fputs("weft: coroutines cannot be made, ended or counted in a signal handler", stderr);
	abort();
#endif
}
#endif

static const struct scenario scenarios[] = {
    {"all signals blocked before", blocked_before, 0, NULL},
    {"all signals blocked in a worker", blocked_in_worker, 0, NULL},
    {"all signals blocked where a coroutine of another thread is resumed", blocked_where_resumed, 0, NULL},
    {"all signals blocked later", blocked_later, 0, NULL},
    {"all signals blocked, overflow", blocked_and_overflows, SIGSEGV,
     "weft: stack overflow in coroutine \"subject\" (#1)"},
#ifndef INSTRUMENTED
    {"a handler that blocks all signals, installed before", full_mask_before, 0, NULL},
    {"a handler for which a stack has no room", no_room_for_a_signal, SIGSEGV,
     "weft: a signal came in coroutine \"subject\" (#1), and its stack had no room for the handler: commit, 256 KiB "
     "reserved; install handlers by weft_sigaction, or with SA_ONSTACK\n"},
    {"the same, by weft_sigaction", room_by_weft_sigaction, 0, NULL},
#endif
    {"a handler that blocks all signals, by weft_sigaction", full_mask_after, 0, NULL},
    {"a handler of SIGSEGV that calls weft_handle_fault", handler_asks_first, 0, NULL},
    {"a handler of SIGSEGV that calls weft_handle_fault, overflow", handler_asks_first_overflow, SIGSEGV,
     "weft: stack overflow in coroutine \"subject\" (#1)"},
    {"a handler of SIGSEGV that knows nothing of ours", handler_over_ours, 0, NULL},
    {"a handler of SIGSEGV that hands on to ours", handlers_between, 0, NULL},
#ifndef INSTRUMENTED
    {"handlers of SIGSEGV in a circle", handlers_in_a_circle, SIGSEGV, NULL},
#endif
    {"SIGSEGV set to its default", default_over_ours, SIGSEGV, NULL},
    {"handlers of SIGSEGV that come and go", handlers_come_and_go, 0, NULL},
#ifndef INSTRUMENTED
    {"too many handlers of SIGSEGV", too_many_handlers, 0,
     "weft: another handler of SIGSEGV replaced Weft's: stacks of commit and mmu cannot grow, and overflows are not "
     "reported; install handlers of SIGSEGV with weft_sigaction, or call weft_handle_fault in them\n"},
#endif
    {"a handler of SIGSEGV by weft_sigaction", handler_behind_ours, SIGSEGV, NULL},
    {"the alternate stack disabled", no_alternate_stack, 0, NULL},
    {"a thread's own alternate stack disabled", theirs_taken_away, 0, NULL},
#ifndef INSTRUMENTED
    {"a handler overflows the alternate stack", handler_overflows, SIGSEGV,
     "weft: a signal handler overflowed the thread's alternate signal stack of 64 KiB: let it use less, or give the "
     "thread "
     "a larger one by sigaltstack before its first coroutine\n"},
    {"a coroutine made in a handler that interrupts the first one's making", made_in_the_first_call, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler: let the handler set a flag, and do it "
     "where "
     "the program looks at the flag\n"},
    {"a coroutine made in a handler that interrupts another one's making", made_under_a_lock, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler: let the handler set a flag, and do it "
     "where "
     "the program looks at the flag\n"},
    {"copied stacks trimmed in a handler that interrupts that", regions_trimmed, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler"},
    {"buffers trimmed in a handler that interrupts that", buffers_trimmed, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler"},
    {"blocks of heap trimmed in a handler that interrupts that", blocks_trimmed, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler"},
    {"a coroutine made in a handler", made_on_alternate_stack, SIGABRT,
     "weft: coroutines cannot be made, ended or counted in a signal handler"},
#endif
};

int main(int count, char **arguments)
{
	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
