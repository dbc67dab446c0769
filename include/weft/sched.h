/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/sched.h: tasks. A task is a coroutine that a runtime resumes, on any of its worker threads that has time.
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
 *  1. A task requests everything from its runtime by four effects: spawn, yield, wait, now. The functions below perform
 *     them. A handler between a task and its runtime can log, limit, redirect or replace each of them. A program may
 *     handle all four: then it is a scheduler, and every object of weft/sync.h works under it.
 *  2. A wait is a *waiter*, a record in the frame of the waiting function. Objects keep waiters in their queues. An
 *     object, a timer or a cancellation claims a waiter before it ends the wait; exactly one claim succeeds, so that an
 *     item that is handed over is never lost.
 *  3. Plain threads may wait on the same objects: without a handler `wait` blocks the thread.
 *  4. A task belongs to a scope, and a scope ends after its tasks. The first task that fails cancels the other tasks of
 *     its scope.
 *  5. A cancelled task continues at its wait with the exception weft_cancelled: its deferred functions run, and in C++
 *     its destructors.
 *  6. The same program runs under weft_simulate: one thread, virtual time, an order of tasks drawn from a seed.
 *  7. After 128 to 256 operations that need not wait, a task yields to other tasks and checks for its cancellation: see
 *     weft/sync.h. In this header a join, weft_scope_wait and weft_task_is_cancelled may yield for this reason, but
 *     never fail for it.
 *  8. Functions that may suspend are inline here, because they must run on the task's own stack under every policy. The
 *     library functions that they call never suspend.
 * Targets, measured in one run: a yield through the scheduler costs 4 bare resume+yield pairs, a spawn and a join 0.12
 * of Go's, and a wait through the effect 1.00 of a direct call.
 *
 * Thread-safety: unless a comment says otherwise, any thread and any task may call these functions. None may be called
 * in a signal handler. Source of the ideas: effects as the scheduler's interface, OCaml's Eio; scopes, libdill and
 * Trio; the run queue, Go; claims, Concurrent ML.
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

/** A runtime. */
typedef struct weft__rt weft_rt_t;

/* ---- running ---------------------------------------------------------------------------------------------------- */

/** A runtime has at most so many workers: more threads would only slow each other down. */
enum { WEFT_WORKERS_MOST = 4096 };

/** The configuration of a runtime. Zero-initialised: all defaults. Only read during the call. */
typedef struct weft_rt_config {
	unsigned workers; /**< threads that run tasks; 0: as many as the processors that this thread may use, or fewer
			       by the quota of its control groups (cpu.max) */
	unsigned helpers; /**< threads for weft_blocking at most; 0: 64 */
	weft_attr_t task; /**< the default attributes of tasks: policy, stack_size, flags. `memory` must be NULL
			       (-EINVAL), because it would serve a single task. A policy that copies stacks serves
			       coroutines only: tasks use overcommit instead */
	int dump_signal;  /**< a signal, such as SIGQUIT, upon which weft_rt_dump is written to standard error, also
			       while all workers are busy; 0: none, or with WEFT_DUMP=1 in the environment SIGQUIT */
	uint64_t stuck_after; /**< nanoseconds: the name of a task that has run for so long without a wait or a yield is
				   written to standard error, once; 0: never, or the milliseconds in the environment
				   variable WEFT_STUCK */
	struct weft_rt_stats *stats; /**< weft_rt_run: written when all tasks have ended; NULL: not wanted */
	uint64_t steps;	       /**< weft_simulate: a run is a livelock after so many turns without a moment at which
				    every task waits; 0: a million */
	const uint32_t *order; /**< weft_simulate: the first choices of the run; after them the seed decides; NULL:
				    none */
	size_t choices;	       /**< their number */
	uint64_t turns;	       /**< weft_simulate: a run is a livelock after so many turns; 0: a hundred million */
	uint64_t time;	       /**< weft_simulate: a run is a livelock after so many nanoseconds of virtual time; 0:
				  after an hour and a hundred thousand turns; WEFT_NEVER: no limit */
	uint64_t turn_cost;    /**< weft_simulate: the virtual nanoseconds that each turn of a task takes; 0: the seed
				    decides, or none if `order` is given; WEFT_NEVER: none */
	unsigned jobs;	       /**< weft_simulate_seeds: the number of processes that simulate at the same time; 0: 1 */
	/** Each worker's thread calls this function before its first task, with the worker's number, counted from 0,
	 * and worker_arg, for instance to choose the thread's processor or priority. It must not wait as tasks do.
	 * NULL: no call. Not called in a simulation, nor for weft_rt_open and the threads of weft_blocking. */
	void (*worker_begins)(unsigned worker, void *worker_arg);
	void *worker_arg;
} weft_rt_config_t;

