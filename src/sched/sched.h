/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the files of the scheduler share: tasks, workers, the runtime.
 *
 *   a task is            it is owned by                        it leaves that state by
 *   ready                one run queue: a worker's slot or     a worker that takes it
 *                        ring, the shared queue, a batch
 *   running              the worker whose `current` it is      its request: yield, wait, its end
 *   waiting              its waiter: whoever claims that       weft_waiter_complete, once
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
/* A turn of a loop that waits for another thread; `turns` counts, from 0. */
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

/* Like weft__spin_lock, but the lock is bit 0 of a word. The other bits are the owner's to change: the store that
 * releases the lock changes them in the same instruction. */
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

/* The same for what tasks call: a stack that cannot grow must fail before the lock is taken, not under it. */
static inline void weft__task_lock(uint32_t *lock)
{
	weft__touch_stack();
	weft__spin_lock(lock);
	weft__seen_acquire(lock);
}

/* For work of a few hundred bytes, which wakes nobody. */
static inline __attribute__((always_inline)) void weft__task_lock_near(uint32_t *lock)
{
	weft__touch_near_stack();
	weft__spin_lock(lock);
	weft__seen_acquire(lock);
}

/* ThreadSanitizer sees these locks, because what one task did before is what another may rely on then. */
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

/* WEFT__IN_MEMORY: its stack is memory of the caller's. */
enum { WEFT__CODES = 1, WEFT__BLOCKING = 2, WEFT__ON_MALLOC = 8, WEFT__ABANDONED = 16, WEFT__IN_MEMORY = 32 };

/* On its own coroutine's stack, between the coroutine's object, which begins a cache line, and the first frame. A wait
 * and a resume touch the last of its three lines, beside the object, and what is from `shields` on in the second. */
struct weft__task {
	weft_task_t *handle;
	weft_scope_t *open; /* the innermost that it opened */
	struct weft__task *scope_next, **scope_link;
	struct weft__detached *home; /* if it has no scope */
	void *locals[WEFT_LOCAL_KEYS];
	void *more_locals;   /* sched.hpp's */
	const void *made_at; /* atomic: where its parent asked for it; NULL: a thread did */
	uint32_t open_lock;  /* of the list `open`, against weft_dump */
	unsigned host;	     /* the machine of a simulated world that the task is on */
	int error;	     /* of weft_task_fail */
	union {
		struct {
			uint16_t blocks; /* depth of weft_blocking */
			uint16_t locks;	 /* of the C library that it holds: see posix_lock.c */
		};
		uint32_t priority; /* in a simulation, which has neither: see strategy.c */
	};
	uint32_t shields; /* depth of weft_shield_begin */
	uint8_t flags;	  /* atomic: WEFT__CODES, …; only the task itself writes it, or whoever ends it */
	uint8_t asked;	  /* atomic: to end, itself; written under its scope's lock */
	uint16_t process; /* of a simulated world; 0: its host's own */
	struct weft__worker *pinned;
	weft_scope_t *scope; /* that it belongs to; NULL: detached */
	struct weft__rt *rt;
	weft_coro_t *k;
	struct weft__task *next; /* in the shared queue, or a list of those to be woken */
	weft_waiter_t *wait;	 /* what it waits for, or did; valid while it waits */
	/* Atomic: how its wait can be cancelled. 0: not now; a waiter: claim that; WEFT__CANCELLED alone: it runs, and
	 * its next wait fails; both: somebody is claiming, and the waiter stays until the bit is alone; a waiter and
	 * WEFT__LOOKED_AT: its frames are being looked at, and it does not go on until that bit is gone. */
	uintptr_t cancel;
	/* For weft_dump; atomic. */
	const char *what;
	void *object;
	uint64_t since; /* about when the wait began */
};

_Static_assert(offsetof(struct weft__task, rt) % 64 == 0 &&
		   sizeof(struct weft__task) == offsetof(struct weft__task, rt) + 64,
	       "a task that is resumed touches more lines than it need");

