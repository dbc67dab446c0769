/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/sched.h: tasks. A task is a coroutine that a runtime resumes, on whichever of its worker threads has time.
 *
 *   static void *child(void *number)
 *   {
 *           weft_sleep(1000000);
 *           *(int *)number *= 2;
 *           return NULL;
 *   }
 *
 *   static void *parent(void *unused)
 *   {
 *           int numbers[2] = {1, 2};
 *
 *           WEFT_SCOPE(scope);
 *           weft_scope_spawn(&scope, child, &numbers[0]);
 *           weft_scope_spawn(&scope, child, &numbers[1]);
 *           weft_scope_wait(&scope);
 *           return unused;
 *   }
 *
 *   weft_rt_run(NULL, parent, NULL, NULL);
 *
 * Design
 *  1. Whatever a task asks of its runtime is one of four effects: spawn, yield, wait, now. The functions below perform
 *     them. A handler between a task and its runtime can log, limit, redirect or replace each of them, and a program
 *     may handle all four: then it is a scheduler, and every object of weft/sync.h works under it.
 *  2. A wait is a *waiter*, a record in the frame of whoever waits. Objects keep waiters in their queues. Whoever wants
 *     to end a wait (an object, a timer, a cancellation) claims its waiter first; exactly one of them succeeds, so that
 *     nothing handed over is lost.
 *  3. Plain threads may wait on the same objects: without a handler `wait` blocks the thread.
 *  4. A task belongs to a scope, and a scope ends after its tasks. The first that fails cancels the others.
 *  5. A cancelled task goes on with the exception weft_cancelled where it waits: what it deferred runs, and in C++
 *     destructors do.
 *  6. The same program runs under weft_simulate: one thread, virtual time, an order of tasks drawn from a seed.
 *  7. Operations that need not wait give way after 128 to 256 of them, and look for cancellation: see weft/sync.h. Here
 *     joining, weft_scope_wait and weft_task_is_cancelled do, which do not fail by it.
 *  8. Functions that may suspend are inline here, because they run on the task's own stack whatever the policy; what
 *     they call in the library never suspends.
 * To reach (in one run): a yield through the scheduler in 4 bare resume+yield pairs, spawn and join in 0.12 of Go's,
 * a wait through the effect in 1.00 of a direct call.
 *
 * Thread-safety: functions may be called by any thread and any task, unless they say otherwise. None may be called in a
 * signal handler. Source of the ideas: effects as the scheduler's interface, OCaml's Eio; scopes, libdill and Trio;
 * the run queue, Go; claims, Concurrent ML.
 */
#ifndef WEFT_SCHED_H
#define WEFT_SCHED_H

#if !defined(__clang__)
#pragma GCC system_header
#endif

#include <errno.h>
#include <weft/defer.h>
#include <weft/effect.h>

WEFT_EXTERN_C_BEGIN

struct weft__task;
struct weft__rt;
struct weft__wheel;
struct weft__entry;
typedef struct weft_waiter weft_waiter_t;
typedef struct weft_scope weft_scope_t;

/** No deadline. */
#define WEFT_NEVER UINT64_MAX

/* ---- running ---------------------------------------------------------------------------------------------------- */

/** More threads would only be in each other's way. */
enum { WEFT_WORKERS_MOST = 4096 };

/** How a runtime is to be. Zero-initialised: all defaults. Only read during the call. */
typedef struct weft_rt_config {
	unsigned workers; /**< threads that run tasks; 0: one for each processor that this thread may
				  use, or fewer by the quota of its control groups (cpu.max) */
	unsigned helpers; /**< threads for weft_blocking at most; 0: 64 */
	weft_attr_t task; /**< the default for tasks: policy, stack_size, flags; memory is for one task, and an error
				  here (-EINVAL). A policy that copies stacks serves coroutines only: overcommit takes
				  its place */
	int dump_signal;  /**< a signal, such as SIGQUIT, upon which weft_rt_dump is written to standard error, also
				  while all workers are busy; 0: none, or with WEFT_DUMP=1 in the environment SIGQUIT */
	uint64_t stuck_after; /**< nanoseconds: a task that has run for so long without a wait or a yield is named on
				  standard error, once; 0: never, or the milliseconds that the environment's WEFT_STUCK
				  says */
	struct weft_rt_stats *stats; /**< weft_rt_run: written when all tasks have ended; NULL: not wanted */
	uint64_t steps;	       /**< weft_simulate: a run is a livelock after so many turns without a moment at which
				  every task waits; 0: a million */
	const uint32_t *order; /**< weft_simulate: the choices to take, before the seed decides; NULL: none */
	size_t choices;	       /**< their number */
	uint64_t turns;	       /**< weft_simulate: a run is a livelock after so many turns; 0: a hundred million */
	uint64_t time;	       /**< weft_simulate: a run is a livelock after so many nanoseconds of virtual time; 0:
				  after an hour and a hundred thousand turns; WEFT_NEVER: no limit */
	uint64_t turn_cost;    /**< weft_simulate: the virtual nanoseconds that each turn of a task takes; 0: as the
				  seed decides, and none with `order`; WEFT_NEVER: none */
	unsigned jobs;	       /**< weft_simulate_seeds: processes that simulate at the same time; 0: one */
	/** Called by each worker's thread before its first task, with the worker's number from 0 on and worker_arg: to
	 * choose the thread's processor or priority, say. It must not wait as tasks do. NULL: nothing. Not called in a
	 * simulation, nor for weft_rt_open and the threads of weft_blocking. */
	void (*worker_begins)(unsigned worker, void *worker_arg);
	void *worker_arg;
} weft_rt_config_t;