/**
 * Run fn(arg) as a task, with all tasks that it spawns, on threads that the runtime creates. The calling thread waits
 * until the last task has ended. Tasks do not see the handlers around this call.
 * @param config  NULL: all defaults
 * @param result  written: the value that fn returned; may be NULL
 * @return 0, or a negative errno: the error that the first task failed with (weft_task_fail), or -ECANCELED. If the
 *   first task could not begin:
 *   -ENOMEM, -EAGAIN  no memory, no more threads
 *   -EINVAL           an unknown policy, flag or signal; more than WEFT_WORKERS_MOST workers; fn is NULL
 *   -EDEADLK          every task waited, no timer was armed, and the process had no other thread that could have woken
 *                     a task. A report on standard error names each task, the object that it waited for, the place of
 *                     the wait, and the place where the object was made; then all tasks were cancelled. If cancelled
 *                     tasks still wait (their waits are shielded, or a cleanup waits), a second report says so, and
 *                     they are abandoned: the runtime and their stacks stay allocated. While a program has threads of
 *                     its own, deadlocks are not detected, because these threads may wake tasks
 * `dump_signal` and `stuck_after` create a thread that serves them. An earlier handler of the signal is called, too.
 * Several runtimes may run at once, in several threads. A task may run another runtime, which blocks the task's worker.
 * With WEFT_SIMULATE=SEED in the environment the call is weft_simulate(SEED, …). With WEFT_SIMULATE=SEED+COUNT it is
 * weft_simulate_seeds of these seeds first, and the process exits with status 1 if a seed fails. With
 * WEFT_SIMULATE=order:… the call repeats the choices that weft_simulate_seeds reported. A task may call fork, but the
 * child has no workers: it must call exec or _exit there. A child that continues with tasks is reported, and ends.
 */
WEFT_API WEFT__USE_RESULT int weft_rt_run(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result);

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/** The attributes of a task. Zero-initialised: the runtime's configuration decides. Only read during the call. */
typedef struct weft_task_attr {
	weft_attr_t coro; /**< policy, stack_size, flags, name, user_data; memory, which belongs to the caller again
			       when the task has been joined, or its scope has ended */
	unsigned worker;  /**< 0: any worker; n: always the worker n - 1, modulo the number of workers */
	unsigned flags;	  /**< WEFT_TASK_CODES, WEFT_TASK_FIRST */
} weft_task_attr_t;

/** Flags of weft_task_attr_t. */
enum {
	WEFT_TASK_CODES = 1, /**< after a cancellation the task's waits return -ECANCELED, and the task is not
				  unwound */
	/** The task runs at once. Its spawner continues, on this worker or another, when the task has ended or waits.
	 * So the tasks of a tree that exist at the same time are at most as many as the tree is deep. Only a hint; the
	 * idea is Cilk's. */
	WEFT_TASK_FIRST = 2,
};

/**
 * A task's handle. The joiner owns it, and it must stay in place until the join. A join that begins after the task has
 * ended does not use the task's scope. A join that began before uses the scope until it returns: only a task of the
 * same scope, or the scope's owner, can be sure that the scope exists that long. Private.
 */