enum { WEFT__CANCELLED = 1, WEFT__LOOKED_AT = 2 };

/* Relaxed: others look while the task runs, and nothing else depends on what they see. */
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

/* Fetch what a wait's end and a resume touch: the task's last lines, and the coroutine's first, which lie above. */
static inline void weft__prefetch_task(const void *task)
{
	const char *bytes = (const char *)task;

	__builtin_prefetch(bytes + offsetof(struct weft__task, shields), 1);
	__builtin_prefetch(bytes + offsetof(struct weft__task, rt), 1);
	__builtin_prefetch(bytes + sizeof(struct weft__task), 1);
	__builtin_prefetch(bytes + sizeof(struct weft__task) + 64, 1);
}

/* The frame of the function that waits begins somewhat below its waiter. */
static inline void weft__prefetch_waiter(const weft_waiter_t *waiter)
{
	const char *bytes = (const char *)waiter;

	__builtin_prefetch(bytes - 48, 1);
	__builtin_prefetch(bytes + 16, 1);
	__builtin_prefetch(bytes + 80, 1);
}

/* Fetch the frame of the function that waits, and those of its callers, which lie above. */
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
	WEFT__PIECE = 31, /* with what else a piece has 512 bytes */
#endif
};

/* An armed timer in a list. */
struct weft__entry {
	uint64_t at;
	struct weft__timer *timer; /* NULL where there is none (any more) */
};

/* A piece of a list. Only the first of a list has room; none is empty. */
struct weft__piece {
	struct weft__piece *next;
	size_t count;
	struct weft__entry entries[WEFT__PIECE];
};

/*
 * A hierarchical wheel: level n has 64 lists, each for 64^n ticks. A timer lies at the level of the highest digit (in
 * base 64) in which its tick differs from the wheel's; so every list is ahead of the wheel, and the lowest level that
 * has any has the earliest. Never early: timers of the current tick are compared by their nanosecond.
 *
 * While the wheel advances towards a list, its timers' highest digit that differs stays the same. So where a timer lies
 * follows from its time alone. A list that the wheel has reached is emptied at once, under the same lock.
 */
struct weft__wheel {
	uint32_t lock;
	uint64_t tick;
	uint64_t used[WEFT__LEVELS]; /* a bit for each list that is not empty */
	uint64_t next;		     /* atomic: when to turn it; WEFT_NEVER: there is no timer */
	struct weft__piece *lists[WEFT__LEVELS * 64];
	bool exact;		   /* no timer is late so that others can be waited for with it */
	struct weft__timer *loose; /* those for which there was no memory: looked through at each turn */
	struct weft__piece *free;
	size_t free_count;
	struct weft__timer_slab *slabs; /* of pieces; the newest has some that were never used */
};

void weft__wheel_init(struct weft__wheel *wheel, uint64_t now) WEFT__HIDDEN;
/* A wheel that is not used any more. Zeros are allowed. */
void weft__wheel_free(struct weft__wheel *wheel) WEFT__HIDDEN;
void weft__timer_arm(struct weft__wheel *wheel, struct weft__timer *t) WEFT__HIDDEN;
void weft__timer_take_out(struct weft__timer *t) WEFT__HIDDEN;

/* Afterwards nothing touches it any more. */
static inline void weft__timer_disarm(struct weft__timer *t)
{
	if (t->wheel)
		weft__timer_take_out(t);
}

/* End what is due, about `most` of it; returns how many. The next turn ends the rest. */
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
	_Atomic uint32_t head; /* of the next to be taken, by its owner or a thief */
	bool no_thieves;       /* it is the only worker's */
	uint32_t pad[14];
	_Atomic uint32_t tail; /* behind the last; only its owner writes it */
	struct weft__task *_Atomic tasks[WEFT__RING];
};

/* Tasks that a worker has spawned and nobody has run: see queue.h. */
struct weft__fresh {
	_Atomic uint64_t word; /* version, tail, head: 32, 16 and 16 bits */
	bool no_thieves;       /* it is the only worker's */
	struct weft__task *_Atomic tasks[WEFT__RING];
};

