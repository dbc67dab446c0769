/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations that the files of the scheduler share: tasks, workers, the runtime.
 *
 *   a task is            its owner is                          it leaves that state by
 *   ready                one run queue: a worker's slot or     a worker that takes it
 *                        ring, the shared queue, a batch
 *   running              the worker whose `current` it is      its request: yield, wait, end
 *   waiting              its waiter: the thread that claims    weft_waiter_complete, once
 *                        the waiter owns the task
 *   ended                nobody: its coroutine is deleted
 */
#ifndef WEFT_SRC_SCHED_H
#define WEFT_SRC_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <weft/sched.h>

#include "internal/signal_safe_lock.h"
#include "sched/single_thread.h"
#include "sched/event_source.h"

struct weft__worker;
struct weft__sim;

/* ---- spin locks: for a few instructions, never held across a call that may block ------------------------------- */

void weft__spin_wait(uint32_t *lock) WEFT__HIDDEN;
/* One iteration of a loop that waits for another thread. `turns` counts the iterations, from 0. */
void weft__pause(unsigned *turns) WEFT__HIDDEN;

static inline void weft__spin_lock(uint32_t *lock)
{
	uint32_t locked;

	if (weft__step_in()) {
		locked = __atomic_load_n(lock, __ATOMIC_RELAXED);
		__atomic_store_n(lock, 1, __ATOMIC_RELAXED);
		weft__step_out();
	} else {
		/* Acquire: pairs with the release of weft__spin_unlock. */
		locked = __atomic_exchange_n(lock, 1,
					     WEFT_CANARY(locks_order_nothing) ? __ATOMIC_RELAXED : __ATOMIC_ACQUIRE);
	}
	if (__builtin_expect(locked, 0))
		weft__spin_wait(lock);
}

/* Like weft__spin_lock, but the lock is bit 0 of a word. Only the owner of the lock may change the other bits: the
 * store that releases the lock changes them in the same instruction. */
static inline void weft__spin_lock_bit(uint32_t *word)
{
	uint32_t before;

	if (weft__step_in()) {
		before = __atomic_load_n(word, __ATOMIC_RELAXED);
		__atomic_store_n(word, before | 1, __ATOMIC_RELAXED);
		weft__step_out();
	} else {
		/* Acquire: pairs with the store that releases the lock. */
		before = __atomic_fetch_or(word, 1, __ATOMIC_ACQUIRE);
	}
	if (__builtin_expect(before & 1, 0))
		weft__spin_wait(word);
}

/* Like weft__spin_lock, for functions that tasks call: a stack that cannot grow must fail before the lock is taken, not
 * under it. */
static inline void weft__task_lock(uint32_t *lock)
{
	weft__touch_stack();
	weft__spin_lock(lock);
	weft__seen_acquire(lock);
}

/* Like weft__task_lock, for critical sections that need a few hundred bytes of stack and wake nobody. */
static inline __attribute__((always_inline)) void weft__task_lock_near(uint32_t *lock)
{
	weft__touch_near_stack();
	weft__spin_lock(lock);
	weft__seen_acquire(lock);
}