typedef struct weft_task {
	/* Under the scope's lock, until the task has ended. */
	struct weft__task *task; /* atomic; NULL: the task has ended, or never began, and then `error` says why */
	weft_waiter_t *joiner;
	weft_scope_t *scope;
	void *result;
	int error;
	int index; /* the index of the joiner's case, if it selects: the result of its wait */
} weft_task_t;

/**
 * Start a task without a scope: only the runtime waits for it, and only weft_rt_cancel cancels it.
 * @return 0; -ENOMEM, -EDQUOT, -EAGAIN, -EINVAL, -ENOTSUP, -ENOSPC, -EBUSY as weft_create_with; -EINVAL also if fn is
 *   NULL or a flag of the attributes is unknown; -EPERM: the caller is no task
 */
WEFT__INLINE WEFT__USE_RESULT int weft_spawn_detached(weft_fn_t *fn, void *arg, const weft_task_attr_t *attr);

/** Cancel one task: see weft_scope_cancel. May be called several times, also after the task's end. Does not wait. NULL:
 * reported. */
WEFT__INLINE void weft_task_cancel(weft_task_t *t);

/** From here until the matching weft_shield_end the calling task's waits are not cancelled. Pairs nest; an end without
 * a beginning is reported. In a thread the calls do nothing. */
WEFT_API void weft_shield_begin(void);
WEFT_API void weft_shield_end(void);

/**
 * Wait until a task has ended. One caller at a time: a second caller is reported, and so is a task that joins itself. A
 * join after the end can be repeated and returns the same result. The caller may be a thread.
 * @param result    written: the value that the task's function returned; may be NULL
 * @param deadline  a time of weft_now(), or WEFT_NEVER; 0: do not wait at all
 * @return 0; the error that the task failed with (weft_task_fail); -ECANCELED if it was cancelled; -ETIMEDOUT if its
 *   scope's deadline cancelled it; the error of its spawn, if that failed; -EINVAL: nobody has started it. With a
 *   deadline also -ETIMEDOUT: the task still runs, and `result` is not written; join it again. If the caller itself is
 *   cancelled, the join cancels the task and still waits for its end, because the handle may lie in the caller's frame;
 *   the caller's next wait reports the caller's own cancellation.
 */
WEFT__INLINE int weft_join_until(weft_task_t *t, void **result, uint64_t deadline);
WEFT__INLINE int weft_join(weft_task_t *t, void **result);

/** End the calling task. Its scope is cancelled; the scope's error is this error, if no other error came before.
 * Functions that the task has deferred run first. Outside of a task: reported. @param error  a negative errno; any
 * other number counts as -EINVAL */
WEFT_API WEFT__NORETURN void weft_task_fail(int error);

/** Like weft_spawn_detached, from any thread. A runtime of weft_rt_run must have a task during the call; the caller
 * must ensure that. -EINVAL: also if there is no runtime. */
WEFT_API WEFT__USE_RESULT int weft_rt_spawn(weft_rt_t *rt, weft_fn_t *fn, void *arg, const weft_task_attr_t *attr);

/** The runtime of the calling task; NULL in a thread. Valid until its weft_rt_run returns, or weft_rt_close. */
WEFT_API weft_rt_t *weft_rt_current(void);

/** Returns true if the calling task, or a scope that it opened, has been cancelled. False in a thread. May suspend at
 * the end of a turn, as weft_task_yield. */
WEFT__INLINE bool weft_task_is_cancelled(void);

/** Check for a cancellation, like pthread_testcancel: for long computations. Neither waits nor lets other tasks run.
 * Ends as a wait of the caller would: a cancelled task is unwound. In a shielded part, a cleanup and a thread: 0.
 * @return 0; -ECANCELED: the task has WEFT_TASK_CODES, or a scope that it opened was cancelled */
WEFT__INLINE int weft_task_check(void);

/** Returns the calling task's own pointer for a key (below 4); NULL at first, and for a key that does not exist. In a
 * thread: the thread's pointer. Tasks do not inherit it: see weft_bind. */