/* Tasks without a scope, for weft_dump and weft_rt_cancel. Each worker has a list of those that it started, so that
 * workers do not wait for each other. */
struct weft__detached {
	uint32_t lock __attribute__((aligned(64)));
	struct weft__task *tasks;
	size_t count;
};

struct weft__worker {
	struct weft__task *current;
	struct weft__task *_Atomic slot; /* to run next: woken by what runs now */
	struct weft__rt *rt;
	unsigned number;
	unsigned streak;			/* how often in a row the slot went first */
	unsigned until_look;			/* picks until timers and the shared queue are looked at */
	unsigned look_every;			/* others read it */
	unsigned relieved;			/* counts, so that each look is at another worker */
	uint64_t looked, unparked, took_oldest; /* when; others read the first */
	uint64_t took_in;			/* when it asked the source of events, or slept */
	uint64_t random;
	bool searching, helper, handed_on;
	bool in_io; /* its task is in a function of src/io, or has one call the system */
	/* See biased_lock.h. */
	bool reserves;
	unsigned unreserved, pause; /* how many scopes it is still to open so; how many after the next is shared */
	_Atomic uint32_t inside, asked, answered;
	uint64_t switches, spawned, ended, steals, parks, wakes, timers;
	uint64_t turn;		     /* `switches` when operations were last counted from 0; simulated: their number */
	uint64_t io_began, io_ended; /* waits for I/O */
	unsigned io_streak;	     /* operations in a row that did not wait */
	bool pins_next;		     /* the next of the pinned tasks, or of the others */
	void *io_ring;		     /* the source's */
	struct weft__fresh fresh __attribute__((aligned(64)));
	struct weft__ring ring __attribute__((aligned(64)));
	/* Others write these. */
	_Atomic uint32_t token __attribute__((aligned(64))); /* 1: wake up */
	_Atomic bool in_source;				     /* it sleeps there, or is about to */
	struct weft__worker *parked;			     /* next in the runtime's list */
	bool is_parked, watching;
	bool rests;	 /* until its own next timer: see worker.c */
	uint64_t called; /* atomic: when it was left to turn its own wheel */
	uint64_t seen;	 /* atomic: `switches` when somebody last looked at the slot */
	uint32_t pins_lock;
	struct weft__task *pins, **pins_end; /* ready, and only this worker may run them */
	_Atomic uint32_t pinned;
	pthread_t thread;
	struct weft__detached detached;
	struct weft__wheel wheel __attribute__((aligned(64)));
};

/* What a worker was last seen to run. */
struct weft__run {
	struct weft__task *task;
	uint64_t switches, since;
	bool told;
};

/* See diagnose.c. */
struct weft__attendant {
	pthread_t thread;
	bool runs_thread;
	_Atomic bool over;
	int signal;	      /* 0: none */
	uint64_t stuck_after; /* nanoseconds; 0: for ever */
	uint32_t asked_before;
	struct weft__run *runs; /* of each worker */
};

/*
 * A queue of all workers, under a lock. Task number i lies in list i % WEFT__LANES: so the next tasks are known before
 * one is taken, and are fetched into the cache while others run. In a single list each would have to be there before
 * the address of the next is known.
 */
enum { WEFT__LANES = 8 };

struct weft__shared {
	uint32_t lock __attribute__((aligned(64)));
	uint32_t added, taken; /* numbers of the next; added - taken = count */
	_Atomic uint32_t count;
	struct {
		struct weft__task *first, **end; /* `end` is valid where the list is not empty */
	} lanes[WEFT__LANES];
};

struct weft__rt {
	unsigned workers;
	struct weft__worker *worker; /* of these */
	weft_attr_t attr;
	struct weft__sim *sim;
	void (*worker_begins)(unsigned worker, void *worker_arg); /* the program's; NULL: none */
	void *worker_arg;
	struct weft__source *_Atomic source;
	weft__resume_t *resume; /* in a program with sanitizers: its own way to resume; else NULL */