/* ThreadSanitizer must see these locks, because a task may rely on the effects of the previous owner. */
static inline void weft__task_unlock(uint32_t *lock)
{
	weft__seen_release(lock);
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static inline void weft__spin_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

/* ---- a thread's sleep: futexes ---------------------------------------------------------------------------------- */

/* Wait while *word is `value`, at most until `deadline` (of CLOCK_MONOTONIC). May return early. */
void weft__futex_wait(uint32_t *word, uint32_t value, uint64_t deadline) WEFT__HIDDEN;
void weft__futex_wake(uint32_t *word) WEFT__HIDDEN;
uint64_t weft__clock(void) WEFT__HIDDEN;

enum { WEFT__NANOSECONDS = 1000000000 };

static inline struct timespec weft__timespec(uint64_t nanoseconds)
{
	return (struct timespec){(time_t)(nanoseconds / WEFT__NANOSECONDS), (long)(nanoseconds % WEFT__NANOSECONDS)};
}

/* ---- tasks ------------------------------------------------------------------------------------------------------ */

/* WEFT__IN_MEMORY: the caller supplied the memory of its stack. */
enum { WEFT__CODES = 1, WEFT__BLOCKING = 2, WEFT__ON_MALLOC = 8, WEFT__ABANDONED = 16, WEFT__IN_MEMORY = 32 };

/* A task is on its own coroutine's stack, between the coroutine's object, which begins a cache line, and the first
 * frame. A wait and a resume touch the last of the task's three lines, beside the object, and the part of the second
 * line from `shields` on. */
struct weft__task {
	weft_task_t *handle;
	weft_scope_t *open; /* the innermost scope that the task opened */
	struct weft__task *scope_next, **scope_link;
	struct weft__detached *home; /* the list that it is in, if it has no scope */
	void *locals[WEFT_LOCAL_KEYS];
	void *more_locals;   /* for sched.hpp */
	const void *made_at; /* atomic: the address where its parent spawned it; NULL: a thread spawned it */
	uint32_t open_lock;  /* protects the list `open` from weft_dump */
	unsigned host;	     /* the machine of the simulated world that the task is on */
	int error;	     /* set by weft_task_fail */
	union {
		struct {
			uint16_t blocks; /* depth of weft_blocking */
			uint16_t locks;	 /* number of locks of the C library that it holds: see posix_lock.c */
		};
		uint32_t priority; /* in a simulation, which uses neither of those two: see strategy.c */
	};
	uint32_t shields; /* depth of weft_shield_begin */
	uint8_t flags;	  /* atomic: WEFT__CODES, …; only the task writes it, or the thread that ends the task */
	uint8_t asked;	  /* atomic: this task was asked to end; written under its scope's lock */
	uint16_t process; /* in a simulated world; 0: the host's own process */
	struct weft__worker *pinned;
	weft_scope_t *scope; /* the scope that owns the task; NULL: detached */
	struct weft__rt *rt;
	weft_coro_t *k;
	struct weft__task *next; /* in the shared queue, or in a list of tasks to wake */
	weft_waiter_t *wait;	 /* the waiter of its current or last wait; valid while the task waits */
	/* Atomic: how its wait can be cancelled. 0: it cannot be cancelled now. A waiter: claim that waiter.
	 * WEFT__CANCELLED alone: the task runs, and its next wait fails. A waiter and WEFT__CANCELLED: a thread is
	 * claiming the waiter, and the waiter stays valid until the bit is alone. A waiter and WEFT__LOOKED_AT: a
	 * thread is reading the task's frames, and the task does not resume until the bit is cleared. */
	uintptr_t cancel;
	/* Atomic: for weft_dump. */
	const char *what;
	void *object;
	uint64_t since; /* approximate time at which the wait began */
};

_Static_assert(offsetof(struct weft__task, rt) % 64 == 0 &&
		   sizeof(struct weft__task) == offsetof(struct weft__task, rt) + 64,
	       "a task that is resumed touches more lines than it need");

enum { WEFT__CANCELLED = 1, WEFT__LOOKED_AT = 2 };

/* Relaxed: other threads read the flags while the task runs, and nothing else depends on the value that they see. */
static inline bool weft__task_has(const struct weft__task *task, unsigned flag)
{
	return __atomic_load_n(&task->flags, __ATOMIC_RELAXED) & flag;
}

static inline void weft__task_set(struct weft__task *task, unsigned flag, bool on)
{
	unsigned flags = __atomic_load_n(&task->flags, __ATOMIC_RELAXED);

	__atomic_store_n(&task->flags, (uint8_t)(on ? flags | flag : flags & ~flag), __ATOMIC_RELAXED);
}

#define WEFT__OF_TIMER(t) ((weft_waiter_t *)((char *)(t)-offsetof(weft_waiter_t, timer)))

/* Prefetch the lines that the end of a wait and a resume touch: the task's last lines, and the coroutine's first lines,
 * which are above them. */
static inline void weft__prefetch_task(const void *task)
{
	const char *bytes = (const char *)task;

	__builtin_prefetch(bytes + offsetof(struct weft__task, shields), 1);
	__builtin_prefetch(bytes + offsetof(struct weft__task, rt), 1);
	__builtin_prefetch(bytes + sizeof(struct weft__task), 1);
	__builtin_prefetch(bytes + sizeof(struct weft__task) + 64, 1);
}

/* Prefetch the frame of the waiting function, which begins somewhat below its waiter. */
static inline void weft__prefetch_waiter(const weft_waiter_t *waiter)
{
	const char *bytes = (const char *)waiter;

	__builtin_prefetch(bytes - 48, 1);
	__builtin_prefetch(bytes + 16, 1);
	__builtin_prefetch(bytes + 80, 1);
}

/* Prefetch the frame of the waiting function, and its callers' frames, which are above it. */
static inline void weft__prefetch_frames(const weft_waiter_t *waiter)
{
	enum { LINE = 64, BELOW = 128, ABOVE = 640 };
	const char *bytes = (const char *)waiter;

#pragma GCC unroll 16
	for (int at = -BELOW; at < ABOVE; at += LINE)
		__builtin_prefetch(bytes + at, 1);
}

/* ---- timers ----------------------------------------------------------------------------------------------------- */

enum { WEFT__LEVELS = 9, WEFT__TICK = 14 /* a tick has 2^14 nanoseconds */ };

enum {
#ifdef WEFT_TINY
	WEFT__PIECE = 3,
#else
	WEFT__PIECE = 31, /* so that struct weft__piece has 512 bytes */
#endif
};

/* An entry of a list, with an armed timer. */
struct weft__entry {
	uint64_t at;
	struct weft__timer *timer; /* NULL: the entry is empty */
};

/* A piece of a list. Only the first piece of a list has room for more entries; no piece is empty. */
struct weft__piece {
	struct weft__piece *next;
	size_t count;
	struct weft__entry entries[WEFT__PIECE];
};

/*
 * A hierarchical wheel: level n has 64 lists, each for 64^n ticks. The level of a timer is that of the highest digit
 * (in base 64) in which its tick differs from the wheel's. So every list is ahead of the wheel, and the earliest list
 * is in the lowest level that has any. No timer is early: timers of the current tick are compared by their nanosecond.
 *
 * While the wheel advances towards a list, the highest digit in which its timers' ticks differ stays the same. So the
 * list of a timer follows from its time alone. A list that the wheel has reached is emptied at once, under the same
 * lock.
 */
struct weft__wheel {
	uint32_t lock;
	uint64_t tick;
	uint64_t used[WEFT__LEVELS]; /* a bit for each list that is not empty */
	uint64_t next;		     /* atomic: when to turn the wheel; WEFT_NEVER: there is no timer */
	struct weft__piece *lists[WEFT__LEVELS * 64];
	bool exact; /* no timer is delayed to be waited for together with later timers */
	/* timers that could not get memory for an entry: each turn of the wheel checks all of them */
	struct weft__timer *loose;
	struct weft__piece *free;
	size_t free_count;
	struct weft__timer_slab *slabs; /* memory for pieces; the newest slab has some that were never used */
};

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now) WEFT__HIDDEN;
/* Free a wheel that is not used any more. The wheel may be all zeros. */
void weft__wheel_free(struct weft__wheel *wheel) WEFT__HIDDEN;
void weft__timer_arm(struct weft__wheel *wheel, struct weft__timer *t) WEFT__HIDDEN;
void weft__timer_take_out(struct weft__timer *t) WEFT__HIDDEN;