enum { WEFT_LOCAL_KEYS = 4 };
WEFT_API void *weft_task_local(unsigned key);
/** Sets that pointer. 0; -EINVAL: the key does not exist. */
WEFT_API int weft_task_set_local(unsigned key, void *value);

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
 * @param value  a pointer, owned by the caller; the object behind it must exist until the block ends
 * The block may be left in any way, like a block with weft_defer. Inner blocks may bind the same key to another value.
 *
 * A task has the values that were visible where its scope was opened, whichever task starts it: they stay
 * until it has ended. Values bound after the scope was opened are not visible in its tasks, so WEFT_SCOPE belongs after
 * weft_bind. A task without a scope (weft_spawn_detached, weft_rt_spawn, the first task) begins without values.
 *
 * If a coroutine is suspended in the block, its values are suspended with it: its resumer does not see them. If it is
 * resumed elsewhere, it sees its own values and then those of its new resumer. In that case a scope that it opens in
 * the block is reported, and so is a block that ends before a scope that was opened in it.
 *
 * Costs nothing where it is not used. Threads may use it, too. Does not suspend, needs no memory except the frame.
 * Source of the idea: Java's ScopedValue; a scope's values as in Kotlin's CoroutineScope.
 */
#define weft_bind(key, value)                                                                                          \
	WEFT__COUNTER_BEGIN WEFT__BIND(weft__unbind, key, value, __COUNTER__)                                          \
	WEFT__COUNTER_END

/** Returns the value that the key is bound to; NULL: the key is not bound. The call searches all bound values and all
 * deferred functions, from the caller's block outwards, until it finds the key. It does not suspend. */
WEFT_API void *weft_bound(const void *key);

/** The calling task's name, "" if it has none; NULL in a thread. */
WEFT_API const char *weft_task_name(void);

/**
 * weft_blocking { … }: the block runs on a helper thread, so that code in it that blocks (a call of libc, for example)
 * does not block a worker. The block may be left by its end, by break, return or an exception. In a weft_blocking
 * block, in a thread, or in a simulation, the block runs on the current thread.
 */
#define weft_blocking                                                                                                  \
	for (int weft__once __attribute__((cleanup(weft__blocking_ends))) = (weft__move(true), 1); weft__once;         \
	     weft__once = 0)

/* ---- scopes ----------------------------------------------------------------------------------------------------- */

/* A timer of the runtime: in a wheel, under the wheel's lock. */
struct weft__timer {
	struct weft__timer *next;  /* the next in a list of timers that are due, or for which there was no memory */
	struct weft__entry *entry; /* its entry in a list: see timer.c; NULL: in no list */
	uint64_t at;		   /* its time, in nanoseconds of weft_now(); WEFT_NEVER: do not arm it */
	struct weft__wheel *wheel;
	uint8_t is_scope, firing; /* is_scope: the timer is a scope's, not a waiter's; firing: its expiry is being
				     carried out: atomic */
	uint32_t note;		  /* for weft/io.h: otherwise padding */
};

/** Tasks that belong together. A scope lies in the frame of the task (or thread) that opens it, and must be closed
 * there; a task that ends with an open scope is reported. Private. */
struct weft_scope {
	uint32_t lock; /* a spin lock, for the fields below */
	int error;     /* the first error of the scope */
	uint32_t count;
	uint8_t cancelled, closed; /* a closed scope counts as cancelled, too */
	uint8_t inside;		   /* a layer above runs more than tasks in it: src/sched/pin.h */
	uint8_t reserved;	   /* the lock was reserved when the scope was opened: src/sched/biased_lock.h */
	struct weft__worker *home; /* atomic: the worker that has reserved the lock */
	struct weft__task *tasks;  /* the tasks that have not ended */
	weft_waiter_t *waiter;	   /* the owner's waiter, while it waits for the last task */
	struct weft__task *owner;  /* NULL: a thread */
	weft_scope_t *outer;	   /* the scope that the owner opened before */
	struct weft__timer timer;
	const struct weft__binding *values; /* the bindings that its tasks inherit: see weft_bind */
};