/**
 * Run fn(arg) as a task, with all that it spawns, on threads of the runtime's own; the calling thread waits until the
 * last task has ended. Handlers around the call are not seen by the tasks.
 * @param config  NULL: all defaults
 * @param result  what fn returned; may be NULL
 * @return 0, or a negative errno: what the task failed with (weft_task_fail), -ECANCELED; and where it could not begin
 *   -ENOMEM, -EAGAIN  no memory, no more threads
 *   -EINVAL           an unknown policy, flag or signal; more than WEFT_WORKERS_MOST workers; fn is NULL
 *   -EDEADLK          every task waited, no timer was armed, and the process had no other thread that could have woken
 *                     one. A report on standard error names each task, what it waited for, where, and where it was
 *                     made; then all were cancelled. If cancelled tasks wait on (their waits are shielded, or a
 *                     cleanup waits), a second report says so, and they are abandoned: the runtime and their stacks
 *                     stay allocated. While a program has threads of its own nobody can tell
 * `dump_signal` and `stuck_after` make a thread that sees to them; an earlier handler of the signal is called too.
 * Several runtimes may run at once, in several threads; a task may run another one, and blocks its worker by that.
 * With WEFT_SIMULATE=SEED in the environment it is weft_simulate(SEED, …); with WEFT_SIMULATE=SEED+COUNT
 * weft_simulate_seeds of these seeds first, and the process ends with 1 if one fails; with WEFT_SIMULATE=order:… what
 * weft_simulate_seeds said. A task may call fork, but the child has no workers: it must call exec or _exit there. A
 * child that goes on with tasks is reported, and ends.
 */
WEFT_API WEFT__USE_RESULT int weft_rt_run(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result);

/**
 * Run the tasks in a simulation: one thread, a virtual clock, and an order of tasks that only depends on the seed. So a
 * run can be repeated, in a debugger too. Every operation of sched.h, sync.h and io.h is a place where the running task
 * may be switched. The clock advances to the next timer when no task can run, and by `turn_cost` in each turn, so that
 * under some seeds a time-out ends a wait while other tasks can run.
 *   seed % 64 = 0    the plain order, in which one real worker runs the tasks: first come, first served. Turns take no
 *                    time
 *   seed % 64 = 1    the reverse: the newest task first. Turns take no time
 *   2 to 5           a random order that rarely ends a task's turn before the task waits
 *   others, even     by random priorities of the tasks, which change at up to four random choices: probabilistic
 *                    concurrency testing (PCT). With n tasks and k choices a bug that d steps in some order bring about
 *                    is found by a seed with probability 1/(176 n (2k)^(d-1)) at least, if d <= 5 and k <= 8192. No
 *                    task is passed over more than 500 times
 *   others, odd      a random order
 * @return as weft_rt_run; also, each with a report on standard error that says the seed
 *   -EDEADLK  tasks wait, and nothing can ever wake them: the report names each, and what it waits for. They are
 *             called lost if the first task has ended, and left them behind
 *   -ELOOP    a livelock: a limit of the configuration is exceeded (`steps`, `turns`, `time`). The report says which
 *             tasks had the last turns
 * Tasks must not wait for other threads, because simulated time does not wait for them.
 */
WEFT_API WEFT__USE_RESULT int weft_simulate(uint64_t seed, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
					    void **result);

/** The finding of weft_simulate_seeds. */
typedef struct weft_finding {
	uint64_t seed;	/**< the first that failed */
	uint64_t tried; /**< seeds, that one included */
	int outcome;	/**< what weft_simulate returned, and -127 for less; or 128 + the signal that ended the
			     process */
	size_t choices; /**< switches of the failing run that are not the default choice, after shrinking */
} weft_finding_t;

/**
 * Simulate under many seeds, each in a process of its own (fork), until one fails: by a return code of weft_simulate,
 * or a signal (assert). The failing schedule is then made as plain as possible: as many choices as can be are those of
 * the task that has been ready longest.
 * @param first, count  the seeds
 * @param found         what failed, and how many were tried; may be NULL
 * @return 0 none failed; 1 one did, and a line on standard error says which and how to repeat it; or a negative errno;
 *   -EINVAL: fn is NULL
 * Must be called where no other threads run.
 */
WEFT_API WEFT__USE_RESULT int weft_simulate_seeds(uint64_t first, uint64_t count, const weft_rt_config_t *config,
						  weft_fn_t *fn, void *arg, weft_finding_t *found);

/* ---- in a loop of one's own ------------------------------------------------------------------------------------- */

/** A runtime. */
typedef struct weft__rt weft_rt_t;

/**
 * Make a runtime for a program that has a loop: it has no threads, but those of weft_blocking; tasks run when the
 * program calls weft_rt_step, and a descriptor tells it when. The idea is that of GLib's sources and libuv's backend.
 *
 *   weft_rt_open(NULL, &rt);
 *   weft_rt_spawn(rt, fn, arg, NULL);
 *   struct pollfd fds[] = {{weft_rt_fd(rt), POLLIN}, …};
 *   while (poll(fds, …) >= 0) {
 *           if (fds[0].revents)
 *                   weft_rt_step(rt, 1000000);
 *           …
 *   }
 *
 * @param config  NULL: all defaults; `workers` must be 0 or 1 (-EINVAL else)
 * @param rt      written: the runtime, owned by the caller, to be given to weft_rt_close
 * @return 0; -ENOMEM; -EMFILE, -ENFILE: no descriptor is left; -EINVAL, also if `rt` is NULL
 * weft_rt_spawn starts tasks of it, from any thread. Nothing of it may be used by a child of fork: a step there is
 * reported, and ends the child.
 */
WEFT_API WEFT__USE_RESULT int weft_rt_open(const weft_rt_config_t *config, weft_rt_t **rt);