/* Disarm the timer. Afterwards no thread touches it. */
static inline void weft__timer_disarm(struct weft__timer *t)
{
	if (t->wheel)
		weft__timer_take_out(t);
}

/* Complete timers that are due, about `most` of them. Returns the number completed. The next turn completes the
 * rest. */
unsigned weft__wheel_turn(struct weft__wheel *wheel, uint64_t now, unsigned most) WEFT__HIDDEN;

/* ---- workers ---------------------------------------------------------------------------------------------------- */

enum {
#ifdef WEFT_TINY
	WEFT__RING = 4,
#else
	WEFT__RING = 256,
#endif
};

/* A worker's run queue: see queue.h. */
struct weft__ring {
	_Atomic uint32_t head; /* index of the next task to take, by its owner or a thief */
	bool no_thieves;       /* only this worker takes from it */
	uint32_t pad[14];
	_Atomic uint32_t tail; /* index behind the last task; only its owner writes it */
	struct weft__task *_Atomic tasks[WEFT__RING];
};

/* Tasks that a worker has spawned and no worker has run yet: see queue.h. */
struct weft__fresh {
	_Atomic uint64_t word; /* version, tail, head: 32, 16 and 16 bits */
	bool no_thieves;       /* only this worker takes from it */
	struct weft__task *_Atomic tasks[WEFT__RING];
};

/* Tasks without a scope, for weft_dump and weft_rt_cancel. Each worker has a list of the detached tasks that it
 * started, so that workers do not wait for each other. */