/**
 * Open a scope. Its owner is the calling task, which must close it. While the scope is open and cancelled, the owner's
 * waits return -ECANCELED.
 * @param deadline  a time of weft_now() at which the scope is cancelled, with -ETIMEDOUT as its error; or WEFT_NEVER.
 *                  Deadlines of outer scopes stay in force. A deadline has no effect in a thread, which cannot spawn.
 * If the scope is already the task's innermost open scope, the call is reported.
 */
WEFT_API void weft_scope_open(weft_scope_t *s, uint64_t deadline);

/**
 * Set or move the deadline of an open scope, also to WEFT_NEVER. A time that has passed cancels the scope at once. Only
 * the scope's owner may call it. Does not wait.
 * @return 0; the error that the scope was cancelled with before, and nothing is done; -EPERM: another task opened it,
 *   or a thread; -EINVAL: it is closed, or NULL
 */
WEFT_API int weft_scope_set_deadline(weft_scope_t *s, uint64_t deadline);

/** WEFT_SCOPE(name): declare a scope and open it. If the block is left before weft_scope_wait has returned (by return,
 * goto, an exception, cancellation), the scope's tasks are cancelled, and the block ends after them. */
#define WEFT_SCOPE(name) WEFT_SCOPE_UNTIL(name, WEFT_NEVER)
#define WEFT_SCOPE_UNTIL(name, deadline)                                                                               \
	weft_scope_t name;                                                                                             \
	weft_scope_open(&name, (deadline));                                                                            \
	weft_defer(weft__scope_leave, &name)

/** Start a task of this scope. Any task may call it. 0 or a negative errno, as weft_spawn_detached; -ETIMEDOUT: the
 * scope's deadline has passed; -ECANCELED: it was cancelled for another reason; -EINVAL: it is closed, or NULL. */
WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn(weft_scope_t *s, weft_fn_t *fn, void *arg);

/** Like weft_scope_spawn, with attributes (may be NULL) and a handle (may be NULL). The handle serves to join the task,
 * and must stay in place until the task has been joined or the scope is closed. If the call fails, a join returns the
 * same error. */
WEFT__INLINE WEFT__USE_RESULT int weft_scope_spawn_with(weft_scope_t *s, weft_task_t *handle, weft_fn_t *fn, void *arg,
							const weft_task_attr_t *attr);

/**
 * Cancel a scope: its tasks, and waits of its owner. Tasks that wait continue at once, other tasks are cancelled when
 * they wait next, unless they are shielded. A cancelled task gets the exception weft_cancelled; if it catches the
 * exception, it gets it again at each later wait. Cleanups that run because a coroutine ends early do not get it: their
 * waits are not cancelled.
 * @param error  the value that weft_scope_wait returns, if nothing failed before: a negative errno, usually -ECANCELED;
 *               any other number counts as -ECANCELED
 * Thread-safe. If the scope is closed, or was cancelled before, the call does nothing. NULL: reported. Does not wait.
 */
WEFT__INLINE void weft_scope_cancel(weft_scope_t *s, int error);

/**
 * Wait until all tasks of the scope have ended, and close it. Only the scope's owner may call it. A second call returns
 * the same result.
 * @return 0; the error of the first task that failed; the error that the scope was cancelled with; -ETIMEDOUT: its
 *   deadline; -EPERM: another task opened it, and nothing is done; -EINVAL: NULL
 */
WEFT__INLINE int weft_scope_wait(weft_scope_t *s);

/* ---- time ---------------------------------------------------------------------------------------------------- */

/** Nanoseconds of CLOCK_MONOTONIC; in a simulation, of its virtual clock. */
WEFT__INLINE uint64_t weft_now(void);

/** Let other tasks run. 0, or the result of a wait: see weft_sleep. */
WEFT__INLINE int weft_task_yield(void);