/** Readable (for poll, select, epoll with or without EPOLLET) when a task can run; never to be read from. Valid until
 * weft_rt_close, which closes it. With WEFT_IO=io_uring the kernel may end an epoll_wait for it by EINTR, without any
 * signal. -EINVAL: the runtime is not of weft_rt_open, or NULL. */
WEFT_API int weft_rt_fd(const weft_rt_t *rt);

/**
 * Run tasks on the calling thread, until none can run or the budget is spent.
 * @param budget  nanoseconds; WEFT_NEVER: no limit; 0: one task at most. Looked at between tasks, every 0.1 ms: a task
 *                that runs on is not stopped
 * @return 1: more can run, and the descriptor is readable; 0: none now; -EBUSY: another thread, or a task of it, is in
 *   this call; -EINVAL: the runtime is not of weft_rt_open, or NULL; -ENOMEM: none for what stacks need of this
 *   thread, and no task has run
 * Any thread may call it, one at a time. Does not wait.
 */
WEFT_API int weft_rt_step(weft_rt_t *rt, uint64_t budget);

/** End a runtime of weft_rt_open. 0; -EBUSY: it has tasks (cancel them, and go on with steps), or is in a step, and
 * nothing is done; -EINVAL: it is not of weft_rt_open. NULL is allowed. */
WEFT_API int weft_rt_close(weft_rt_t *rt);

/** Cancel all tasks that belong to no scope (the first, and detached ones), and by that all others. From any thread,
 * also several times, while the runtime has a task. The last task may end by this call: then weft_rt_close, or the end
 * of weft_rt_run, waits until the call returns. Does not wait itself. NULL is allowed. */
WEFT_API void weft_rt_cancel(weft_rt_t *rt);

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* A timer of the runtime: in a wheel, under its lock. */
struct weft__timer {
	struct weft__timer *next;  /* of those that are due, or that no list had room for */
	struct weft__entry *entry; /* where it was put: see timer.c; NULL: in no list */
	uint64_t at;		   /* when, in nanoseconds of weft_now(); WEFT_NEVER: it is not to be armed */
	struct weft__wheel *wheel;
	uint8_t is_scope, firing; /* of a scope, not a waiter; its end is being carried out: atomic */
	uint32_t note;		  /* for weft/io.h: otherwise padding */
};

/* States of a waiter. Only ever added. */
enum {
	WEFT__PARKED = 1,  /* the handler of `wait` has let go of the task: who ends the wait calls `wake` */
	WEFT__CLAIMED = 2, /* somebody is to end the wait, nobody else may */
	WEFT__DONE = 4,	   /* ended before it was parked: the handler goes on at once */
	WEFT__WOKEN = 8,   /* of a thread that waits: `wake` was called, and does not touch the waiter any more */
};

/**
 * One wait. In the frame of whoever waits, from weft_waiter_init until weft_wait returns. A program that makes its own
 * objects to wait for puts waiters into its queues; a program that is a scheduler gets them as the argument of `wait`,
 * sets `wake` and `owner`, and calls weft_waiter_park.
 */
struct weft_waiter {
	uint32_t state; /* atomic */
	int result;	/* of weft_wait; written by who claims */
	/** For the handler of `wait`: called once, by any thread, when a parked wait has ended. */
	void (*wake)(weft_waiter_t *w);
	void *owner;	  /**< for the handler of `wait` */
	const char *what; /**< it waits for: "mutex" */
	void *object;
	struct weft__timer timer;
};

WEFT__INLINE void weft_waiter_init(weft_waiter_t *w, const char *what, void *object, uint64_t deadline)
{
	w->state = 0;
	w->result = 0;
	w->what = what;
	w->object = object;
	w->timer.at = deadline;
	w->timer.wheel = NULL;
	w->timer.is_scope = 0;
}

/* Not 0: several threads use tasks, or what they wait for. See src/sched/single_thread.h. */
extern WEFT_API unsigned char weft__crowd;
WEFT_API uint32_t weft__waiter_add(weft_waiter_t *w, uint32_t bits);

/* Add to a waiter's state, atomically. What it was before. */
WEFT__INLINE uint32_t weft__waiter_become(weft_waiter_t *w, uint32_t bits)
{
	if (__atomic_load_n(&weft__crowd, __ATOMIC_ACQUIRE))
		return __atomic_fetch_or(&w->state, bits, __ATOMIC_ACQ_REL);
	return weft__waiter_add(w, bits);
}

/**
 * Claim the right to end a wait.
 * @param result  what weft_wait is to return: 0 or a negative errno
 * @return true: the caller must call weft_waiter_complete, and may write through the waiter until then; false: somebody
 *   else has claimed it, and it may be gone as soon as the lock is released under which it was found
 */
WEFT__INLINE bool weft_waiter_claim(weft_waiter_t *w, int result)
{
	/* Acquire: pairs with the release of weft_waiter_park, whose `wake` the claimer calls. */
	if (__atomic_load_n(&w->state, __ATOMIC_RELAXED) & WEFT__CLAIMED ||
	    weft__waiter_become(w, WEFT__CLAIMED) & WEFT__CLAIMED)
		return false;
	w->result = result;
	return true;
}

/** End a claimed wait. The waiter may be gone when this returns. */
WEFT__INLINE void weft_waiter_complete(weft_waiter_t *w)
{
	/* Once it is parked only this call lets it go, so that no second atomic operation is needed. */
	if (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) & WEFT__PARKED ||
	    weft__waiter_become(w, WEFT__DONE) & WEFT__PARKED)
		w->wake(w);
}

/** For a handler of `wait`, when the performer is suspended and `wake` is set. False: the wait has ended already, go
 * on with the performer. True: `wake` will be called, or is being called. */