	/* Tasks made ready by threads that are no workers, and what no ring has room for; spawned ones that no stack of
	 * a worker's has room for. */
	struct weft__shared shared, spawned;

	/* Parking: see worker.c. */
	_Atomic uint32_t idle __attribute__((aligned(64)));
	_Atomic uint32_t searching;
	uint32_t park_lock;
	struct weft__worker *parked;
	_Atomic uint64_t watch; /* a parked worker will wake up then; WEFT_NEVER: none watches */
	_Atomic bool stop;
	bool embedded; /* its one worker is whoever calls weft_rt_step: see embed.c */
	int descriptor, timer;
	uint64_t armed;			 /* what the timer waits for; under park_lock */
	_Atomic bool stepping;		 /* somebody is in weft_rt_step */
	_Atomic uint32_t gate, attached; /* futexes of threads that begin: see worker.c */
	_Atomic bool unattached;	 /* one of them has no memory for what stacks need of a thread */

	_Atomic size_t live __attribute__((aligned(64))); /* lists of tasks without a scope that are not empty */
	_Atomic int64_t elsewhere; /* tasks spawned less those ended, where no worker counts them */
	_Atomic uint32_t outside;  /* see weft__outside_begin */
	weft_task_t main;
	struct weft__detached detached; /* those that no worker started */

	/* Helpers, for weft_blocking. */
	pthread_mutex_t helpers_lock;
	pthread_cond_t helpers_wanted;
	struct weft__task *blocking, **blocking_end;
	unsigned helpers, helpers_idle, helpers_most, blocked;
	unsigned helpers_queued; /* tasks in `blocking` */
	bool helpers_left;	 /* some helper has ended, and */
	pthread_t left_last;	 /* this is the last, which joins those before it */

	struct weft__attendant attendant;
	unsigned forks;	    /* of the process when the runtime was made: a child of fork has more */
	uint64_t seen_idle; /* the workers' switches when somebody last looked for a deadlock */
	unsigned deadlocks; /* that were found; 2: the workers have stopped, and tasks are left where they wait */
};

/* io/posix.c: a runtime begins. Weak: the linker takes src/io from a static library only for a program that calls
 * something of it, or asks for this name (-u), as those do that are linked with weft-posix. Not WEFT__HIDDEN: then
 * compilers may compute the address without the linker, and it would not be NULL where there is no such function. */
void weft__posix_begin(void) __attribute__((weak));