/**
 * Wait until a time of weft_now(), or for some nanoseconds. A sleep is never shorter. It is longer by some ten
 * microseconds; if more than 40 000 waits of a worker end in a second, the worker ends many of them together, at most
 * half a millisecond late. If the time has passed already, other tasks run first.
 * @return 0; -ECANCELED: a scope that the task opened was cancelled, by its deadline, a failed task, or a call; the
 *   result of weft_scope_wait says which. If the task itself was cancelled, the exception weft_cancelled is performed
 *   in place of a return. All waits end so. A thread is never cancelled.
 */
WEFT__INLINE int weft_sleep_until(uint64_t when);
WEFT__INLINE int weft_sleep(uint64_t nanoseconds);

/** A ticker's policy for ticks whose time passed before the caller waited for them. */
typedef enum {
	WEFT_TICK_BURST, /**< the late ticks come at once, one after the other: as many ticks as periods */
	WEFT_TICK_DELAY, /**< the late tick comes at once, and the next tick a whole period after it */
	WEFT_TICK_SKIP,	 /**< the late tick comes at once, and the next tick at its time in the first rhythm */
} weft_missed_t;

/** Ticks at intervals of a period. For one task or thread at a time. Private. The idea is tokio's Interval. */
typedef struct weft_ticker {
	uint64_t next, period;
	weft_missed_t missed;
} weft_ticker_t;

/** Returns a ticker whose first tick comes after one period. The ticker needs no destructor. The call may be used in an
 * initializer.
 * @param period  nanoseconds; 0 counts as 1 */
WEFT__INLINE weft_ticker_t weft_ticker(uint64_t period, weft_missed_t missed);

/** Wait for the next tick; if its time has passed already, let other tasks run first. May suspend.
 * @return 0; -ECANCELED, as weft_sleep_until, and the tick has not come */
WEFT__INLINE int weft_ticker_wait(weft_ticker_t *t);

/* ---- a simulated run ----------------------------------------------------------------------------------------- */

/**
 * Run the tasks in a simulation: one thread, a virtual clock, and an order of tasks that depends on the seed only. So a
 * run can be repeated, in a debugger too. At every operation of sched.h, sync.h and io.h the simulator may switch from
 * the running task to another task. The clock advances to the next timer when no task can run, and by `turn_cost` in
 * each turn. So under some seeds a time-out ends a wait while other tasks can run.
 *   seed % 64 = 0    the plain order, in which one real worker runs the tasks: first come, first served. Turns take no
 *                    time
 *   seed % 64 = 1    the reverse: the newest task first. Turns take no time
 *   2 to 5           a random order that rarely ends a task's turn before the task waits
 *   other, even      by random priorities of the tasks, which change at up to four random choices: probabilistic
 *                    concurrency testing (PCT). With n tasks and k choices, a seed finds a bug that needs d steps in
 *                    some order with probability 1/(176 n (2k)^(d-1)) at least, if d <= 5 and k <= 8192. No task is
 *                    passed over more than 500 times
 *   other, odd       a random order
 * @return as weft_rt_run; also, each with a report on standard error that says the seed
 *   -EDEADLK  tasks wait, and nothing can ever wake them: the report names each task and the object that it waits for.
 *             The report calls these tasks lost if the first task has ended before them
 *   -ELOOP    a livelock: the run exceeded a limit of the configuration (`steps`, `turns`, `time`). The report says
 *             which tasks had the last turns
 * Tasks must not wait for other threads, because simulated time does not wait for them.
 */
WEFT_API WEFT__USE_RESULT int weft_simulate(uint64_t seed, const weft_rt_config_t *config, weft_fn_t *fn, void *arg,
					    void **result);

/** The result of weft_simulate_seeds. */
typedef struct weft_finding {
	uint64_t seed;	/**< the first seed that failed */
	uint64_t tried; /**< the number of seeds that were tried, the failing seed included */
	int outcome;	/**< the return value of weft_simulate, at least -127; or 128 + the signal that ended the
			     process */
	size_t choices; /**< the choices of the failing run that differ from the default choice, after shrinking */
} weft_finding_t;