WEFT__INLINE bool weft_waiter_park(weft_waiter_t *w)
{
	return !(weft__waiter_become(w, WEFT__PARKED) & WEFT__DONE);
}

/** A select has so many cases at most: weft_select of weft/sync.h. */
enum { WEFT_CASES = 64 };

/* How weft/io.h lets a select wait for its objects. */
struct weft__awaited {
	/* Sets `status` of each object of the list. */
	void (*look)(struct weft__awaited *list);
	/* Like weft_wait, but the first object that has a status claims the waiter, too. When it returns no object will
	 * do so. -EAGAIN: the select is to begin again. */
	int (*wait)(struct weft__awaited *list, weft_waiter_t *w);
	struct weft__awaited *next;
	int index;  /* of its case */
	int status; /* 0: not yet */
};

/** What is to be spawned: the argument of `spawn`, for its handlers, which may change it. */
struct weft_spawn {
	weft_fn_t *fn;
	void *arg;
	const struct weft_task_attr *attr; /**< NULL: defaults */
	weft_scope_t *scope;		   /**< NULL: detached */
	struct weft_task *handle;	   /**< NULL: nobody will join it */
};

WEFT_EXTERN_C_END

#pragma push_macro("WEFT_NAMESPACE")
#undef WEFT_NAMESPACE
#define WEFT_NAMESPACE weft
WEFT__C_BEGIN
/**
 * What tasks ask for; a handler calls them weft_op_spawn, weft_op_yield, weft_op_wait, weft_op_now, and weft_op_sched
 * for all.
 *   spawn  start a task; 0 or a negative errno
 *   yield  let others run first; 0, or -ECANCELED
 *   wait   go on when the waiter is completed
 *   now    nanoseconds of a clock that only goes forward
 */
WEFT_FAMILY_AS(weft_op_, sched, (int, spawn, struct weft_spawn *, what), (int, yield),
	       (void, wait, weft_waiter_t *, waiter), (uint64_t, now));
/** A cancelled task goes on with this where it waits. Whoever handles it must end soon: later waits fail at once. */
WEFT_EXCEPTION_AS(weft_cancelled, cancelled);
WEFT__C_END
#pragma pop_macro("WEFT_NAMESPACE")

WEFT_EXTERN_C_BEGIN

/* The calling task was cancelled as a whole: should it be unwound, not told by a code? */
WEFT_API bool weft__unwinds(void);

WEFT_API WEFT__COLD weft_coro_t *weft__owner_above(void);

/* The first coroutine of the caller's task, whichever coroutine of the task runs, or else of its thread: the coroutine
 * that a wait suspends. It owns what the caller locks. */
WEFT__INLINE weft_coro_t *weft__owner(void)
{
	weft_coro_t *self = weft__self();

	if (weft__likely(self && self->handled == weft_handles(weft_op_sched).word) ||
	    WEFT_CANARY(coroutines_own_locks))
		return self;
	return weft__owner_above();
}

/* What a wait's result means for the caller. */
WEFT__INLINE int weft__waited(int result)
{
	if (weft__unlikely(result == -ECANCELED) && weft__unwinds())
		weft_cancelled();
	return result;
}

/* The answers of weft__turn_ends. */
enum { WEFT__TURN_GOES_ON, WEFT__TURN_YIELDS, WEFT__TURN_LOOKS };

/* Its questions. Before the effect of an operation: it may wait, and fails if its task is cancelled; it may wait, and
 * does not fail; it never waits. After the effect: others can go on. At the last two only a simulation gives way. */
enum { WEFT__MAY_WAIT, WEFT__MAY_CHECK, WEFT__NEVER_WAITS, WEFT__LETS_GO };

/* The thread has spent its operations (src/sched/turn.c). WEFT__TURN_YIELDS: the caller must yield, and then look
 * whether its task is cancelled; WEFT__TURN_LOOKS: it must only look. */
WEFT_API WEFT__COLD int weft__turn_ends(int when);
/* -ECANCELED: the operation fails, and a wait of the calling task would end so. Else 0. */
WEFT_API WEFT__COLD int weft__turn_result(bool fails);

/* Returns 0 or, for WEFT__MAY_WAIT, -ECANCELED: the operation is not to be done. */
__attribute__((cold, noinline, unused)) static int weft__give_way(int when)
{
	int end = weft__turn_ends(when);

	if (end == WEFT__TURN_YIELDS)
		(void)weft_op_yield();
	return end == WEFT__TURN_GOES_ON ? 0 : weft__waited(weft__turn_result(when == WEFT__MAY_WAIT));
}

/* Begin an operation, before it has any effect and with no lock held: the task gives way if its turn is over. `waits`:
 * with a deadline of 0 no operation does. Returns as weft__give_way. */
WEFT__INLINE int weft__begin_operation(bool waits)
{
	return weft__likely(!weft__spend_operation()) ? 0 : weft__give_way(waits ? WEFT__MAY_WAIT : WEFT__NEVER_WAITS);
}

WEFT__INLINE void weft__begin_check(void)
{
	if (weft__unlikely(weft__spend_operation()))
		(void)weft__give_way(WEFT__MAY_CHECK);
}

/* Begin an operation that never waits, but may let others go on. Returns what weft__end_release is to be given. */
WEFT__INLINE bool weft__begin_release(void)
{
	if (weft__likely(!weft__spend_operation()))
		return false;
	(void)weft__give_way(WEFT__NEVER_WAITS);
	return true;
}

WEFT__INLINE void weft__end_release(bool spent)
{
	if (weft__unlikely(spent))
		(void)weft__give_way(WEFT__LETS_GO);
}

/**
 * Wait until the waiter is completed, its deadline passes, or the task is cancelled. A waiter that is still in an
 * object's queue then must be taken out by the caller, who therefore gets all results and is never unwound.
 * @return the result that it was claimed with; -ETIMEDOUT, -ECANCELED
 */