/* Only the worker counts; others may read it meanwhile. */
static inline void weft__count(uint64_t *counter, uint64_t more)
{
	__atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/*
 * A thread that is not the runtime's makes a task of it ready, or cancels tasks. The last task may end by that; then
 * weft__rt_free waits until the thread has left.
 */
static inline void weft__outside_begin(struct weft__rt *rt)
{
	/* Relaxed: the queue or the list that the thread then changes orders this before the end of the task. */
	if (!WEFT_CANARY(runtime_ends_early))
		atomic_fetch_add_explicit(&rt->outside, 1, memory_order_relaxed);
}

static inline void weft__outside_end(struct weft__rt *rt)
{
	/* Release: pairs with weft__rt_free. */
	if (!WEFT_CANARY(runtime_ends_early))
		atomic_fetch_sub_explicit(&rt->outside, 1, memory_order_release);
}

/* List number i of `workers` + 1. */
static inline struct weft__detached *weft__detached(struct weft__rt *rt, unsigned i)
{
	return i < rt->workers ? &rt->worker[i].detached : &rt->detached;
}

/* The worker whose thread this is, NULL: none. Not for functions that suspend. */
struct weft__worker *weft__worker(void) WEFT__HIDDEN;
/* The variable that weft__worker returns. Functions may read it that never suspend, and are not inlined into any that
 * does. */
extern __thread struct weft__worker *weft__this_worker WEFT__HIDDEN __attribute__((tls_model("initial-exec")));
void weft__set_worker(struct weft__worker *w) WEFT__HIDDEN;

/* Xorshift, by Marsaglia. The state is not 0, which would stay 0. */
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

/* simulate.c: is there room for one more task? */
bool weft__sim_has_room(struct weft__rt *rt) WEFT__HIDDEN;
/* The running task begins an operation, or (`after`) has just let others go on. True: it must yield, because
 * the simulator has chosen another task to run first, or the turn has been long. */
bool weft__sim_switches(struct weft__rt *rt, bool after) WEFT__HIDDEN;
/* The running task has read the clock, which is no choice, but counts as an operation. True: its turn is over. */
bool weft__sim_spends(struct weft__rt *rt) WEFT__HIDDEN;
void weft__sim_ready(struct weft__rt *rt, struct weft__task *task) WEFT__HIDDEN;
uint64_t weft__sim_now(struct weft__rt *rt) WEFT__HIDDEN;
/* For the simulated world: only the seed decides it. */
uint64_t weft__sim_random(struct weft__rt *rt) WEFT__HIDDEN;
struct weft__wheel *weft__sim_wheel(struct weft__rt *rt) WEFT__HIDDEN;
/* If WEFT_SIMULATE asks for it: then *outcome is what weft_rt_run returns. */
bool weft__sim_asked(const weft_rt_config_t *config, weft_fn_t *fn, void *arg, void **result,
		     int *outcome) WEFT__HIDDEN;

/* worker.c: a task may run. From any thread. `next`: before others, if a worker calls. */
void weft__ready(struct weft__task *task, bool next) WEFT__HIDDEN;
/* The same for a task that this worker's task has just spawned. */
void weft__ready_fresh(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* The same, but it runs next, and `parent` is to be queued behind it. False: that cannot be done here. */
bool weft__ready_first(struct weft__worker *w, struct weft__task *task, const struct weft__task *parent) WEFT__HIDDEN;
/* scope.c: for a case of weft_select. 1: `w` is claimed with `index` when the task ends. 0: the task has ended. -EBUSY:
 * another waiter waits for its end already. -EDEADLK: the task is the caller. */
int weft__join_enter(weft_task_t *t, weft_waiter_t *w, int index) WEFT__HIDDEN;
bool weft__has_ended(const weft_task_t *t) WEFT__HIDDEN;
/* The last task of a list of detached ones has ended. */
void weft__rt_left(struct weft__rt *rt) WEFT__HIDDEN;
/* Threads that run tasks until the last has ended. 0 or a negative errno. */
int weft__workers_run(struct weft__rt *rt) WEFT__HIDDEN;
void weft__workers_stop(struct weft__rt *rt) WEFT__HIDDEN;

/* worker.c: what a worker's life is made of. */
void weft__worker_init(struct weft__rt *rt, struct weft__worker *w, unsigned number) WEFT__HIDDEN;
/* The next task; NULL: there is none now. */
struct weft__task *weft__worker_pick(struct weft__worker *w) WEFT__HIDDEN;
void weft__worker_run(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* From now on others wake it. Until when it may sleep; 0: not at all. */
uint64_t weft__worker_lie_down(struct weft__worker *w) WEFT__HIDDEN;
void weft__worker_get_up(struct weft__worker *w) WEFT__HIDDEN;

/* embed.c: make the descriptor readable. */
void weft__embedded_wake(struct weft__rt *rt) WEFT__HIDDEN;
/* It is to be readable also while this one is. */
void weft__embedded_add(struct weft__rt *rt, int descriptor) WEFT__HIDDEN;

/* worker.c: how many tasks wait for I/O; while others begin and end such waits, about. */
uint64_t weft__waiting_for_io(const struct weft__rt *rt) WEFT__HIDDEN;

/* worker.c: arm a timer, for a task that runs here. */
void weft__arm(struct weft__worker *w, struct weft__timer *t) WEFT__HIDDEN;

/* task.c */
int weft__task_spawn(struct weft__rt *rt, const struct weft_spawn *what, struct weft__task **made) WEFT__HIDDEN;
/* Of one that has not run. */
void weft__task_unmake(struct weft__task *task) WEFT__HIDDEN;
/* Run it until it yields, waits or ends. */
enum weft__outcome { WEFT__YIELDED, WEFT__WAITS, WEFT__ENDED };
enum weft__outcome weft__task_run(struct weft__worker *w, struct weft__task *task) WEFT__HIDDEN;
/* Where it waits, as weft_backtrace, if it can be held there. */
size_t weft__task_backtrace(struct weft__task *task, void **places, size_t most) WEFT__HIDDEN;
/* What runs in it but tasks (see pin.h), if it waits and can be held. */
void weft__task_inside(struct weft__task *task, void (*line)(const struct weft__line *line, void *arg),
		       void *arg) WEFT__HIDDEN;
/* Somebody asks the task to end. */
void weft__task_cancel(struct weft__task *task) WEFT__HIDDEN;

/* task.c: of a task that has failed, and whose scopes have no tasks. */
void weft__task_end_failed(struct weft__task *task) WEFT__HIDDEN;

/* scope.c: a task has failed with these scopes open. Its frames stay until their tasks have ended; then it ends. */
void weft__scopes_abandon(struct weft__task *owner) WEFT__HIDDEN;
/* scope.c: of a timer. */
void weft__scope_expired(struct weft__timer *t) WEFT__HIDDEN;
/* Under the scope's lock. */
void weft__scope_cancel_locked(weft_scope_t *s, int error) WEFT__HIDDEN;

/* values.c: has anything been bound in this process (atomic)? And what tasks of a scope inherit that is opened now. */
extern unsigned char weft__values_used WEFT__HIDDEN;
const struct weft__binding *weft__values_of_scope(const struct weft__task *owner) WEFT__HIDDEN;

/* misuse.c: how often this process is a child of fork; ends it if that was after the runtime was made. */
unsigned weft__forks(void) WEFT__HIDDEN;

/* slack.c: the calling thread's timer slack becomes the smallest; a worker's becomes the program's, for a child. */
void weft__slack_exact(void) WEFT__HIDDEN;
void weft__slack_usual(void) WEFT__HIDDEN;

/* For a descriptor of the library's own, or -1 and errno: the descriptor, or a copy, whose number is above 2. A program
 * that has closed its standard descriptors may open files there. */
int weft__own_fd(int fd) WEFT__HIDDEN;
void weft__check_fork(const struct weft__rt *rt) WEFT__HIDDEN;

/* blocking.c */
void weft__helpers_add(struct weft__rt *rt, struct weft__task *task) WEFT__HIDDEN;
void weft__helpers_stop(struct weft__rt *rt) WEFT__HIDDEN;

/* dump.c: add the task's name and where it was made to the line. False: the runtime has no such task. */
struct weft__line;
bool weft__dump_name(struct weft__rt *rt, struct weft__task *task, struct weft__line *line) WEFT__HIDDEN;

/* diagnose.c: if it is wanted. 0 or a negative errno. */
int weft__attendant_start(struct weft__rt *rt, const weft_rt_config_t *config) WEFT__HIDDEN;
void weft__attendant_stop(struct weft__rt *rt) WEFT__HIDDEN;
/* By a worker that nothing has woken for long. */
void weft__look_for_deadlock(struct weft__rt *rt) WEFT__HIDDEN;

/* processors.c: how many workers a runtime has by default; and the quota of the control groups, in processors, where
 * `root` is put before all paths. UINT_MAX: there is none. */
unsigned weft__processors(void) WEFT__HIDDEN;
unsigned weft__quota(const char *root) WEFT__HIDDEN;

/* run.c: add what a worker has counted. */
void weft__worker_stats(const struct weft__worker *w, weft_rt_stats_t *stats) WEFT__HIDDEN;

/* run.c: a runtime without a task; NULL: no memory. And with its first task, which is ready; NULL and a negative
 * errno. */
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