/**
 * Simulate under many seeds, each in its own process (fork), until a seed fails: by a return code of weft_simulate, or
 * by a signal (assert). The failing schedule is then made as plain as possible: as many choices as possible become the
 * default choice, which is the task that has been ready longest.
 * @param first, count  the seeds
 * @param found         written: which seed failed, and how many were tried; may be NULL
 * @return 0: no seed failed; 1: a seed failed, and a line on standard error says which seed and how to repeat it; or a
 *   negative errno; -EINVAL: fn is NULL
 * Must be called where no other threads run.
 */
WEFT_API WEFT__USE_RESULT int weft_simulate_seeds(uint64_t first, uint64_t count, const weft_rt_config_t *config,
						  weft_fn_t *fn, void *arg, weft_finding_t *found);

/* ---- in a loop of one's own ------------------------------------------------------------------------------------- */

/**
 * Make a runtime for a program that has a loop. The runtime has no threads, except those of weft_blocking. Tasks run
 * when the program calls weft_rt_step, and a descriptor tells the program when to call it. The idea is that of GLib's
 * sources and libuv's backend.
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
 * @param rt      written: the runtime. The caller owns it and closes it by weft_rt_close
 * @return 0; -ENOMEM; -EMFILE, -ENFILE: no descriptor is left; -EINVAL, also if `rt` is NULL
 * Any thread may start tasks of the runtime by weft_rt_spawn. A child of fork must not use the runtime: a step there is
 * reported, and ends the child.
 */
WEFT_API WEFT__USE_RESULT int weft_rt_open(const weft_rt_config_t *config, weft_rt_t **rt);

/** Returns the runtime's descriptor. It is readable (for poll, select, epoll with or without EPOLLET) when a task can
 * run. The program must never read from it. It is valid until weft_rt_close, which closes it. With WEFT_IO=io_uring the
 * kernel may end an epoll_wait for it by EINTR, without any signal. -EINVAL: the runtime was not made by weft_rt_open,
 * or is NULL. */
WEFT_API int weft_rt_fd(const weft_rt_t *rt);

/**
 * Run tasks on the calling thread, until no task can run or the budget is spent.
 * @param budget  nanoseconds; WEFT_NEVER: no limit; 0: at most one task. The time is checked between tasks, every 0.1
 *                ms: the step does not stop a running task
 * @return 1: more tasks can run, and the descriptor is readable; 0: no task can run now; -EBUSY: another thread, or a
 *   task of the runtime, is in this call; -EINVAL: the runtime was not made by weft_rt_open, or is NULL; -ENOMEM: no
 *   memory for the data that stacks need in this thread, and no task has run
 * Any thread may call it, but only one thread at a time. Does not wait.
 */
WEFT_API int weft_rt_step(weft_rt_t *rt, uint64_t budget);

/** End a runtime that weft_rt_open made. 0; -EBUSY: the runtime has tasks (cancel them, and continue with steps), or is
 * in a step, and nothing is done; -EINVAL: weft_rt_open did not make it. NULL is allowed. */
WEFT_API int weft_rt_close(weft_rt_t *rt);

/** Cancel all tasks that belong to no scope (the first task, and detached tasks), which cancels the tasks of their
 * scopes, and so every task. May be called by any thread, also several times, while the runtime has a task. The last
 * task may end because of this call: then weft_rt_close, or the end of weft_rt_run, waits until the call returns. The
 * call itself does not wait. NULL is allowed. */
WEFT_API void weft_rt_cancel(weft_rt_t *rt);

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/**
 * A wait. It lies in the frame of the waiting function, from weft_waiter_init until weft_wait returns. A program that
 * makes its own objects to wait for puts waiters into its queues. A program that is a scheduler gets waiters as the
 * argument of `wait`, sets `wake` and `owner`, and calls weft_waiter_park.
 */
struct weft_waiter {
	uint32_t state; /* atomic */
	int result;	/* returned by weft_wait; the claimer writes it */
	/** Set by the handler of `wait`. Called once, by any thread, when a parked wait has ended. */
	void (*wake)(weft_waiter_t *w);
	void *owner;	  /**< for the handler of `wait` */
	const char *what; /**< the kind of the object: "mutex" */
	void *object;
	struct weft__timer timer;
};

