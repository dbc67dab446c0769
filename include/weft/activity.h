/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/activity.h: activities. An activity is a cooperative thread. The compiler inserts its yields, and its caller
 * decides which code is atomic. Compiled with `weft cc --activities` (clang and our pass; see
 * docs/reference/activities.md):
 *
 *   static void count(long *shared)
 *   {
 *           for (int i = 0; i < 1000; i++)
 *                   ++*shared;                  no other activity runs within this statement
 *   }
 *
 *   int activity_main(void)                     with weft/charcoal.h
 *   {
 *           long shared = 0;
 *           activity_t a, b;
 *
 *           activate(&a) { count(&shared); }
 *           activate(&b) { count(&shared); }
 *           activity_wait(&a), activity_wait(&b);
 *           no_yield { count(&shared); }        nothing else runs until this block ends
 *           return shared != 3000;
 *   }
 *
 * Design
 *  1. Activities of a group take turns on one stack, the *hot stack*. Only one activity of a group runs at a time, and
 *     a switch happens only at a yield: between two yields code is atomic.
 *  2. Each function f that may yield is compiled twice. `f` is plain C. Its *twin* `f.yielding` has a check at its
 *     entry, around calls and on each back-edge, and calls twins. A check is a load and a branch: the group's timer
 *     sets a flag.
 *  3. Code in `no_yield` calls f, not its twin: it runs at the speed of plain C, and no callee can switch. A pointer to
 *     a function is a pointer to f. The address of the twin is stored in front of f, and only twins read it, also when
 *     they call a function of another file by its name: so the linker's choice of f decides.
 *  4. A parked activity is a copy of its frames, made when it parks; the frames return to the same addresses. Twins
 *     keep no data for this purpose: a call costs as much as a call in C. (Rejected: frames on the heap, made by LLVM's
 *     coroutines: a call 4.4 times plain C's, code 9 to 13 times, an order of magnitude more compile time.)
 *  5. Only twins have frames on the hot stack at a switch. The pass keeps variables in blocks of the heap if other code
 *     may know their address, so that pointers to them are valid while their owner is parked.
 *  6. A switch costs the same at any depth. The hot stack is divided into segments of about 1.5 KiB. When an activity
 *     parks again, only its newest segment is copied, and the segments that it has returned to since; a return out of a
 *     segment restores the next segment. A recursion that uses half of the hot stack continues in a stack of the
 *     activity's own, which is not copied.
 *  7. WEFT_ACTIVITIES=stackful runs the same program with a coroutine of any policy for each activity.
 * Targets: a yielding call 3 times plain C's; a parked activity in 80 bytes; a switch in a ring of semaphores in 10 ns,
 * and at any depth in 1.4 times its cost with whole stacks.
 *
 * Thread-safety: an activity, and the data that activities of a group share, belong to the thread that runs the group.
 * Unless their comments say otherwise, only activities of the running group may call these functions. None may be
 * called in a signal handler. Environment: WEFT_ACTIVITY_PERIOD, WEFT_ACTIVITY_STACK, WEFT_ACTIVITIES (copied,
 * stackful, profile) and WEFT_STUCK: see docs/reference/activities.md. Fork: a child of fork has the activity that
 * called fork, and no other. In the child the other activities count as cancelled, but their deferred functions do not
 * run. No timer rings there, and system calls are libc's. A twin that calls vfork calls fork.
 * Source of the ideas: Charcoal (Ylvisaker, 2014): the language, hot stacking; Loom: frames that are copied.
 */
#ifndef WEFT_ACTIVITY_H
#define WEFT_ACTIVITY_H

#include <errno.h>
#include <weft/sched.h>

WEFT_EXTERN_C_BEGIN

typedef struct weft_activity weft_activity_t;

/**
 * An activity. The caller provides it, and keeps it in place until the activity has ended. Private.
 * state:     READY    in the group's run queue                      may be changed to RUNNING by the group
 *            RUNNING  the activity that executes                    to READY, WAITING, ENDED by itself
 *            WAITING  for `object`; the state says its kind         to READY by its waker, or by a cancellation
 *            ENDED    `frames` is its result, no code owns it       to READY by the next activate
 */
struct weft_activity {
	weft_activity_t *next;		 /* in the run queue, or in the queue of the object that it waits for */
	void *frames;			 /* the copy of its frames, while it is parked; its result when it has ended */
	weft_activity_t *waiters;	 /* the activities that wait for its end */
	struct weft__activity_var *vars; /* variables of its frames whose addresses other code may know */
	void *object;			 /* the object that it waits for, or a place in the object's queue: the state
					    says which */
	uint32_t number;		 /* its place in the group's table */
	__extension__ union {
		uint16_t size;	/* the size of `frames`, in units of 16 bytes; 0: `frames` says more */
		uint16_t error; /* when it has ended: its error, an errno */
	};
	uint8_t state, flags;
};

/* ---- running ---------------------------------------------------------------------------------------------------- */

/**
 * A scheduler decides which activity of its group runs next. The library gives it each activity that can run, and
 * requests an activity from it before each switch. While an activity is ready, the scheduler may use its field `next`
 * for a queue. The functions are plain code: they neither wait nor yield, and are called on the hot stack by the
 * group's thread. examples/activities/schedulers.c has priorities and deadlines. Source of the idea: the wish of the
 * Charcoal paper that an application control the scheduler.
 */
typedef struct weft_activity_scheduler {
	/** `a` can run: it has begun, was woken, or has yielded. The calls come in the order of these events. */
	void (*ready)(void *data, weft_activity_t *a);
	/** Returns an activity that was ready, which is not ready any more; NULL: no activity is ready. The scheduler
	 * must return cancelled activities, too, so that they end. */
	weft_activity_t *(*next)(void *data);
	/** Called when the running activity is at a yield after the timer has rung, or at a yield that always switches,
	 * and other activities may be ready. False: it continues. NULL: it always yields. */
	bool (*may_switch)(void *data, weft_activity_t *running);
	void *data; /**< the argument `data` of the functions */
} weft_activity_scheduler_t;

/** The configuration of a group. Zero-initialised: all defaults. Only read during the call. */
typedef struct weft_activity_config {
	/** Nanoseconds between two rings of the timer. 0: 5 ms; WEFT_ACTIVITY_NO_TIMER; WEFT_ACTIVITY_EVERY_YIELD. The
	 * environment's WEFT_ACTIVITY_PERIOD (ns, off, every) overrides it. */
	uint64_t period;
	/** The hot stack's size in bytes, at least 128 KiB. 0: the value of WEFT_ACTIVITY_STACK in the environment,
	 * else the size that the main thread may have (ulimit -s; 8 MiB without a limit). Memory is committed when it
	 * is used. Stackful: the size of each activity's stack, as weft_attr.stack_size. */
	size_t stack_size;
	unsigned flags; /**< WEFT_ACTIVITY_STACKFUL */
	/** NULL: first come, first served. It must stay in place until the group has ended. */
	const weft_activity_scheduler_t *scheduler;
} weft_activity_config_t;

#define WEFT_ACTIVITY_NO_TIMER UINT64_MAX
/** Each yield switches, explicit or inserted by the compiler: for tests. */
#define WEFT_ACTIVITY_EVERY_YIELD 1
/** Flags of weft_activity_config_t. */
enum { WEFT_ACTIVITY_STACKFUL = 1u << 0 /**< a coroutine for each activity, of the policy WEFT_STACK */ };

/**
 * Run fn(arg) as the first activity of a new group on the calling thread, until all activities of the group have ended.
 * In a task the group is part of the task, which waits while no activity can run; elsewhere the call makes a runtime
 * for the group.
 * @param fn      runs in yielding mode if it was compiled with the pass; else as plain C, atomic as a whole
 * @param result  written: the value that fn returned; may be NULL
 * @return 0; -ENOMEM; -EINVAL: fn is NULL, unknown flags, a scheduler without `ready` or `next`; -EDEADLK: all
 *   activities wait, and nothing can wake them: a report on standard error names each activity and the object that it
 *   waits for; they were cancelled
 */
WEFT_API int weft_activity_run(const weft_activity_config_t *config, weft_fn_t *fn, void *arg, void **result);

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/** Returns the running activity; NULL outside of activities. */
WEFT__INLINE weft_activity_t *weft_activity_self(void);

/**
 * The yield that the compiler also inserts: one load of the timer's flag and one branch. It switches if the timer has
 * rung since the last switch and another activity is ready. An activity that calls this in a loop, to wait for another
 * activity, keeps the processor until the timer rings, and for ever if the group has no timer (WEFT_ACTIVITY_NO_TIMER,
 * a child of fork): use a semaphore, a mailbox or weft_activity_give_way instead. A cancelled activity ends here. In
 * no_yield, in code compiled without the pass, in a call through a pointer to this function, and outside of activities
 * it does nothing. May suspend. Source: Charcoal's yield.
 */
WEFT_API void weft_activity_yield(void);

/**
 * Switch to the next activity that is ready, if there is such an activity. A cancelled activity ends here. In no_yield,
 * in code compiled without the pass, in a call through a pointer to this function, and outside of activities it does
 * nothing. May suspend.
 */
WEFT_API void weft_activity_give_way(void);

/** A counting semaphore. WEFT_ACTIVITY_SEM(n) initialises it. Private. */
typedef struct weft_activity_sem {
	long count;
	weft_activity_t *first, *last;
} weft_activity_sem_t;
#define WEFT_ACTIVITY_SEM(n)                                                                                           \
	{                                                                                                              \
		(n), NULL, NULL                                                                                        \
	}

WEFT__INLINE void weft_activity_sem_init(weft_activity_sem_t *s, long count);

/** Wait until the count is positive, and subtract 1 from it. First come, first served. */
WEFT__INLINE void weft_activity_sem_wait(weft_activity_sem_t *s);

/** Wake the activity that has waited longest; if none waits, add 1 to the count. Never switches. */
WEFT__INLINE void weft_activity_sem_post(weft_activity_sem_t *s);

/**
 * Wait until `a` has ended. @return 0, or the negative errno that it ended with: -ECANCELED, -ENOMEM (there was no
 * memory for it)
 */
WEFT__INLINE int weft_activity_wait(weft_activity_t *a);

/** Returns the pointer that an ended activity set by weft_activity_set_result; NULL if it set none. */
WEFT__INLINE void *weft_activity_result(const weft_activity_t *a);

/** Set the pointer that weft_activity_result will return for the running activity. May be called again. */
WEFT_API void weft_activity_set_result(void *result);

/**
 * Cancel an activity: at its next wait or yield it ends with -ECANCELED. Until it has reached that place, each yield of
 * the group switches, also without a timer. Its deferred functions (weft/defer.h) run first, and may wait. If it waits
 * in a call such as read, the call is withdrawn; if it waits for work on a helper thread (getaddrinfo), it ends when
 * that work is complete. An activity that has not begun never runs. If the activity has ended, the call does nothing.
 * An activity may cancel activities of the same group, and itself. Never switches.
 */
WEFT_API void weft_activity_cancel(weft_activity_t *a);

/**
 * Make a handle on the heap, for one activate. It is freed when its activity has ended and it has been detached. NULL:
 * no memory, or outside of activities.
 */
WEFT_API weft_activity_t *weft_activity_new(void);

/** Tell the library that nobody will wait for `a`. A handle of weft_activity_new must not be used any more. Any other
 * handle must stay in place until the activity has ended. */
WEFT_API void weft_activity_detach(weft_activity_t *a);

/** Wait until a time of weft_now(), or for some nanoseconds. A sleep is never shorter. */
WEFT__INLINE void weft_activity_sleep_until(uint64_t when);
WEFT__INLINE void weft_activity_sleep(uint64_t nanoseconds);

/* ---- objects of your own ---------------------------------------------------------------------------------------- */

/**
 * The base of a program's own objects to wait for. An activity parks at a waker; any activity of the group and any
 * other thread that has the waker can wake it. The waker remembers one wake that comes before the park. One activity at
 * a time may park. Zero-initialised memory is ready for use. It must stay in place until a weft_activity_wake that ends
 * a park has returned. Private.
 */
typedef struct weft_activity_waker {
	struct weft_activity_waker *next;
	weft_activity_t *activity;
	struct weft__activity_group *group;
	uint32_t state; /* atomic */
	bool local;	/* only its own group wakes it: if no other event can happen either, this is a deadlock */
} weft_activity_waker_t;

/** Wait until weft_activity_wake has been called since the last park at this waker. */
WEFT__INLINE void weft_activity_park(weft_activity_waker_t *w);

/** End a park, or the next park. Any thread may call it; never switches. */
WEFT_API void weft_activity_wake(weft_activity_waker_t *w);

/* ---- messages --------------------------------------------------------------------------------------------------- */

/** A queue of pointers between activities: of one group, or of groups on several threads. Private. */
typedef struct weft_activity_mail {
	uint32_t lock, flags;
	bool closed;
	size_t count, capacity, room, head;
	void **ring;
	struct weft__mail_turn *receivers, *senders;
} weft_activity_mail_t;

/** Flags of weft_activity_mail_init. */
enum {
	/** Activities of several groups, or threads, use it. (Without the flag, a wait for it can be a deadlock.) */
	WEFT_ACTIVITY_SHARED = 1u << 0,
};

/** Initialise a mailbox. @param capacity  messages that can wait in it, at least 1; WEFT_ACTIVITY_UNBOUNDED: senders
 * never wait */
WEFT_API void weft_activity_mail_init(weft_activity_mail_t *m, size_t capacity, unsigned flags);
#define WEFT_ACTIVITY_UNBOUNDED SIZE_MAX
/** Free the mailbox's memory; nobody may wait for it. */
WEFT_API void weft_activity_mail_end(weft_activity_mail_t *m);
/** Close the mailbox. Senders get -EPIPE, also waiting senders. Receivers get the messages that are there, then
 * -EPIPE. */
WEFT_API void weft_activity_mail_close(weft_activity_mail_t *m);
/** Send or receive without waiting. Any thread may call these: 0; -EAGAIN: the mailbox is full, or empty; -EPIPE;
 * -ENOMEM. */
WEFT_API int weft_activity_try_send(weft_activity_mail_t *m, void *message);
WEFT_API int weft_activity_try_receive(weft_activity_mail_t *m, void **message);

/** Send a message; wait while the mailbox is full. 0; -EPIPE: it is closed; -ENOMEM. */
WEFT__INLINE int weft_activity_send(weft_activity_mail_t *m, void *message);

/** Wait for a message. 0; -EPIPE: the mailbox is closed, and empty; -ENOMEM. */
WEFT__INLINE int weft_activity_receive(weft_activity_mail_t *m, void **message);

/* ---- groups ----------------------------------------------------------------------------------------------------- */

typedef struct weft__activity_group weft_activity_group_t;

/**
 * Returns the running activity's group, for other threads. The group exists, even without activities, until
 * weft_activity_group_release has been called as often as this function. NULL outside of activities.
 */
WEFT_API weft_activity_group_t *weft_activity_group(void);
/** Release a group that weft_activity_group returned. Any thread may call it. NULL: nothing is done. */
WEFT_API void weft_activity_group_release(weft_activity_group_t *group);

/**
 * Start an activity in a group. Any thread that holds the group (see above) may call it. The activity runs fn(arg), in
 * yielding mode if fn was compiled with the pass. 0: it will run as soon as there is memory for it; -ENOMEM; -EINVAL:
 * `group` or `fn` is NULL.
 */
WEFT_API int weft_activity_post(weft_activity_group_t *group, weft_fn_t *fn, void *arg);

/**
 * Write the state of each activity of the calling thread's group to a file descriptor: whether it runs, the object that
 * it waits for, and the calls in which it waits. 0; -EPERM: no group runs here; an error of write.
 */
WEFT_API int weft_activity_dump(int fd);

/**
 * Call fn(arg, low, high) for each range of memory in which activities of the running group have frames, or variables
 * whose addresses other code may know: for a garbage collector that searches pointers. The ranges contain all data of
 * the running activity, except registers, which the caller can save in its frame by __builtin_unwind_init() (setjmp
 * does not do: glibc encrypts the frame pointer in a jmp_buf). They are valid until the next yield.
 * @param fn  plain code; neither waits nor yields, nor activates
 * @return 0; -EPERM: outside of activities; -ENOTSUP: the group is stackful
 */
WEFT_API int weft_activity_each_range(void (*fn)(void *arg, const void *low, const void *high), void *arg);

/* ---- activating (see "The block of activate" in docs/reference/activities.md) ------------------------------------ */

/**
 * weft_activate(handle, variables…) { … }: a new activity runs the block; the activating activity continues. Variables
 * of the enclosing function are shared, except the listed variables (at most 8), whose values are copied now. If there
 * is no memory, both activities fail with ENOMEM.
 */
#define weft_activate(...)                                                                                             \
	WEFT__ACTIVATE(WEFT__A_CAT(weft__activate_, __LINE__),                                                         \
		       WEFT__A_CAT(WEFT__A_, WEFT__A_COUNT(__VA_ARGS__))(__VA_ARGS__))
/** Like weft_activate, without a handle: nobody can wait for the activity. */
#define weft_activate_detached(...) WEFT__A_CAT(WEFT__A_DETACHED_, WEFT__A_EMPTY(__VA_ARGS__))(__VA_ARGS__)
/** weft_no_yield { … }: in the block, and in all functions that it calls, no yield switches. */
#define weft_no_yield WEFT__SCOPE_MARK(WEFT__A_CAT(weft__no_yield_, __LINE__), weft__no_yield_begin, weft__no_yield_end)
/** Like weft_no_yield, for an expression. */
#define weft_no_yield_expr(e)                                                                                          \
	__extension__({                                                                                                \
		int weft__mark __attribute__((cleanup(weft__no_yield_end), unused)) = weft__no_yield_begin();          \
		(e);                                                                                                   \
	})
/** weft_no_implicit_yield { … }: the compiler inserts no yields in the block; functions that the block calls have
 * yields. */
#define weft_no_implicit_yield                                                                                         \
	WEFT__SCOPE_MARK(WEFT__A_CAT(weft__no_implicit_, __LINE__), weft__no_implicit_begin, weft__no_implicit_end)
/** An attribute of a function: it has no twin, so every call of it is atomic. */
#define WEFT_NO_YIELD __attribute__((annotate("weft.no_yield")))
/** An attribute of a function: no yields are inserted into it. */
#define WEFT_NO_IMPLICIT_YIELD __attribute__((annotate("weft.no_implicit_yield")))

WEFT_EXTERN_C_END

#include <weft/detail/activity.h>

#endif