struct weft__detached {
	uint32_t lock __attribute__((aligned(64)));
	struct weft__task *tasks;
	size_t count;
};

struct weft__worker {
	struct weft__task *current;
	struct weft__task *_Atomic slot; /* the task to run next: the current task woke it */
	struct weft__rt *rt;
	unsigned number;
	/* number of picks in a row that took from the slot or the spawned tasks */
	unsigned streak;
	unsigned until_look; /* picks until the worker looks at timers and the shared queue */
	unsigned look_every; /* other threads read it */
	unsigned relieved;   /* counts, so that each look relieves the next worker */
	/* Times. Other threads read `looked`. */
	uint64_t looked, unparked, took_oldest;
	uint64_t took_in; /* when it last asked the source of events, or woke up */
	uint64_t random;
	bool searching, helper, handed_on;
	bool in_io; /* its task is in a function of src/io, or in a system call made for that function */
	/* See biased_lock.h. */
	bool reserves;
	/* Number of scopes that it still opens without reserving their locks; the next such number, after it has to
	 * share a scope. */
	unsigned unreserved, pause;
	_Atomic uint32_t inside, asked, answered;
	uint64_t switches, spawned, ended, steals, parks, wakes, timers;
	/* `switches` when the count of operations began again; simulated: number of operations */
	uint64_t turn;
	uint64_t io_began, io_ended; /* waits for I/O */
	unsigned io_streak;	     /* operations in a row that completed without waiting */
	bool pins_next;		     /* take the next task from the pinned tasks, not from the ring */
	void *io_ring;		     /* owned by the source */
	struct weft__fresh fresh __attribute__((aligned(64)));
	struct weft__ring ring __attribute__((aligned(64)));
	/* Other threads write these. */
	_Atomic uint32_t token __attribute__((aligned(64))); /* 1: wake up */
	_Atomic bool in_source;				     /* it sleeps in the source, or is about to */
	struct weft__worker *parked;			     /* the next worker in the runtime's list */
	bool is_parked, watching;
	bool rests;	 /* it sleeps until its own next timer: see worker.c */
	uint64_t called; /* atomic: when another worker last left the wheel for this worker to turn */
	uint64_t seen;	 /* atomic: `switches` when a thread last checked whether this worker is held */
	uint32_t pins_lock;
	struct weft__task *pins, **pins_end; /* ready tasks that only this worker may run */
	_Atomic uint32_t pinned;
	pthread_t thread;
	struct weft__detached detached;
	struct weft__wheel wheel __attribute__((aligned(64)));
};

/* The task that a worker was running when the attendant last looked. */
struct weft__run {
	struct weft__task *task;
	uint64_t switches, since;
	bool told;
};

/* The thread or signal of diagnose.c. */
struct weft__attendant {
	pthread_t thread;
	bool runs_thread;
	_Atomic bool over;
	int signal;	      /* 0: none */
	uint64_t stuck_after; /* nanoseconds; 0: never report */
	uint32_t asked_before;
	struct weft__run *runs; /* an array: the last run of each worker */
};

/*
 * A queue of all workers, under a lock. Task number i is in list i % WEFT__LANES: so the addresses of the next tasks
 * are known before one is taken, and these tasks are prefetched while other tasks run. With a single list, each task
 * would have to be in the cache before the address of the next is known.
 */
enum { WEFT__LANES = 8 };

struct weft__shared {
	uint32_t lock __attribute__((aligned(64)));
	uint32_t added, taken; /* numbers of the next task to add and to take; added - taken = count */
	_Atomic uint32_t count;
	struct {
		struct weft__task *first, **end; /* `end` is valid if the list is not empty */
	} lanes[WEFT__LANES];
};

struct weft__rt {
	unsigned workers;
	struct weft__worker *worker; /* array of `workers` workers */
	weft_attr_t attr;
	struct weft__sim *sim;
	void (*worker_begins)(unsigned worker, void *worker_arg); /* the program's function; NULL: none */
	void *worker_arg;
	struct weft__source *_Atomic source;
	weft__resume_t *resume; /* in a program with sanitizers: its own function that resumes; else NULL */

	/* `shared`: tasks that other threads than workers made ready, and tasks for which a ring had no room.
	 * `spawned`: spawned tasks for which a worker's stack of spawned tasks had no room. */
	struct weft__shared shared, spawned;