WEFT__INLINE void weft_waiter_init(weft_waiter_t *w, const char *what, void *object, uint64_t deadline);

/**
 * Claim the right to end a wait.
 * @param result  the value that weft_wait will return: 0 or a negative errno
 * @return true: the caller must call weft_waiter_complete, and may write through the waiter until then; false: the wait
 *   has been claimed before. Then the waiter may cease to exist as soon as the caller releases the lock under which it
 *   found the waiter
 */
WEFT__INLINE bool weft_waiter_claim(weft_waiter_t *w, int result);

/** End a claimed wait. The waiter may have ceased to exist when this returns. */
WEFT__INLINE void weft_waiter_complete(weft_waiter_t *w);

/** For a handler of `wait`, after it has suspended the performer and set `wake`. False: the wait has ended already, and
 * the handler must resume the performer. True: `wake` will be called, or is being called. */
WEFT__INLINE bool weft_waiter_park(weft_waiter_t *w);

/** A select has at most so many cases: weft_select of weft/sync.h. */
enum { WEFT_CASES = 64 };

/** The task to spawn: the argument of `spawn`. A handler may change it. */
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
 * The effects that tasks perform. In a handler their names are weft_op_spawn, weft_op_yield, weft_op_wait and
 * weft_op_now; weft_op_sched stands for all of them.
 *   spawn  start a task; 0 or a negative errno
 *   yield  let other tasks run first; 0, or -ECANCELED
 *   wait   continue when the waiter is completed
 *   now    nanoseconds of a monotonic clock
 */
WEFT_FAMILY_AS(weft_op_, sched, (int, spawn, struct weft_spawn *, what), (int, yield),
	       (void, wait, weft_waiter_t *, waiter), (uint64_t, now));
/** A cancelled task performs this exception at its wait. Code that handles the exception must end soon: later waits
 * fail at once. */
WEFT_EXCEPTION_AS(weft_cancelled, cancelled);
WEFT__C_END
#pragma pop_macro("WEFT_NAMESPACE")

WEFT_EXTERN_C_BEGIN

/**
 * Wait until the waiter is completed, its deadline passes, or the task is cancelled. If the waiter is then still in an
 * object's queue, the caller must remove it. So that the caller can do that, weft_wait always returns and never unwinds
 * the task.
 * @return the result that the waiter was claimed with; -ETIMEDOUT, -ECANCELED
 */
WEFT__INLINE int weft_wait(weft_waiter_t *w);

/* ---- looking ---------------------------------------------------------------------------------------------------- */

/** Write the state of every task of the calling task's runtime to a file descriptor: its name; since when, for which
 * object and where it waits; where it was made; its policy; and the bytes of its stack (of its first chunk, if chunks
 * are linked). Also write each worker's counters. If WEFT_ADDR2LINE names addr2line, places are functions and lines for
 * the first 128 different addresses; otherwise they are addresses that addr2line understands. Reads tasks of other
 * workers without stopping them. 0; -EPERM: the caller is no task; -ENOMEM; an error of write, such as -EBADF. */
WEFT_API int weft_dump(int fd);
/** Like weft_dump, for any thread, while the runtime has a task. -EINVAL: there is no runtime. */
WEFT_API int weft_rt_dump(weft_rt_t *rt, int fd);

/** Counters of the calling task's runtime since its beginning. */
typedef struct weft_rt_stats {
	uint64_t switches, spawned, steals, parks, wakes, timers;
	unsigned workers, helpers;
	size_t live; /**< the number of tasks now, approximately: workers change it during the read */
} weft_rt_stats_t;
/** 0; -EPERM: the caller is no task; -EINVAL: NULL. */
WEFT_API int weft_rt_stats(weft_rt_stats_t *stats);

WEFT_EXTERN_C_END

#include <weft/detail/sched.h>

#endif /* WEFT_SCHED_H */
