/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/activity.h: activities. An activity is a cooperative thread whose yields the compiler inserts, and whose caller
 * decides what is atomic. Compiled with `weft cc --activities` (clang and our pass; see docs/activities.md):
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
 *  1. Activities of a group take turns on one stack, the *hot stack*. Only one of a group runs at a time, and a switch
 *     happens only at a yield: between two yields code is atomic.
 *  2. Each function f that may yield is compiled twice. `f` is plain C. Its *twin* `f.yielding` has a check at its
 *     entry, around calls and on each back-edge, and calls twins. A check is a load and a branch: the group's timer
 *     sets a flag.
 *  3. Code in `no_yield` calls f, not its twin: it runs at the speed of plain C, and no callee can switch. A pointer to
 *     a function is a pointer to f; in front of f stands where its twin is, and only twins look there, also when they
 *     call a function of another file by its name: so the linker's choice of f decides.
 *  4. A parked activity is a copy of its frames, made when it parks; they come back at the same addresses. Twins keep
 *     nothing for this: a call costs what a call in C costs. (Rejected: frames on the heap, made by LLVM's coroutines:
 *     a call 4.4 times plain C's, code 9 to 13 times, an order of magnitude more compile time.)
 *  5. Only twins have frames on the hot stack at a switch. Variables whose address may be known to others are kept in
 *     blocks of the heap by the pass, so that pointers to them are good while their owner is parked.
 *  6. A switch costs the same at any depth. The hot stack is divided into segments of about 1.5 KiB. An activity that
 *     parks again has its newest segment copied, and those that it has returned to since; a return out of a segment
 *     brings back the next one. A recursion that uses half of the hot stack goes on in a stack of the activity's own,
 *     which is not copied.
 *  7. WEFT_ACTIVITIES=stackful runs the same program with a coroutine of any policy for each activity.
 * To reach: a yielding call 3 times plain C's; a parked activity in 80 bytes; a switch in a ring of semaphores in 10
 * ns, and at any depth in 1.4 times what it costs with whole stacks.
 *
 * Thread-safety: an activity, and what activities of a group share, belongs to the thread that runs the group.
 * Functions are for activities of the running group unless they say otherwise. None may be called in a signal handler.
 * Environment: WEFT_ACTIVITY_PERIOD, WEFT_ACTIVITY_STACK, WEFT_ACTIVITIES (copied, stackful, profile) and WEFT_STUCK:
 * see docs/activities.md.
 * Fork: a child of fork has the activity that called fork, and no other: in the child these count as cancelled, without
 * what they have deferred. No timer rings there, and system calls are libc's. A twin that calls vfork calls fork.
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
 * state:     READY    in the group's run queue             may be left to RUNNING by the group
 *            RUNNING  the one that executes                to READY, WAITING, ENDED by itself
 *            WAITING  for `object`; the state says what    to READY by who wakes it, or cancels it
 *            ENDED    `frames` is its result, nobody's     to READY by the next activate
 */
struct weft_activity {
	weft_activity_t *next;		 /* in the run queue, or the queue of what it waits for */
	void *frames;			 /* their copy, while it is parked; its result when it has ended */
	weft_activity_t *waiters;	 /* who waits for its end */
	struct weft__activity_var *vars; /* variables of its frames that others may know */
	void *object;			 /* what it waits for */
	uint32_t number;		 /* its place in the group's table */
	__extension__ union {
		uint16_t size;	/* of `frames`, in units of 16 bytes; 0: `frames` says more */
		uint16_t error; /* when it has ended: its errno */
	};
	uint8_t state, flags;
};

/* What twins look at, of the group that runs on this thread. Offsets are known to the pass and to assembly. */
struct weft__activity_hot {
	uintptr_t limit;    /* a stack pointer below it must be looked at: UINTPTR_MAX when the timer has rung */
	uint32_t flag;	    /* the timer has rung: written by another thread */
	uint32_t arguments; /* for weft__activity_fresh: bytes of arguments on the stack */
	void *target;	    /* for weft__activity_fresh: what to call */
	weft_activity_t *self;
	struct weft__activity_group *group;
	uintptr_t full; /* what `limit` is when the timer has not rung: below it the stack is nearly full */
};
WEFT_API extern __thread struct weft__activity_hot weft__activity_hot __attribute__((tls_model("initial-exec")));

/* ---- running ---------------------------------------------------------------------------------------------------- */

/**
 * A scheduler decides which activity of its group runs next. The library hands over each activity that can run, and
 * asks for one whenever another is to run. While an activity is ready, its field `next` is yours, for a queue. The
 * functions are plain code: they neither wait nor yield, and are called on the hot stack by the group's thread.
 * examples/activities/schedulers.c has priorities and deadlines.
 * Source of the idea: the wish of the Charcoal paper that an application control the scheduler.
 */
typedef struct weft_activity_scheduler {
	/** `a` can run: it has begun, was woken, or has given way. Calls come in the order in which that happened. */
	void (*ready)(void *data, weft_activity_t *a);
	/** The function returns an activity that was ready, and is not any more; NULL: no activity is ready. A
	 * cancelled activity is to run, too: it ends. */
	weft_activity_t *(*next)(void *data);
	/** The running activity is at a yield after the timer has rung, or at one that always switches, and others may
	 * be ready: false lets it go on. NULL: it always gives way. */
	bool (*may_switch)(void *data, weft_activity_t *running);
	void *data; /**< the functions get it */
} weft_activity_scheduler_t;

/** How a group is to be. Zero-initialised: all defaults. Only read during the call. */
typedef struct weft_activity_config {
	/** Nanoseconds between two rings of the timer. 0: 5 ms; WEFT_ACTIVITY_NO_TIMER; WEFT_ACTIVITY_EVERY_YIELD. The
	 * environment's WEFT_ACTIVITY_PERIOD (ns, off, every) overrides it. */
	uint64_t period;
	/** The hot stack's size in bytes, at least 128 KiB. 0: what the environment's WEFT_ACTIVITY_STACK says, else as
	 * much as the main thread may have (ulimit -s; 8 MiB without a limit). Memory is taken as it is used.
	 * Stackful: the size of each activity's stack, as weft_attr.stack_size. */
	size_t stack_size;
	unsigned flags; /**< WEFT_ACTIVITY_STACKFUL */
	/** NULL: first come, first served. It must stay in place until the group has ended. */
	const weft_activity_scheduler_t *scheduler;
} weft_activity_config_t;

#define WEFT_ACTIVITY_NO_TIMER UINT64_MAX
/** Each yield switches, explicit or inserted by the compiler: for tests. */
#define WEFT_ACTIVITY_EVERY_YIELD 1
enum { WEFT_ACTIVITY_STACKFUL = 1u << 0 /**< a coroutine for each activity, of the policy WEFT_STACK */ };

/**
 * Run fn(arg) as the first activity of a new group on the calling thread, until all activities of the group have ended.
 * In a task the group is part of the task, which waits while no activity can run; elsewhere a runtime is made for it.
 * @param fn      runs in yielding mode if it was compiled with the pass; else as plain C, atomic as a whole
 * @param result  what fn returned; may be NULL
 * @return 0; -ENOMEM; -EINVAL: fn is NULL, unknown flags, a scheduler without `ready` or `next`; -EDEADLK: all
 *   activities wait, and nothing can wake one: a report on standard error names each, and what it waits for; they were
 *   cancelled
 */
WEFT_API int weft_activity_run(const weft_activity_config_t *config, weft_fn_t *fn, void *arg, void **result);

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

/* The running activity has been put where its waker will find it: others run. The pass makes it a switch in yielding
 * mode; in plain mode, where it must not switch, and outside of activities it ends the process with a line. */
WEFT_API void weft__activity_park(void);

/** The running activity, or NULL outside of any. */
WEFT__INLINE weft_activity_t *weft_activity_self(void)
{
	return weft__activity_hot.self;
}

/**
 * A yield like those that the compiler inserts: one load of the timer's flag and one branch. It switches if the timer
 * has rung since the last switch and another activity is ready. An activity that waits for another by calling this in a
 * loop keeps the processor until the timer rings, and for ever if the group has no timer (WEFT_ACTIVITY_NO_TIMER, a
 * child of fork): use a semaphore, a mailbox or weft_activity_give_way. A cancelled activity ends here. In no_yield, in
 * code compiled without the pass, in a call through a pointer to this function, and outside of activities: nothing.
 * May suspend. Source: Charcoal's yield.
 */
WEFT_API void weft_activity_yield(void);

/**
 * Switch to the next activity that is ready, if there is one. A cancelled activity ends here. In no_yield, in code
 * compiled without the pass, in a call through a pointer to this function, and outside of activities: nothing.
 * May suspend.
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

WEFT__INLINE void weft_activity_sem_init(weft_activity_sem_t *s, long count)
{
	s->count = count;
	s->first = s->last = NULL;
}

WEFT_API bool weft__activity_sem_begin(weft_activity_sem_t *s);
WEFT_API void weft__activity_sem_wake(weft_activity_sem_t *s);

/** Wait until the count is positive, and take one. First come, first served. */
WEFT__INLINE void weft_activity_sem_wait(weft_activity_sem_t *s)
{
	if (s->count > 0)
		s->count--;
	else if (weft__activity_sem_begin(s))
		weft__activity_park();
}

/** Give one: to who waits longest, else to the count. Never switches. */
WEFT__INLINE void weft_activity_sem_post(weft_activity_sem_t *s)
{
	if (s->first)
		weft__activity_sem_wake(s);
	else
		s->count++;
}

WEFT_API bool weft__activity_wait_begin(weft_activity_t *a);

/**
 * Wait until `a` has ended. @return 0, or the negative errno it ended with: -ECANCELED, -ENOMEM (it could not get
 * memory)
 */
WEFT__INLINE int weft_activity_wait(weft_activity_t *a)
{
	if (weft__activity_wait_begin(a))
		weft__activity_park();
	return -a->error;
}

/** What an activity that has ended said by weft_activity_set_result; NULL if it said nothing. */
WEFT__INLINE void *weft_activity_result(const weft_activity_t *a)
{
	return a->frames;
}

/** What weft_activity_result is to say of the running activity. May be called again. */
WEFT_API void weft_activity_set_result(void *result);

/**
 * Cancel an activity: where it waits, or yields, next, it ends with -ECANCELED. Until it has reached that place, each
 * yield of the group switches, also without a timer. What it has deferred (weft/defer.h)
 * runs first, and may wait. A call such as read that it waits in is withdrawn; what a helper thread does (getaddrinfo)
 * is waited for. An activity that has not begun never runs. One that has ended: nothing.
 * For activities of the same group; also for the caller itself. Never switches.
 */
WEFT_API void weft_activity_cancel(weft_activity_t *a);

/**
 * A handle from the heap, for one activate. It is given back when its activity has ended and it has been detached.
 * NULL: no memory, or outside of activities.
 */
WEFT_API weft_activity_t *weft_activity_new(void);

/** Nobody will wait for `a`. A handle of weft_activity_new is not to be used any more; any other must stay in place
 * until the activity has ended. */
WEFT_API void weft_activity_detach(weft_activity_t *a);

WEFT_API bool weft__activity_sleep_begin(uint64_t when);

/** Wait until a time of weft_now(), or for some nanoseconds. Never shorter. */
WEFT__INLINE void weft_activity_sleep_until(uint64_t when)
{
	if (weft__activity_sleep_begin(when))
		weft__activity_park();
}

WEFT__INLINE void weft_activity_sleep(uint64_t nanoseconds)
{
	uint64_t now = weft_now();

	weft_activity_sleep_until(nanoseconds < WEFT_NEVER - now ? now + nanoseconds : WEFT_NEVER - 1);
}

/* ---- objects of your own ---------------------------------------------------------------------------------------- */

/**
 * What objects of your own are made of: an activity parks at a waker, and whoever has the waker wakes it, from the
 * group or from any other thread. A wake that comes first is remembered, once. One activity at a time.
 * Zero-initialised memory is ready for use. It must stay in place until a weft_activity_wake that ends a park has
 * returned. Private.
 */
typedef struct weft_activity_waker {
	struct weft_activity_waker *next;
	weft_activity_t *activity;
	struct weft__activity_group *group;
	uint32_t state; /* atomic */
	bool local;	/* only its own group wakes it: if nothing else happens either, that is a deadlock */
} weft_activity_waker_t;

WEFT_API bool weft__activity_park_begin(weft_activity_waker_t *w);

/** Wait until somebody has called weft_activity_wake since the last park at this waker. */
WEFT__INLINE void weft_activity_park(weft_activity_waker_t *w)
{
	if (weft__activity_park_begin(w))
		weft__activity_park();
}

/** End a park, or the next one. By any thread; never switches. */
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

enum {
	/** Activities of several groups, or threads, use it. (If not, waiting for it can be a deadlock.) */
	WEFT_ACTIVITY_SHARED = 1u << 0,
};

/** @param capacity  messages that can wait in it; WEFT_ACTIVITY_UNBOUNDED: senders never wait. At least 1 */
WEFT_API void weft_activity_mail_init(weft_activity_mail_t *m, size_t capacity, unsigned flags);
#define WEFT_ACTIVITY_UNBOUNDED SIZE_MAX
/** Give back its memory; nobody may wait for it. */
WEFT_API void weft_activity_mail_end(weft_activity_mail_t *m);
/** No more messages: senders get -EPIPE, also those that wait; receivers what is there, then -EPIPE. */
WEFT_API void weft_activity_mail_close(weft_activity_mail_t *m);
/** Without waiting, and by any thread: 0; -EAGAIN: it is full, or empty; -EPIPE; -ENOMEM. */
WEFT_API int weft_activity_try_send(weft_activity_mail_t *m, void *message);
WEFT_API int weft_activity_try_receive(weft_activity_mail_t *m, void **message);

/* -EINPROGRESS: park; then the second. */
WEFT_API int weft__activity_send_begin(weft_activity_mail_t *m, void *message);
WEFT_API int weft__activity_receive_begin(weft_activity_mail_t *m, void **message);
WEFT_API int weft__activity_send_end(void);
WEFT_API int weft__activity_receive_end(void **message);

/** Send a message; wait while the mailbox is full. 0; -EPIPE: it is closed; -ENOMEM. */
WEFT__INLINE int weft_activity_send(weft_activity_mail_t *m, void *message)
{
	int result = weft__activity_send_begin(m, message);

	if (result != -EINPROGRESS)
		return result;
	weft__activity_park();
	return weft__activity_send_end();
}

/** Wait for a message. 0; -EPIPE: the mailbox is closed, and empty. */
WEFT__INLINE int weft_activity_receive(weft_activity_mail_t *m, void **message)
{
	int result = weft__activity_receive_begin(m, message);

	if (result != -EINPROGRESS)
		return result;
	weft__activity_park();
	return weft__activity_receive_end(message);
}

/* ---- groups ----------------------------------------------------------------------------------------------------- */

typedef struct weft__activity_group weft_activity_group_t;

/**
 * The running activity's group, for other threads. It stays, though it may have no activity, until
 * weft_activity_group_release has been called as often as this. NULL outside of any activity.
 */
WEFT_API weft_activity_group_t *weft_activity_group(void);
/** By any thread. NULL: nothing. */
WEFT_API void weft_activity_group_release(weft_activity_group_t *group);

/**
 * Start an activity in a group, by any thread that holds it (see above): it runs fn(arg), in yielding mode if fn was
 * compiled with the pass. 0: it does, as soon as there is memory for it; -ENOMEM; -EINVAL: one of the first two is
 * NULL.
 */
WEFT_API int weft_activity_post(weft_activity_group_t *group, weft_fn_t *fn, void *arg);

/**
 * Write to a file descriptor what each activity of the calling thread's group does: its state, what it waits for, and
 * the calls in which it waits. 0; -EPERM: no group runs here; what write says.
 */
WEFT_API int weft_activity_dump(int fd);

/**
 * Call fn(arg, low, high) for each range of memory in which activities of the running group have frames, or variables
 * that others may know: for a collector of garbage that looks for pointers. All that the running activity has is there,
 * but for registers, which setjmp in the caller saves. The ranges are right until the next yield.
 * @param fn  plain code; neither waits nor yields, nor activates
 * @return 0; -EPERM: outside of activities; -ENOTSUP: the group is stackful
 */
WEFT_API int weft_activity_each_range(void (*fn)(void *arg, const void *low, const void *high), void *arg);

/* ---- activating (see the macros' ends in docs/activities.md) ---------------------------------------------------- */

/* Markers. The pass takes them away; a program that was compiled without it does not link, and the name says why. */
int weft__activate(void *handle, int count, ...) __asm__("weft_needs_cc_with_activities__activate")
    __attribute__((nothrow));
int weft__activated(int *mark) __asm__("weft_needs_cc_with_activities__activated") __attribute__((nothrow));
int weft__no_yield_begin(void) __asm__("weft_needs_cc_with_activities__no_yield") __attribute__((nothrow));
void weft__no_yield_end(int *mark) __asm__("weft_needs_cc_with_activities__no_yield_end") __attribute__((nothrow));
int weft__no_implicit_begin(void) __asm__("weft_needs_cc_with_activities__no_implicit") __attribute__((nothrow));
void weft__no_implicit_end(int *mark) __asm__("weft_needs_cc_with_activities__no_implicit_end")
    __attribute__((nothrow));

#define WEFT__A_CAT_(a, b) a##b
#define WEFT__A_CAT(a, b) WEFT__A_CAT_(a, b)
/* The number of arguments, at least one: up to 9; MANY if there are more, up to 19. */
#define WEFT__A_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q, r, s, t, n, ...) n
#define WEFT__A_COUNT(...)                                                                                             \
	WEFT__A_COUNT_(__VA_ARGS__, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, MANY, 9, 8, 7, 6, 5, 4, 3,   \
		       2, 1, 0)
/* weft__activate gets the handle, the number of variables, and the address and the size of each variable. */
#define WEFT__A_ONE(a) , &(a), sizeof(a)
#define WEFT__A_LIST1(a) WEFT__A_ONE(a)
#define WEFT__A_LIST2(a, ...) WEFT__A_ONE(a) WEFT__A_LIST1(__VA_ARGS__)
#define WEFT__A_LIST3(a, ...) WEFT__A_ONE(a) WEFT__A_LIST2(__VA_ARGS__)
#define WEFT__A_LIST4(a, ...) WEFT__A_ONE(a) WEFT__A_LIST3(__VA_ARGS__)
#define WEFT__A_LIST5(a, ...) WEFT__A_ONE(a) WEFT__A_LIST4(__VA_ARGS__)
#define WEFT__A_LIST6(a, ...) WEFT__A_ONE(a) WEFT__A_LIST5(__VA_ARGS__)
#define WEFT__A_LIST7(a, ...) WEFT__A_ONE(a) WEFT__A_LIST6(__VA_ARGS__)
#define WEFT__A_LIST8(a, ...) WEFT__A_ONE(a) WEFT__A_LIST7(__VA_ARGS__)
#define WEFT__A_1(handle) (handle), 0
#define WEFT__A_2(handle, ...) (handle), 1 WEFT__A_LIST1(__VA_ARGS__)
#define WEFT__A_3(handle, ...) (handle), 2 WEFT__A_LIST2(__VA_ARGS__)
#define WEFT__A_4(handle, ...) (handle), 3 WEFT__A_LIST3(__VA_ARGS__)
#define WEFT__A_5(handle, ...) (handle), 4 WEFT__A_LIST4(__VA_ARGS__)
#define WEFT__A_6(handle, ...) (handle), 5 WEFT__A_LIST5(__VA_ARGS__)
#define WEFT__A_7(handle, ...) (handle), 6 WEFT__A_LIST6(__VA_ARGS__)
#define WEFT__A_8(handle, ...) (handle), 7 WEFT__A_LIST7(__VA_ARGS__)
#define WEFT__A_9(handle, ...) (handle), 8 WEFT__A_LIST8(__VA_ARGS__)
#define WEFT__A_MANY(...) (void *)0, weft__activate_copies_at_most_8_variables
extern int weft__activate_copies_at_most_8_variables
    __attribute__((unavailable("put the variables into a struct, and list that")));
#define WEFT__ACTIVATE(mark, ...) for (int mark = weft__activate(__VA_ARGS__); mark; mark = weft__activated(&mark))
/* EMPTY or SOME. Without arguments only the third of these has a comma. */
#define WEFT__A_COMMA(...) WEFT__A_COUNT_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)
#define WEFT__A_TO_COMMA(...) ,
#define WEFT__A_EMPTY(...)                                                                                             \
	WEFT__A_EMPTY_(WEFT__A_COMMA(__VA_ARGS__), WEFT__A_COMMA(WEFT__A_TO_COMMA __VA_ARGS__),                        \
		       WEFT__A_COMMA(WEFT__A_TO_COMMA __VA_ARGS__()))
#define WEFT__A_EMPTY_(a, b, c) WEFT__A_EMPTY__(a, b, c)
#define WEFT__A_EMPTY__(a, b, c) WEFT__A_IF_##a##b##c
#define WEFT__A_IF_000 SOME
#define WEFT__A_IF_001 EMPTY
#define WEFT__A_IF_011 SOME
#define WEFT__A_IF_111 SOME
#define WEFT__A_DETACHED_EMPTY(...) weft_activate((void *)0)
#define WEFT__A_DETACHED_SOME(...) weft_activate((void *)0, __VA_ARGS__)
#define WEFT__SCOPE_MARK(mark, begin, end) for (int mark __attribute__((cleanup(end))) = begin(); mark; mark = 0)

/**
 * weft_activate(handle, variables…) { … }: a new activity runs the block; the activating one goes on. Variables of the
 * enclosing function are shared, but for those listed (at most 8), whose values are copied now.
 */
#define weft_activate(...)                                                                                             \
	WEFT__ACTIVATE(WEFT__A_CAT(weft__activate_, __LINE__),                                                         \
		       WEFT__A_CAT(WEFT__A_, WEFT__A_COUNT(__VA_ARGS__))(__VA_ARGS__))
/** The same without a handle: nobody can wait for it. */
#define weft_activate_detached(...) WEFT__A_CAT(WEFT__A_DETACHED_, WEFT__A_EMPTY(__VA_ARGS__))(__VA_ARGS__)
/** weft_no_yield { … }: in the block, and in whatever it calls, no yield switches. */
#define weft_no_yield WEFT__SCOPE_MARK(WEFT__A_CAT(weft__no_yield_, __LINE__), weft__no_yield_begin, weft__no_yield_end)
/** The same for an expression. */
#define weft_no_yield_expr(e)                                                                                          \
	__extension__({                                                                                                \
		int weft__mark __attribute__((cleanup(weft__no_yield_end), unused)) = weft__no_yield_begin();          \
		(e);                                                                                                   \
	})
/** weft_no_implicit_yield { … }: the compiler inserts no yields in the block; in what it calls there are some. */
#define weft_no_implicit_yield                                                                                         \
	WEFT__SCOPE_MARK(WEFT__A_CAT(weft__no_implicit_, __LINE__), weft__no_implicit_begin, weft__no_implicit_end)
/** Of a function: it has no twin; wherever it is called, it is atomic. */
#define WEFT_NO_YIELD __attribute__((annotate("weft.no_yield")))
/** Of a function: no yields are inserted into it. */
#define WEFT_NO_IMPLICIT_YIELD __attribute__((annotate("weft.no_implicit_yield")))

WEFT_EXTERN_C_END

#endif