WEFT__INLINE int weft_wait(weft_waiter_t *w)
{
	weft_op_wait(w);
	return w->result;
}

/* A broken rule of the interface: a line that says the function and the rule, then abort(). */
WEFT_API WEFT__NORETURN WEFT__COLD void weft__misused(const char *function, const char *rule);

/** Nanoseconds, as CLOCK_MONOTONIC; in a simulation its virtual time. */
WEFT__INLINE uint64_t weft_now(void)
{
	return weft_op_now();
}

/** Let others run. 0, or the result of a wait: see weft_sleep. */
WEFT__INLINE int weft_task_yield(void)
{
	return weft__waited(weft_op_yield());
}

/**
 * Wait until a time of weft_now(), or for some nanoseconds. Never shorter. Longer by some ten microseconds; where more
 * than 40 000 waits of a worker end in a second, many are ended together, half a millisecond late at most. A time that
 * has passed: others run first.
 * @return 0; -ECANCELED: a scope that the task opened was cancelled, by its deadline, a failed task, or a call; what
 *   weft_scope_wait returns says which. If the task itself was cancelled, the exception weft_cancelled is performed in
 *   place of a return. All waits end so. A thread is never cancelled.
 */
WEFT__INLINE int weft_sleep_until(uint64_t when)
{
	weft_waiter_t w;
	int result;

	weft_waiter_init(&w, "sleep", NULL, when);
	result = weft_wait(&w);
	return result == -ETIMEDOUT ? 0 : weft__waited(result);
}

WEFT__INLINE int weft_sleep(uint64_t nanoseconds)
{
	uint64_t now = weft_now();

	return weft_sleep_until(nanoseconds < WEFT_NEVER - now ? now + nanoseconds : WEFT_NEVER - 1);
}

/** A ticker's policy for ticks whose time passed before a caller waited for them. */
typedef enum {
	WEFT_TICK_BURST, /**< they come at once, one after the other: as many ticks as periods */
	WEFT_TICK_DELAY, /**< the late tick comes at once, and the next one a whole period after it */
	WEFT_TICK_SKIP,	 /**< the late tick comes at once, and the next one at its time in the first rhythm */
} weft_missed_t;

/** Ticks, a period apart. For one task or thread at a time. Private. The idea is tokio's Interval. */
typedef struct weft_ticker {
	uint64_t next, period;
	weft_missed_t missed;
} weft_ticker_t;

/** A ticker whose first tick comes after one period. It needs no call that ends it. May be used in an initializer.
 * @param period  nanoseconds; 0 counts as 1 */
WEFT__INLINE weft_ticker_t weft_ticker(uint64_t period, weft_missed_t missed)
{
	uint64_t now = weft_now();
	weft_ticker_t t;

	t.period = period ? period : 1;
	t.next = t.period < WEFT_NEVER - now ? now + t.period : WEFT_NEVER - 1;
	t.missed = missed;
	return t;
}

/** Wait for the next tick; if its time has passed already, let others run first. May suspend.
 * @return 0; -ECANCELED, as weft_sleep_until, and the tick has not come */