	/* Parking: see worker.c. */
	_Atomic uint32_t idle __attribute__((aligned(64)));
	_Atomic uint32_t searching;
	uint32_t park_lock;
	struct weft__worker *parked;
	_Atomic uint64_t watch; /* when a parked worker will wake up; WEFT_NEVER: no worker watches */
	_Atomic bool stop;
	bool embedded; /* its one worker is the thread that calls weft_rt_step: see embed.c */
	int descriptor, timer;
	uint64_t armed;			 /* the time that the timer is set to; under park_lock */
	_Atomic bool stepping;		 /* a thread is in weft_rt_step */
	_Atomic uint32_t gate, attached; /* futexes of threads that start: see worker.c */
	/* a starting thread could not get the memory that stacks need for each thread */
	_Atomic bool unattached;

	_Atomic size_t live __attribute__((aligned(64))); /* number of non-empty lists of tasks without a scope */
	_Atomic int64_t elsewhere; /* tasks spawned minus tasks ended, counted by threads that are no workers */
	_Atomic uint32_t outside;  /* see weft__outside_begin */
	weft_task_t main;
	struct weft__detached detached; /* detached tasks that no worker started */

	/* Helpers, for weft_blocking. */
	pthread_mutex_t helpers_lock;
	pthread_cond_t helpers_wanted;
	struct weft__task *blocking, **blocking_end;
	unsigned helpers, helpers_idle, helpers_most, blocked;
	unsigned helpers_queued; /* tasks in `blocking` */
	bool helpers_left;	 /* a helper has ended, and `left_last` is valid */
	pthread_t left_last;	 /* the last helper that ended; it joins the helper that ended before it */

	struct weft__attendant attendant;
	unsigned forks;	    /* forks of the process when the runtime was made: a child of fork has more */
	uint64_t seen_idle; /* sum of the workers' switches when a worker last looked for a deadlock */
	unsigned deadlocks; /* deadlocks found; 2: the workers have stopped, and the waiting tasks stay suspended */
};

/* Defined in io/posix.c; called when a runtime begins. Weak: the linker takes src/io from a static library only for a
 * program that uses one of its symbols, or asks for this name (-u), as programs do that are linked with weft-posix. Not
 * WEFT__HIDDEN: then compilers may compute the address without the linker, and it would not be NULL if the function is
 * missing. */
void weft__posix_begin(void) __attribute__((weak));