WEFT__INLINE int weft_ticker_wait(weft_ticker_t *t)
{
	int error = weft_sleep_until(t->next);
	uint64_t now, from;

	if (error)
		return error;
	now = weft_now();
	from = t->missed == WEFT_TICK_DELAY && now - t->next >= t->period ? now
	       : t->missed == WEFT_TICK_SKIP ? t->next + (now - t->next) / t->period * t->period
					     : t->next;
	t->next = t->period < WEFT_NEVER - from ? from + t->period : WEFT_NEVER - 1;
	return 0;
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/** What a task should be like. Zero-initialised: as the runtime's configuration says. Only read during the call. */
typedef struct weft_task_attr {
	weft_attr_t coro; /**< policy, stack_size, flags, name, user_data; memory, which is the caller's again when the
			     task has been joined, or its scope has ended */
	unsigned worker;  /**< 0: any worker; n: always the worker n - 1, modulo their number */
	unsigned flags;	  /**< WEFT_TASK_CODES, WEFT_TASK_FIRST */
} weft_task_attr_t;

enum {
	WEFT_TASK_CODES = 1, /**< once cancelled, the task's waits return -ECANCELED, and nothing is unwound */
	/** It runs at once, and who spawned it goes on, here or on another worker, when it has ended or waits: a tree
	 * of tasks then has no more of them at a time than it is deep. Only a hint; the idea is Cilk's. */
	WEFT_TASK_FIRST = 2,
};

/**
 * A task's handle: lies with whoever will join it, and must stay in place until then. A join that begins after the task
 * has ended does not use its scope. A join that began before does until it returns: only a task of the same scope, or
 * its owner, can be sure that the scope stays that long. Private.
 */
typedef struct weft_task {
	/* Under the scope's lock, until the task has ended. */
	struct weft__task *task; /* atomic; NULL: it has ended, or never began, and then `error` says why */
	weft_waiter_t *joiner;
	weft_scope_t *scope;
	void *result;
	int error;
	int index; /* of the joiner's case, if it selects: the result of its wait */
} weft_task_t;

/* For the functions below. -EPERM: no runtime resumes the caller. */
WEFT__INLINE int weft__spawn(weft_scope_t *scope, weft_task_t *handle, weft_fn_t *fn, void *arg,
			     const weft_task_attr_t *attr)
{
	struct weft_spawn what = {fn, arg, attr, scope, handle};
	int error = weft_op_spawn(&what);

	/* Behind the spawn: in a simulation the new task may run before the caller's next instruction. */
	(void)weft__begin_operation(false);
	return error;
}

/**
 * Start a task that nobody waits for but the runtime, and nothing cancels.
 * @return 0; -ENOMEM, -EDQUOT, -EAGAIN, -EINVAL, -ENOTSUP, -ENOSPC, -EBUSY as weft_create_with; -EINVAL also if fn is
 *   NULL or a flag of the attributes is unknown; -EPERM: the caller is no task
 */
WEFT__INLINE WEFT__USE_RESULT int weft_spawn_detached(weft_fn_t *fn, void *arg, const weft_task_attr_t *attr)
{
	return weft__spawn(NULL, NULL, fn, arg, attr);
}

WEFT_API void weft__cancel_task(weft_task_t *t);

/** Cancel one task: see weft_scope_cancel. Any number of times, also after its end. Does not wait. NULL: reported. */
WEFT__INLINE void weft_task_cancel(weft_task_t *t)
{
	bool spent = weft__begin_release();

	weft__cancel_task(t);
	weft__end_release(spent);
}

/** From here until the matching weft_shield_end the calling task's waits are not cancelled. Pairs nest; an end without
 * a beginning is reported. In a thread: nothing. */
WEFT_API void weft_shield_begin(void);
WEFT_API void weft_shield_end(void);

/* The joiner's side. True: `w` is to be waited for. */
WEFT_API bool weft__join_begin(weft_task_t *t, weft_waiter_t *w);
/* The wait ended early. True: the task has ended all the same. */
WEFT_API bool weft__join_end(weft_task_t *t, weft_waiter_t *w);

/**
 * Wait until a task has ended. One caller at a time: a second one is reported, and so is a task that joins itself. Who
 * joins again after the end gets the same result again. The caller may be a thread.
 * @param result  what its function returned; may be NULL
 * @param deadline  a time of weft_now(), or WEFT_NEVER; 0: do not wait at all
 * @return 0; what it failed with (weft_task_fail); -ECANCELED if it was cancelled; -ETIMEDOUT if its scope's deadline
 *   cancelled it; what starting it returned, if that failed; -EINVAL: nobody has started it. With a deadline also
 *   -ETIMEDOUT: the task still runs, and `result` is not written; join it again. A caller that is cancelled itself is
 *   told so by its next wait: a join waits for the task's end first, because the handle may lie in the caller's frame;
 *   so it cancels the task.
 */
WEFT__INLINE int weft_join_until(weft_task_t *t, void **result, uint64_t deadline)
{
	weft_waiter_t w;
	bool told = false;

	if (weft__unlikely(!t)) /* compilers know that the address of a variable is not */
		weft__misused("weft_join", "was called with NULL: it needs a handle that a task was started with");
	weft__begin_check();
	/* Acquire: pairs with the end of the task. */
	if (!deadline && __atomic_load_n(&t->task, __ATOMIC_ACQUIRE))
		return -ETIMEDOUT;
	weft_waiter_init(&w, "task", t, deadline);
	while (weft__join_begin(t, &w)) {
		if (weft_wait(&w) == 0 || weft__join_end(t, &w))
			break;
		if (w.result == -ETIMEDOUT)
			return -ETIMEDOUT;
		told = true;
		weft__cancel_task(t);
		weft_shield_begin();
		weft_waiter_init(&w, "cancelled task", t, WEFT_NEVER);
	}
	if (told)
		weft_shield_end();
	if (result)
		*result = t->result;
	return t->error;
}

WEFT__INLINE int weft_join(weft_task_t *t, void **result)
{
	return weft_join_until(t, result, WEFT_NEVER);
}

/** End the calling task; its scope is cancelled, and gets the error, if it is the first. What is deferred in the task
 * runs first. Outside of a task: reported. @param error  a negative errno; anything else counts as -EINVAL */
WEFT_API WEFT__NORETURN void weft_task_fail(int error);

/** The runtime of the calling task; NULL in a thread. Valid until its weft_rt_run returns, or weft_rt_close. */
WEFT_API weft_rt_t *weft_rt_current(void);

/** As weft_spawn_detached, from any thread; a runtime of weft_rt_run must have a task then, which somebody has to see
 * to. -EINVAL: also if there is no runtime. */
WEFT_API WEFT__USE_RESULT int weft_rt_spawn(weft_rt_t *rt, weft_fn_t *fn, void *arg, const weft_task_attr_t *attr);

WEFT_API bool weft__task_is_cancelled(void);

/** Has the calling task been cancelled, itself or by a scope that it opened? False in a thread. */
WEFT__INLINE bool weft_task_is_cancelled(void)
{
	weft__begin_check();
	return weft__task_is_cancelled();
}

WEFT_API int weft__check_cancelled(void);

/** Look for a cancellation, and neither wait nor let others run: for long computations, as pthread_testcancel. Ends as
 * a wait of the caller would: a task that was cancelled is unwound. In a shielded part, a cleanup and a thread: 0.
 * @return 0; -ECANCELED: the task has WEFT_TASK_CODES, or a scope that it opened was cancelled */
WEFT__INLINE int weft_task_check(void)
{
	return weft__waited(weft__check_cancelled());
}

/** A pointer of the calling task's own, for each key (below 4); NULL at first, and for a key that does not exist. In a
 * thread: the thread's. Not inherited: see weft_bind. */
enum { WEFT_LOCAL_KEYS = 4 };
WEFT_API void *weft_task_local(unsigned key);
/** 0; -EINVAL: there is no such key. */
WEFT_API int weft_task_set_local(unsigned key, void *value);

/* A value that is bound, in the frame of the block. */
struct weft__binding {
	const void *key;
	void *value;
	const struct weft__binding *outer; /* the innermost that was visible when this one was made */
	unsigned depth;			   /* how many there are by `outer`, this one included */
};

WEFT_API void weft__bind(struct weft__binding *b, const void *key, void *value);
WEFT_API void weft__unbind(void *binding);

/**
 * weft_bind(key, value): from here to the end of the enclosing block weft_bound(key) is `value`, in the calling task,
 * in coroutines that it runs from here, and in the tasks of scopes that it opens from here. A statement.
 *
 *   static const char user;
 *   …
 *           weft_bind(&user, &alice);
 *           WEFT_SCOPE(scope);
 *           weft_scope_spawn(&scope, serve, NULL);	in serve: weft_bound(&user) == &alice
 *
 * @param key    any address, such as that of a static variable that only the users of the value know; not read
 * @param value  a pointer, owned by the caller; what it points to must stay until the block ends
 * The block may be left in any way, as that of weft_defer. Inner blocks may bind the same key to another value.
 *
 * A task has the values that were visible where its scope was opened, whoever starts it: they stay until it has ended.
 * Values bound after the scope was opened are not visible in its tasks, and so WEFT_SCOPE belongs behind weft_bind. A
 * task without a scope (weft_spawn_detached, weft_rt_spawn, the first one) begins without any.
 *
 * A coroutine that is suspended in the block takes its values with it: its resumer does not see them, and when it is
 * resumed elsewhere, it sees those of its new resumer further out. In that case a scope that it opens in the block is
 * reported, and so is a block that ends before a scope that was opened in it.
 *
 * Costs nothing where it is not used. May be called in threads, too. Does not suspend, needs no memory but the frame's.
 * Source of the idea: Java's ScopedValue; a scope's values as in Kotlin's CoroutineScope.
 */
#define weft_bind(key, value) WEFT__COUNTER_BEGIN WEFT__BIND(weft__unbind, key, value, __COUNTER__) WEFT__COUNTER_END
#define WEFT__BIND(...) WEFT__BIND_(__VA_ARGS__)
#define WEFT__BIND_(unbind, key_, value_, number)                                                                      \
	struct weft__binding weft__binding_##number;                                                                   \
	weft__bind(&weft__binding_##number, (key_), (void *)(value_));                                                 \
	WEFT__DEFER_(weft__quick_scope_ends, unbind, &weft__binding_##number, number)

/** Returns the value that the key is bound to; NULL: the key is not bound. The call looks at each value that is bound
 * and each function that is deferred, from the caller's block outwards, until it finds the key. It does not suspend. */
WEFT_API void *weft_bound(const void *key);

/* Of sched.hpp: a place for a pointer of the calling task's; NULL in a thread. */
WEFT_API void **weft__task_locals(void);

/** The calling task's name, "" if it has none; NULL in a thread. */
WEFT_API const char *weft_task_name(void);

/* Into the helpers' queue, and back: true if the caller must yield to get there. */
WEFT_API bool weft__blocking(bool begin);
/* Out of a weft_blocking for a wait, and into it again. True: a yield gets the caller there. */
WEFT_API bool weft__blocking_pause(bool pause);
WEFT__INLINE void weft__move(bool begin)
{
	if (weft__blocking(begin))
		(void)weft_op_yield();
}

WEFT__INLINE void weft__blocking_ends(int *unused)
{
	(void)unused;
	weft__move(false);
}

/**
 * weft_blocking { … }: the block runs on a helper thread, so that what blocks in it (a call of libc's, say) holds up no
 * worker. Left by its end, by break, return or an exception. A block in a block, in a thread, or in a simulation: runs
 * where it is.
 */
#define weft_blocking                                                                                                  \
	for (int weft__once __attribute__((cleanup(weft__blocking_ends))) = (weft__move(true), 1); weft__once;         \
	     weft__once = 0)

/* ---- scopes ----------------------------------------------------------------------------------------------------- */

/** Tasks that belong together. Lies in the frame of the task (or thread) that opens it, and must be closed there; a
 * task that ends with a scope open is reported. Private. */
struct weft_scope {
	uint32_t lock; /* a spin lock: of the fields below */
	int error;     /* the first */
	uint32_t count;
	uint8_t cancelled, closed; /* a closed scope counts as cancelled, too */
	uint8_t inside;		   /* more than tasks runs in it: src/sched/pin.h */
	uint8_t reserved;	   /* it was, when it was opened: src/sched/biased_lock.h */
	struct weft__worker *home; /* atomic: it has reserved the lock */
	struct weft__task *tasks;  /* those that have not ended */
	weft_waiter_t *waiter;	   /* the owner's, waiting for the last */
	struct weft__task *owner;  /* NULL: a thread */
	weft_scope_t *outer;	   /* the owner's next */
	struct weft__timer timer;
	const struct weft__binding *values; /* what its tasks inherit: see weft_bind */
};

/**
 * Open a scope. Its owner is the calling task, which must close it. While the scope is open and cancelled, the owner's
 * waits return -ECANCELED.
 * @param deadline  a time of weft_now() at which the scope is cancelled, with -ETIMEDOUT as its error; or WEFT_NEVER.
 *                  Deadlines of scopes further out go on to count. In a thread, which cannot spawn: nothing.
 * A scope that the task has just opened, and not closed, is reported.
 */
WEFT_API void weft_scope_open(weft_scope_t *s, uint64_t deadline);

/**
 * Set or move the deadline of an open scope, also to WEFT_NEVER. A time that is over cancels the scope at once. For its
 * owner only. Does not wait.
 * @return 0; the error that the scope was cancelled with before, and nothing is done; -EPERM: another task opened it,
 *   or a thread; -EINVAL: it is closed, or NULL
 */
WEFT_API int weft_scope_set_deadline(weft_scope_t *s, uint64_t deadline);

/** WEFT_SCOPE(name): declare a scope and open it. If the block is left before weft_scope_wait has returned (by return,
 * goto, an exception, cancellation), its tasks are cancelled, and the block ends after them. */
#define WEFT_SCOPE(name) WEFT_SCOPE_UNTIL(name, WEFT_NEVER)
#define WEFT_SCOPE_UNTIL(name, deadline)                                                                               \
	weft_scope_t name;                                                                                             \
	weft_scope_open(&name, (deadline));                                                                            \
	weft_defer(weft__scope_leave, &name)

/** Start a task of this scope, by any task. 0 or a negative errno, as weft_spawn_detached; -ETIMEDOUT: the scope's
 * deadline has passed; -ECANCELED: it was cancelled otherwise; -EINVAL: it is closed, or NULL. */
WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn(weft_scope_t *s, weft_fn_t *fn, void *arg)
{
	return weft__unlikely(!s) ? -EINVAL : weft__spawn(s, NULL, fn, arg, NULL);
}

/** The same with attributes (may be NULL), and a handle (may be NULL) by which the task can be joined, and which must
 * stay until it has been, or the scope is closed. If this fails, a join returns the same error. */
WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn_with(weft_scope_t *s, weft_task_t *handle, weft_fn_t *fn, void *arg,
							const weft_task_attr_t *attr)
{
	if (weft__unlikely(!s)) {
		if (handle) {
			__builtin_memset(handle, 0, sizeof *handle);
			handle->error = -EINVAL;
		}
		return -EINVAL;
	}
	return weft__spawn(s, handle, fn, arg, attr);
}

WEFT_API void weft__cancel_scope(weft_scope_t *s, int error);

/**
 * Cancel a scope: its tasks, and waits of its owner. Tasks that wait go on at once, others when they wait next, unless
 * they are shielded. A task is told by the exception weft_cancelled; if it catches that, again at each later wait.
 * Cleanups that run because a coroutine ends early are not told: their waits go on to their end.
 * @param error  what weft_scope_wait is to return, if nothing failed before: a negative errno, usually -ECANCELED; and
 *               anything else counts as that
 * Thread-safe. A scope that is closed, or was cancelled before: nothing. NULL: reported. Does not wait.
 */
WEFT__INLINE void weft_scope_cancel(weft_scope_t *s, int error)
{
	bool spent = weft__begin_release();

	weft__cancel_scope(s, error);
	weft__end_release(spent);
}

/* Did the caller open it? */
WEFT_API bool weft__scope_is_mine(const weft_scope_t *s);
/* True: `w` is to be waited for. */
WEFT_API bool weft__scope_begin(weft_scope_t *s, weft_waiter_t *w);
WEFT_API bool weft__scope_end(weft_scope_t *s, weft_waiter_t *w);
WEFT_API int weft__scope_close(weft_scope_t *s);

/* Wait for all tasks. `told`: the owner's cancellation has been answered by cancelling them. */
WEFT__INLINE bool weft__scope_drain(weft_scope_t *s, bool told)
{
	weft_waiter_t w;

	weft_waiter_init(&w, "tasks of a scope", s, WEFT_NEVER);
	if (told)
		weft_shield_begin();
	while (weft__scope_begin(s, &w)) {
		if (weft_wait(&w) == 0 || weft__scope_end(s, &w))
			continue;
		if (!told) {
			told = true;
			weft_shield_begin();
			weft__cancel_scope(s, -ECANCELED);
		}
		weft_waiter_init(&w, "cancelled tasks of a scope", s, WEFT_NEVER);
	}
	if (told)
		weft_shield_end();
	return told;
}

/**
 * Wait until all tasks of the scope have ended, and close it. For its owner only. Again: the same result.
 * @return 0; the error of the first task that failed; what the scope was cancelled with; -ETIMEDOUT: its deadline;
 *   -EPERM: another task opened it, and nothing is done; -EINVAL: NULL
 */
WEFT__INLINE int weft_scope_wait(weft_scope_t *s)
{
	if (weft__unlikely(!s))
		return -EINVAL;
	if (!s->closed) {
		if (weft__unlikely(!weft__scope_is_mine(s)))
			return -EPERM;
		weft__begin_check();
		(void)weft__scope_drain(s, false);
		s->error = weft__scope_close(s);
	}
	return s->error;
}

/* What WEFT_SCOPE defers. */
__attribute__((unused)) static void weft__scope_leave(weft_scope_t *s)
{
	if (s->closed)
		return;
	weft__cancel_scope(s, -ECANCELED);
	(void)weft__scope_drain(s, true);
	(void)weft__scope_close(s);
}

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/** Write to a file descriptor what every task of the calling task's runtime does: its name, since when it waits, for
 * what and where, where it was made, its policy and the bytes of its stack (of its first chunk, where chunks are
 * linked); and what each worker has done. Places are functions and lines if WEFT_ADDR2LINE names addr2line, else
 * addresses that it understands, for the first 128 that differ. Looks at tasks of other workers without stopping them.
 * 0; -EPERM: the caller is no task; -ENOMEM; what write says, such as -EBADF. */
WEFT_API int weft_dump(int fd);
/** The same for any thread, while the runtime has a task. -EINVAL: there is no runtime. */
WEFT_API int weft_rt_dump(weft_rt_t *rt, int fd);

/** Counters of the calling task's runtime since it began. */
typedef struct weft_rt_stats {
	uint64_t switches, spawned, steals, parks, wakes, timers;
	unsigned workers, helpers;
	size_t live; /**< tasks now, about: others count while this is read */
} weft_rt_stats_t;
/** 0; -EPERM: the caller is no task; -EINVAL: NULL. */
WEFT_API int weft_rt_stats(weft_rt_stats_t *stats);

WEFT_EXTERN_C_END

#endif /* WEFT_SCHED_H */