/* Only the worker writes the counter; other threads may read it meanwhile. */
static inline void weft__count(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/*
 * A thread outside of the runtime calls this before it makes a task of the runtime ready, or cancels tasks. The last
 * task may end as a result; then weft__rt_free waits until the thread has called weft__outside_end.
 */
static inline void weft__outside_begin(struct weft__rt *rt)
{
	/* Relaxed: the queue or the list that the thread changes next orders this before the end of the task. */
	if (!WEFT_CANARY(runtime_ends_early))
		atomic_fetch_add_explicit(&rt->outside, 1, memory_order_relaxed);
}

static inline void weft__outside_end(struct weft__rt *rt)
{
	/* Release: pairs with weft__rt_free, which waits until `outside` is 0. */
	if (!WEFT_CANARY(runtime_ends_early))
		atomic_fetch_sub_explicit(&rt->outside, 1, memory_order_release);
}

/* List number i of `workers` + 1 lists. */
static inline struct weft__detached *weft__detached(struct weft__rt *rt, unsigned i)
{
	return i < rt->workers ? &rt->worker[i].detached : &rt->detached;
}

/* The worker that the calling thread is, NULL: none. Not for functions that suspend. */
struct weft__worker *weft__worker(void) WEFT__HIDDEN;
/* The variable that weft__worker returns. A function may read it if it never suspends and is not inlined into a
 * function that does. */
extern __thread struct weft__worker *weft__this_worker WEFT__HIDDEN __attribute__((tls_model("initial-exec")));
void weft__set_worker(struct weft__worker *w) WEFT__HIDDEN;

/* Xorshift, by Marsaglia. The state must not be 0: it would stay 0. */
static inline uint64_t weft__xorshift(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* The calling task; NULL in a thread. */
static inline struct weft__task *weft__task(void)
{
	struct weft__worker *w = weft__worker();

	return w ? w->current : NULL;
}

/* simulate.c: is there room for another task? */
bool weft__sim_has_room(struct weft__rt *rt) WEFT__HIDDEN;
/* The running task begins an operation, or (`after`) has just made other tasks ready. True: it must yield, because the
 * simulator has chosen another task to run first, or the turn has been long. */
bool weft__sim_switches(struct weft__rt *rt, bool after) WEFT__HIDDEN;
/* The running task has read the clock. The simulator does not switch there, but counts it as an operation. True: the
 * task's turn is over. */
bool weft__sim_spends(struct weft__rt *rt) WEFT__HIDDEN;
void weft__sim_ready(struct weft__rt *rt, struct weft__task *task) WEFT__HIDDEN;
uint64_t weft__sim_now(struct weft__rt *rt) WEFT__HIDDEN;
/* A random number for the simulated world, which depends only on the seed. */
uint64_t weft__sim_random(struct weft__rt *rt) WEFT__HIDDEN;
struct weft__wheel *weft__sim_wheel(struct weft__rt *rt) WEFT__HIDDEN;
/* Runs a simulation if WEFT_SIMULATE asks for it: then *outcome is the result of weft_rt_run. */
bool weft__sim_asked(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result,
		     int *outcome) WEFT__HIDDEN;

/* worker.c: make a task ready. From any thread. `next`: if a worker calls, the task runs before its other tasks. */
void weft__ready(struct weft__task *task, bool next) WEFT__HIDDEN;
/* Like weft__ready, for a task that this worker's task has just spawned. */
void weft__ready_fresh(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* Like weft__ready_fresh, but the task runs next, and the caller must then queue `parent` behind it. False: not
 * possible for these tasks. */
bool weft__ready_first(struct weft__worker *w, struct weft__task *task, const struct weft__task *parent) WEFT__HIDDEN;
/* scope.c: for a case of weft_select. 1: when the task ends it claims `w` with `index`. 0: the task has ended. -EBUSY:
 * another waiter waits for its end already. -EDEADLK: the task is the caller. */
int weft__join_enter(weft_task_t *t, weft_waiter_t *w, int index) WEFT__HIDDEN;
bool weft__has_ended(const weft_task_t *t) WEFT__HIDDEN;
/* The last task of a list of detached tasks has ended. */
void weft__rt_left(struct weft__rt *rt) WEFT__HIDDEN;
/* Create the workers' threads and wait until the last task has ended. 0 or a negative errno. */
int weft__workers_run(struct weft__rt *rt) WEFT__HIDDEN;
void weft__workers_stop(struct weft__rt *rt) WEFT__HIDDEN;

/* worker.c: the steps of a worker's loop. */
void weft__worker_init(struct weft__rt *rt, struct weft__worker *w, unsigned number) WEFT__HIDDEN;
/* The next task; NULL: no task is ready. */
struct weft__task *weft__worker_pick(struct weft__worker *w) WEFT__HIDDEN;
void weft__worker_run(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* Put the worker on the list of parked workers, so that other threads wake it. Returns the time until which it may
 * sleep; 0: it must not sleep. */
uint64_t weft__worker_lie_down(struct weft__worker *w) WEFT__HIDDEN;
void weft__worker_get_up(struct weft__worker *w) WEFT__HIDDEN;

/* embed.c: make the descriptor readable. */
void weft__embedded_wake(struct weft__rt *rt) WEFT__HIDDEN;
/* Make it readable also while `descriptor` is. */
void weft__embedded_add(struct weft__rt *rt, int descriptor) WEFT__HIDDEN;

/* worker.c: the number of tasks that wait for I/O, approximate while other threads begin and end such waits. */
uint64_t weft__waiting_for_io(const struct weft__rt *rt) WEFT__HIDDEN;

/* worker.c: arm a timer, for a task that this worker runs. */
void weft__arm(struct weft__worker *w, struct weft__timer *t) WEFT__HIDDEN;

/* task.c */
int weft__task_spawn(struct weft__rt *rt, const struct weft_spawn *what, struct weft__task **made) WEFT__HIDDEN;
/* Free a task that has not run. */
void weft__task_unmake(struct weft__task *task) WEFT__HIDDEN;
/* Run the task until it yields, waits or ends. */
enum weft__outcome { WEFT__YIELDED, WEFT__WAITS, WEFT__ENDED };
enum weft__outcome weft__task_run(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* The places where the task waits, as weft_backtrace returns them, if the task can be held there. */
size_t weft__task_backtrace(struct weft__task *task, void **places, size_t most) WEFT__HIDDEN;
/* Describe the runs inside a task other than tasks (see pin.h), if it waits and can be held. */
void weft__task_inside(struct weft__task *task, void (*line)(const struct weft__line *line, void *arg),
		       void *arg) WEFT__HIDDEN;
/* Ask the task to end. */
void weft__task_cancel(struct weft__task *task) WEFT__HIDDEN;

/* task.c: end a task that has failed, once its scopes have no tasks. */
void weft__task_end_failed(struct weft__task *task) WEFT__HIDDEN;

/* scope.c: a task has failed with these scopes open. Its frames stay valid until the tasks of the scopes have ended;
 * then it ends. */
void weft__scopes_abandon(struct weft__task *owner) WEFT__HIDDEN;
/* scope.c: the timer of a scope's deadline has expired. */
void weft__scope_expired(struct weft__timer *t) WEFT__HIDDEN;
/* The caller holds the scope's lock. */
void weft__scope_cancel_locked(weft_scope_t *s, int error) WEFT__HIDDEN;

/* values.c: atomic: has anything been bound in this process?
 * The function returns the values that tasks of a scope inherit if `owner` opens the scope now. */
extern unsigned char weft__values_used WEFT__HIDDEN;
const struct weft__binding *weft__values_of_scope(const struct weft__task *owner) WEFT__HIDDEN;

/* misuse.c: the number of forks since the library was loaded, counted in the children. weft__check_fork ends a process
 * that is a child of a fork after the runtime was made. */
unsigned weft__forks(void) WEFT__HIDDEN;

/* slack.c: set the calling thread's timer slack to the smallest; set a worker's back to the program's, for a child. */
void weft__slack_exact(void) WEFT__HIDDEN;
void weft__slack_usual(void) WEFT__HIDDEN;

/* For a descriptor of the library's own, or -1 and errno: returns the descriptor, or a copy with a number above 2. A
 * program that has closed its standard descriptors may open files with these numbers. */
int weft__own_fd(int fd) WEFT__HIDDEN;
void weft__check_fork(const struct weft__rt *rt) WEFT__HIDDEN;

/* blocking.c */
void weft__helpers_add(struct weft__rt *rt, struct weft__task *task) WEFT__HIDDEN;
void weft__helpers_stop(struct weft__rt *rt) WEFT__HIDDEN;

/* dump.c: add the task's name and where it was made to the line. False: the runtime has no such task. */
struct weft__line;
bool weft__dump_name(struct weft__rt *rt, struct weft__task *task, struct weft__line *line) WEFT__HIDDEN;

/* diagnose.c: start the attendant if the configuration asks for it. 0 or a negative errno. */
int weft__attendant_start(struct weft__rt *rt, const weft_rt_config_t *config) WEFT__HIDDEN;
void weft__attendant_stop(struct weft__rt *rt) WEFT__HIDDEN;
/* Called by a worker that nothing has woken for a long time. */
void weft__look_for_deadlock(struct weft__rt *rt) WEFT__HIDDEN;

/* processors.c: the default number of workers of a runtime; and the quota of the control groups, in processors, with
 * `root` in front of all paths. UINT_MAX: there is no quota. */
unsigned weft__processors(void) WEFT__HIDDEN;
unsigned weft__quota(const char *root) WEFT__HIDDEN;

/* run.c: add the counters of a worker to *stats. */
void weft__worker_stats(const struct weft__worker *w, weft_rt_stats_t *stats) WEFT__HIDDEN;

/* run.c: weft__rt_allocate makes a runtime without a task; NULL: no memory. weft__rt_make makes a runtime whose first
 * task is ready; if it fails, it returns NULL and sets *error to a negative errno. */
struct weft__rt *weft__rt_allocate(const weft_rt_config_t *config, unsigned workers,
				   struct weft__sim *sim) WEFT__HIDDEN;
struct weft__rt *weft__rt_make(const weft_rt_config_t *config, unsigned workers, struct weft__sim *sim, weft_fn_t *fn,
			       void *arg, int *error) WEFT__HIDDEN;
void weft__rt_free(struct weft__rt *rt) WEFT__HIDDEN;

static inline uint64_t weft__rt_now(struct weft__rt *rt)
{
	return __builtin_expect(rt->sim != NULL, 0) ? weft__sim_now(rt) : weft__clock();
}

#endif
