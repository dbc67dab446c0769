/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * weft/sync.h: objects that tasks and threads wait for. Each serves tasks of any worker and plain threads alike.
 *
 *   static void *square(void *numbers)
 *   {
 *           int n;
 *
 *           while (weft_chan_receive(numbers, &n) == 0)
 *                   printf("%d\n", n * n);
 *           return NULL;
 *   }
 *
 *   WEFT_SCOPE(scope);
 *   weft_chan_t *numbers = weft_chan_make(sizeof(int), 16);
 *   weft_scope_spawn(&scope, square, numbers);
 *   for (int n = 1; n <= 3; n++)
 *           weft_chan_send(numbers, &n);
 *   weft_chan_close(numbers);
 *   weft_scope_wait(&scope);
 *   weft_chan_free(numbers);
 *
 * Design
 *  1. Zero-initialised memory is an object that is ready for use, except for channels, join sets and broadcasts. Only
 *     channels need to be destroyed. An object must not be moved or end its life before all calls that wait for it have
 *     returned. After that it may end, even if the call that woke the last waiter is still running: that call does not
 *     access the object any more. So an event may lie in the frame that waits for it, and the last owner of a mutex may
 *     free it after its unlock.
 *  2. An object is a word for the case that nobody waits, and a queue of waiters, first come, first served, under a
 *     spin lock that is held for a few instructions.
 *  3. A call that ends a wait hands over the awaited thing: an item of a channel moves from the sender's variable to
 *     the receiver's, a permit from the giver to the taker. The waiter does not try again, and no other task can take
 *     it. A mutex is the exception: see weft_mutex_t.
 *  4. A hand-over is never lost: a wait that is cancelled, or whose deadline passes, either happened completely or not
 *     at all.
 *  5. A task that never has to wait does not stop other tasks from running. Each call counts as an operation of the
 *     calling task. After at least 128 and at most 256 operations without a switch, the next function that may wait
 *     yields, as weft_task_yield does. If the task is cancelled by then, the function fails as a cancelled wait does,
 *     although it need not wait; only weft_once and its variants do not fail for this reason. A function that never
 *     waits, and a call with the deadline 0, do not suspend the task, so they may be called while a mutex of the system
 *     is locked. A task does not yield for this reason in a tail clause, in a coroutine of the policy "copy", on a
 *     thread of weft_blocking, or if a handler other than the runtime handles its yields. In a simulation a task may
 *     yield at every operation.
 *  6. Wrong use returns an error code and does nothing. For channels this includes NULL in place of the object, because
 *     weft_chan_make may return NULL; for the other objects compilers warn (-Wnonnull).
 *
 * All functions that wait return 0, or
 *   -ETIMEDOUT  the deadline has passed: a time of weft_now(), or WEFT_NEVER; 0: do not wait at all
 *   -ECANCELED  a scope that the task has open was cancelled; if the task itself was, the exception weft_cancelled is
 *               performed in place of a return: see weft/sched.h
 * and suspend the calling task, or block the calling thread. All other functions never wait. None may be called in a
 * signal handler. All are thread-safe. None allocates, except weft_chan_make and a send to an unbounded channel. A wait
 * outside of tasks, in a coroutine that a plain thread resumes, blocks that thread.
 *
 * Source of the ideas: handing over, Concurrent ML and Go; join sets, broadcasts and watches, tokio; a limit on tasks,
 * Go's errgroup.
 */
#ifndef WEFT_SYNC_H
#define WEFT_SYNC_H

#include <weft/sched.h>

#if !defined(__clang__)
#pragma GCC system_header
#endif

WEFT_EXTERN_C_BEGIN

/* For a function whose first argument is an object, and not NULL. */
#define WEFT__NOT_NULL __attribute__((nonnull(1)))

/* A waiter's place in an object's queue. A waiter that waits for several objects has a place for each. */
struct weft__place {
	/* Under the object's lock. */
	struct weft__place *next, *prev;
	bool queued, sends;
	weft_waiter_t *waiter;
	void *value; /* the item to hand over, or the address to receive it at */
	int index;   /* the index of the case, which becomes the waiter's result */
	int status;  /* written by the claimer, if it claims the waiter for this place */
};

/* A queue of waiters, under `lock`. Zero: empty. */
struct weft__queue {
	uint32_t lock;
	struct weft__place *first, *last;
};

/* ---- mutex ----------------------------------------------------------------------------------------------------- */

/**
 * A lock with one owner: a task or a thread, whichever of its coroutines locks and unlocks. Not recursive. An unlock
 * wakes the task that has waited longest, but another task may lock the mutex first. If a woken task has found the
 * mutex locked again four times, the next unlock hands it the mutex.
 */
typedef struct weft_mutex {
	uint32_t state; /* atomic; 0: free, 1: owned; more bits while somebody waits: see src/sync/mutex.c */
	struct weft__queue queue;
	weft_coro_t *owner; /* atomic, relaxed: only the owner compares it with itself; see weft__owner */
} weft_mutex_t;

/** Lock the mutex if it is free. True: the caller has locked it. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT bool weft_mutex_try_lock(weft_mutex_t *m);

/** Lock the mutex. -EDEADLK: the caller has locked it already. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_mutex_lock_until(weft_mutex_t *m, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_mutex_lock(weft_mutex_t *m);

/** Free the mutex, and wake the task that has waited longest, or hand the mutex to that task (see above). 0; -EPERM:
 * the caller does not own it, and nothing is done. */
WEFT__INLINE WEFT__NOT_NULL int weft_mutex_unlock(weft_mutex_t *m);

/* ---- condition ------------------------------------------------------------------------------------------------- */

/** A condition variable, for data that a mutex protects. */
typedef struct weft_cond {
	struct weft__queue queue;
} weft_cond_t;

/**
 * Unlock the mutex, wait for a signal, lock the mutex again. There are no spurious wake-ups, but the state that the
 * signaller saw may have changed since: wait in a loop. The caller owns the mutex again after every return and every
 * exception. With the deadline 0 it is not unlocked.
 * @return also -EPERM: the caller does not own the mutex
 */
__attribute__((noinline, unused)) WEFT__NOT_NULL static int weft_cond_wait_until(weft_cond_t *c, weft_mutex_t *m,
										 uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_cond_wait(weft_cond_t *c, weft_mutex_t *m);

/** Wake the first waiter, or all that wait now. */
WEFT__INLINE WEFT__NOT_NULL void weft_cond_signal(weft_cond_t *c);
WEFT__INLINE WEFT__NOT_NULL void weft_cond_broadcast(weft_cond_t *c);

/* ---- reader-writer lock ---------------------------------------------------------------------------------------- */

/** Many readers or one writer, in the order of arrival: a reader that arrives after a waiting writer waits for it. So a
 * reader must not enter again. */
typedef struct weft_rwlock {
	struct weft__queue queue;
	uint32_t readers;    /* under the queue's lock */
	weft_coro_t *writer; /* under the queue's lock; see weft__owner */
} weft_rwlock_t;

/** Enter as a reader, or as the writer. -EDEADLK: the caller is the writer. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rwlock_read_until(weft_rwlock_t *l, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rwlock_write_until(weft_rwlock_t *l, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_read(weft_rwlock_t *l);
WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_write(weft_rwlock_t *l);

/** Leave the lock, as the reader or the writer that the caller is. 0; -EPERM: nobody is inside, or another task is the
 * writer, and nothing is done. */
WEFT__INLINE WEFT__NOT_NULL int weft_rwlock_unlock(weft_rwlock_t *l);

/* ---- semaphore ------------------------------------------------------------------------------------------------- */

/** A number of permits. */
typedef struct weft_sem {
	struct weft__queue queue;
	size_t permits; /* under the queue's lock */
} weft_sem_t;

/** A semaphore that has permits: weft_sem_t s = WEFT_SEM(3). */
#define WEFT_SEM(permits)                                                                                              \
	{                                                                                                              \
		{0, NULL, NULL}, (permits)                                                                             \
	}

/**
 * Take a number of permits, all at once, or none. First come, first served: neither later waits for fewer permits nor
 * calls with the deadline 0 overtake a wait for many permits.
 * @return as all functions that wait
 */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_sem_take_many_until(weft_sem_t *s, size_t permits,
									  uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_sem_take_many(weft_sem_t *s, size_t permits);

/** Take a permit. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_sem_take_until(weft_sem_t *s, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_sem_take(weft_sem_t *s);

/** Give permits, also more than were taken. 0; -EOVERFLOW: there would be more than SIZE_MAX, and nothing is done. */
WEFT__INLINE WEFT__NOT_NULL int weft_sem_give(weft_sem_t *s, size_t permits);

/* ---- event, wait group, once, barrier -------------------------------------------------------------------------- */

/** An event: it has happened, or not yet. */
typedef struct weft_event {
	struct weft__queue queue; /* under the lock in `state`; its own lock is not used */
	uint32_t state;		  /* atomic: WEFT__SET, and WEFT__LOCKED while the queue is locked */
} weft_event_t;

/** Set the event: it has happened. All current waiters continue, and later waits do not suspend. If it is set already,
 * the call does nothing. */
WEFT__INLINE WEFT__NOT_NULL void weft_event_set(weft_event_t *e);

/** Reset the event: it has not happened. */
WEFT__INLINE WEFT__NOT_NULL void weft_event_reset(weft_event_t *e);
WEFT__INLINE WEFT__NOT_NULL bool weft_event_is_set(const weft_event_t *e);

/** Wait until the event has happened. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_event_wait_until(weft_event_t *e, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_event_wait(weft_event_t *e);

/** A wait group: a number of pieces of work to be done. */
typedef struct weft_group {
	weft_event_t done; /* set while `count` is 0, except before the first call */
	size_t count;	   /* under the lock of `done` */
} weft_group_t;

/** Add to the number of pieces of work, or subtract from it if `more` is negative. 0; -EINVAL: the number would be
 * negative; -EOVERFLOW: it would be more than SIZE_MAX; in both cases nothing is changed. */
WEFT__INLINE WEFT__NOT_NULL int weft_group_add(weft_group_t *g, ptrdiff_t more);
WEFT__INLINE WEFT__NOT_NULL int weft_group_done(weft_group_t *g);

/** Wait until all work is done. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_group_wait_until(weft_group_t *g, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_group_wait(weft_group_t *g);

/** Makes the first caller do something once. All callers must use the same function: weft_once, weft_once_retry, or
 * weft_once_tell. */
typedef struct weft_once {
	weft_event_t done;
	uint32_t begun;	 /* atomic */
	int error;	 /* the result of weft_once_tell */
	weft_coro_t *by; /* atomic, relaxed: only the caller of the function compares it with itself */
} weft_once_t;

/** Call fn(arg), unless another caller did. In that case wait until that call has returned, or was left. A waiter may
 * be cancelled.
 * @param deadline  for the wait; the caller's own call of fn has none
 * @return also -EDEADLK: fn itself calls this, and nothing is done */
WEFT__INLINE WEFT__NOT_NULL int weft_once_until(weft_once_t *o, void (*fn)(void *), void *arg, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_once(weft_once_t *o, void (*fn)(void *), void *arg);

/**
 * Like weft_once_until, but fn(arg) may fail: then it is not done. The caller gets the result of its fn, and the caller
 * that has waited longest calls its own fn next. The next caller also calls its fn if fn is left by an exception or a
 * cancellation.
 * @param fn        returns 0: it is done, for all callers; or another number, usually a negative errno: it has failed
 * @param deadline  for the wait; the caller's own call of fn has none. 0: call fn or return, and do not wait
 * @return 0; the result of the caller's fn; as all functions that wait; -EDEADLK: fn itself calls this
 */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_retry_until(weft_once_t *o, int (*fn)(void *), void *arg,
								       uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_retry(weft_once_t *o, int (*fn)(void *), void *arg);

/** Like weft_once_until, but all callers, also later callers, get the result of fn(arg). -ECANCELED: fn was left by an
 * exception or a cancellation. */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_tell_until(weft_once_t *o, int (*fn)(void *), void *arg,
								      uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_once_tell(weft_once_t *o, int (*fn)(void *), void *arg);

/** A barrier: a point where `parties` tasks or threads meet. It can be used again after each meeting. */
typedef struct weft_barrier {
	struct weft__queue queue;
	uint32_t parties, arrived;
} weft_barrier_t;

#define WEFT_BARRIER(parties)                                                                                          \
	{                                                                                                              \
		{0, NULL, NULL}, (parties), 0                                                                          \
	}

/**
 * Wait for the other parties. A wait that a deadline or a cancellation ends has not arrived: the other parties wait for
 * another party in its place.
 * @param deadline  0: succeed only as the last to arrive
 * @return 1 for the last to arrive, 0 for the other parties; -EINVAL: the barrier has no parties; -ETIMEDOUT,
 *   -ECANCELED
 */
__attribute__((noinline, unused)) WEFT__NOT_NULL static int weft_barrier_wait_until(weft_barrier_t *b,
										    uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_barrier_wait(weft_barrier_t *b);

/* ---- rate ------------------------------------------------------------------------------------------------------ */

/**
 * A limit on how often something is done: once each `interval` nanoseconds on average, and `burst` times in a row after
 * a pause; a burst of 0 counts as 1. The algorithm is the generic cell rate algorithm: a word holds the time at which
 * the rate would be used up, so there is neither a timer nor a lock. weft_rate_t r = WEFT_RATE(1000000, 10);
 */
typedef struct weft_rate {
	uint64_t interval, burst;
	uint64_t next; /* atomic: when the next turn would begin without a burst */
} weft_rate_t;

#define WEFT_RATE(interval, burst)                                                                                     \
	{                                                                                                              \
		(interval), (burst), 0                                                                                 \
	}

/** Wait for the caller's turn. Turns come in the order of the calls.
 * @return as all functions that wait; -ETIMEDOUT at once if the turn would come after the deadline, and no turn is
 * used */
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_rate_wait_until(weft_rate_t *r, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_rate_wait(weft_rate_t *r);

/* ---- future ---------------------------------------------------------------------------------------------------- */

/** A value that is set later, once. */
typedef struct weft_future {
	weft_event_t known;
	void *value;
	int error;
} weft_future_t;

/** Set the value, with error 0, or set an error. 0; -EALREADY: the value was set before, and stays. */
WEFT__INLINE WEFT__NOT_NULL int weft_future_set(weft_future_t *f, void *value, int error);

/** Returns the future's event, for weft_select: it is set when the value is known, and weft_future_get does not wait
 * then. The event is part of the future, and ends with it. */
WEFT__INLINE WEFT__NOT_NULL weft_event_t *weft_future_event(weft_future_t *f);

/** Wait for the value. @param value  written: the value; may be NULL. @return also the error that was set */
WEFT__INLINE WEFT__NOT_NULL int weft_future_get_until(weft_future_t *f, void **value, uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_future_get(weft_future_t *f, void **value);

/* ---- join set -------------------------------------------------------------------------------------------------- */

struct weft_join_set;

/** A task of a join set. The caller owns the record. It must stay in place from its spawn until weft_join_set_next has
 * returned it, or the scope is closed. Afterwards it can serve another spawn. */
typedef struct weft_join_set_task {
	void *result; /**< the value that the function returned; valid when weft_join_set_next has returned the task */
	int error;    /**< the result of weft_join; valid at the same time */
	/** For weft_task_cancel and weft_select; not to be joined. */
	weft_task_t handle;
	weft_fn_t *fn; /**< the arguments of the spawn */
	void *arg;
	/* Private. */
	struct weft_join_set *set;
	struct weft_join_set_task *next;
} weft_join_set_task_t;

/**
 * Tasks of a scope that weft_join_set_next returns one by one, in the order in which they end, and a limit on how many
 * run at a time. Like tokio's JoinSet, and errgroup's SetLimit. A task that fails (weft_task_fail) cancels its scope,
 * as every task does; to fail alone, a task returns its error as its result.
 */
typedef struct weft_join_set {
	struct weft__queue queue; /* callers that wait for the next task */
	weft_scope_t *scope;
	size_t limit;
	weft_sem_t permits;
	/* Under the queue's lock. */
	size_t count;			    /* tasks that weft_join_set_next has not returned */
	weft_join_set_task_t *first, *last; /* a list of those tasks whose functions have returned */
} weft_join_set_t;

/** weft_join_set_t set = WEFT_JOIN_SET(&scope, 10): at most ten tasks run at a time; 0: no limit. */
#define WEFT_JOIN_SET(scope, limit)                                                                                    \
	{                                                                                                              \
		{0, NULL, NULL}, (scope), (limit), WEFT_SEM(limit), 0, NULL, NULL                                      \
	}

/**
 * Start a task of the set's scope. If as many tasks as the limit run, wait until a task has ended. Any task may call
 * it.
 * @param m         owned by the caller
 * @param attr      as for weft_scope_spawn_with; may be NULL
 * @param deadline  for the wait; 0: do not wait
 * @return 0, and the set owns `m` now; an error of all functions that wait, or of weft_scope_spawn: the caller keeps
 *   `m`
 */
__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_join_set_spawn_until(
    weft_join_set_t *s, weft_join_set_task_t *m, weft_fn_t *fn, void *arg, const weft_task_attr_t *attr,
    uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_join_set_spawn(weft_join_set_t *s, weft_join_set_task_t *m,
								     weft_fn_t *fn, void *arg);

/**
 * Wait for the next task that ends.
 * @param m  written: the task, with `result` and `error`; the caller owns it again
 * @return 0; -ENOENT: the set has no task; as all functions that wait: -ECANCELED if the scope is the caller's and is
 *   cancelled, for example because a task has failed. weft_scope_wait returns the reason. A task for whose stack there
 *   is no memory never runs its function: it cancels the scope, and is not returned
 */
__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_join_set_next_until(weft_join_set_t *s,
											    weft_join_set_task_t **m,
											    uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL WEFT__USE_RESULT int weft_join_set_next(weft_join_set_t *s, weft_join_set_task_t **m);

/** Returns the number of tasks that weft_join_set_next has not returned yet. Does not wait. */
WEFT__INLINE WEFT__NOT_NULL size_t weft_join_set_count(weft_join_set_t *s);

/* ---- broadcast and watch --------------------------------------------------------------------------------------- */

/**
 * Items that each receiver sees. The caller's array holds them, as many as it has elements. A sender never waits: it
 * replaces the oldest item. A slower receiver gets the number of items that it has missed. Like tokio's broadcast; with
 * one element, and a value from the beginning, like its watch.
 */
typedef struct weft_broadcast {
	struct weft__queue queue; /* receivers that have seen all items; the fields below are under its lock */
	void *items;		  /* a ring: item n at n % capacity */
	size_t bytes, capacity;
	uint64_t sent;
	bool closed, is_watch;
} weft_broadcast_t;

/** An initializer for a broadcast without an item: struct news last[16]; weft_broadcast_t b = WEFT_BROADCAST(last). The
 * program must not use the array otherwise. */
#define WEFT_BROADCAST(array)                                                                                          \
	{                                                                                                              \
		{0, NULL, NULL}, (array), sizeof(array)[0], sizeof(array) / sizeof(array)[0], 0, false, false          \
	}

/** An initializer for a value that changes: struct settings now = {…}; weft_broadcast_t b = WEFT_WATCH(now). A sender
 * changes the value. A receiver waits for a change since its last receive, and gets the latest value. The first receive
 * does not wait. The program must not use the variable otherwise: weft_broadcast_latest reads it. */
#define WEFT_WATCH(variable)                                                                                           \
	{                                                                                                              \
		{0, NULL, NULL}, &(variable), sizeof(variable), 1, 1, false, true                                      \
	}

/** A receiver, for one task or thread at a time. It needs no destructor. */
typedef struct weft_receiver {
	weft_broadcast_t *from;
	uint64_t next;	 /* the number of the item that it receives next; while it waits: under the broadcast's lock */
	uint64_t missed; /**< written: items that were replaced since the receive before */
	void *item;	 /* the address to receive at, while it waits */
} weft_receiver_t;

/** Returns a receiver for the items that are sent from now on. A receiver of a watch first gets the current value, then
 * its changes. Does not wait. */
WEFT__INLINE WEFT__NOT_NULL weft_receiver_t weft_broadcast_receiver(weft_broadcast_t *b);

/** Send a copy of *item to all receivers. Does not wait. 0; -EPIPE: it is closed. */
WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_send(weft_broadcast_t *b, const void *item);

/** Close the broadcast. Receivers get the items that are kept, then -EPIPE. If it is closed already, the call does
 * nothing. */
WEFT__INLINE WEFT__NOT_NULL void weft_broadcast_close(weft_broadcast_t *b);

/** Copy the item that was sent last, also from a closed broadcast; for a watch this is its value. Does not wait. 0;
 * -ENODATA: no item was sent. */
WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_latest(weft_broadcast_t *b, void *item);

/** Receive the next item that is kept, into *item, and set r->missed. @return 0; -EPIPE: it is closed, and the receiver
 * has received all items; as all functions that wait */
__attribute__((unused)) WEFT__NOT_NULL WEFT__USE_RESULT static int weft_broadcast_receive_until(weft_receiver_t *r,
												void *item,
												uint64_t deadline);
WEFT__INLINE WEFT__NOT_NULL int weft_broadcast_receive(weft_receiver_t *r, void *item);

/* ---- channel --------------------------------------------------------------------------------------------------- */

/** A queue of items of one size, which are copied in and out. */
typedef struct weft_chan weft_chan_t;

/** A capacity that only memory limits. */
#define WEFT_UNBOUNDED SIZE_MAX

/**
 * Make a channel.
 * @param bytes     size of an item; 0: items are signals
 * @param capacity  the number of items that the channel can hold; 0: a sender waits for its receiver; WEFT_UNBOUNDED:
 *                  senders never wait
 * @return the channel, which the caller owns and frees by weft_chan_free; NULL: no memory. With NULL for a channel the
 *   functions below return -EINVAL, unless they say otherwise
 */
WEFT_API WEFT__USE_RESULT weft_chan_t *weft_chan_make(size_t bytes, size_t capacity);

/** Free a channel with the items in it. NULL is allowed. 0; -EBUSY, and nothing is done: a call waits for the channel,
 * or waited and has not left the channel's queue yet. A wait that a deadline, a cancellation or another case of a
 * select has ended uses the channel until it returns. A wait that a send, a receive or weft_chan_close has ended does
 * not. */
WEFT__INLINE int weft_chan_free(weft_chan_t *c);

/** Close the channel. Senders get -EPIPE at once, also waiting senders. Receivers get the items in the channel, then
 * -EPIPE. 0; -EALREADY: it was closed, and nothing is done. */
WEFT__INLINE int weft_chan_close(weft_chan_t *c);

/** Returns the number of items in the channel now; 0 with NULL. */
WEFT__INLINE size_t weft_chan_count(weft_chan_t *c);

/** Send a copy of *item. 0; -EPIPE: the channel is closed; -ENOMEM: the channel is unbounded, and there is no memory;
 * -EINVAL: no item. */
WEFT__INLINE WEFT__USE_RESULT int weft_chan_send_until(weft_chan_t *c, const void *item, uint64_t deadline);
WEFT__INLINE int weft_chan_send(weft_chan_t *c, const void *item);

/** Receive into *item. 0; -EPIPE: the channel is closed, and empty; -EINVAL: `item` is NULL, but items have bytes. */
WEFT__INLINE WEFT__USE_RESULT int weft_chan_receive_until(weft_chan_t *c, void *item, uint64_t deadline);
WEFT__INLINE int weft_chan_receive(weft_chan_t *c, void *item);

/** A case of a select. It waits for the one object of it that is not NULL. A case without an object is never done. */
typedef struct weft_case {
	weft_chan_t *chan;
	const void *send;      /**< the item to send; NULL: receive */
	void *receive;	       /**< the address to receive at */
	int status;	       /**< written: 0, -EPIPE, -ENOMEM; for `ready`: the events, or a negative errno */
	weft_event_t *event;   /**< wait until it is set; for a future: weft_future_event() */
	weft_sem_t *sem;       /**< take a permit */
	weft_receiver_t *from; /**< receive from a broadcast into `receive` */
	/** Wait until the task has ended. weft_join then does not wait. A select does not join: the handle must stay,
	 * and so must the task's scope, which the select uses until it returns, unless the task had ended before.
	 * -EBUSY: another caller or another case waits for this task; -EDEADLK: it is the caller; and no case is
	 * done. */
	weft_task_t *task;
	struct weft_readiness *ready; /**< wait until a descriptor is ready: weft/io.h */
	struct weft__place place;
} weft_case_t;

/**
 * Do one of the cases: the first case that can be done at once, or else the case that can be done first. The other
 * cases have no effect. The objects of all cases must stay until the call returns.
 * @param cases  filled in except for `status`; owned by the caller. An object may be in several cases, except a task
 *               and a descriptor's readiness. -EINVAL: NULL, a case that receives into NULL, a readiness in two cases
 * @param count  1 to WEFT_CASES (-EINVAL else)
 * @return the index of the case, and its `status` is set; or a negative error as above: then no case was done
 */
WEFT__INLINE WEFT__USE_RESULT int weft_select_until(weft_case_t *cases, unsigned count, uint64_t deadline);
WEFT__INLINE int weft_select(weft_case_t *cases, unsigned count);

/** Like weft_select_until, but draws at random among the cases that can be done at once: so a case that can always be
 * done does not starve later cases. */
WEFT__INLINE WEFT__USE_RESULT int weft_select_fair_until(weft_case_t *cases, unsigned count, uint64_t deadline);
WEFT__INLINE int weft_select_fair(weft_case_t *cases, unsigned count);

WEFT_EXTERN_C_END

#include <weft/detail/sync.h>

#endif /* WEFT_SYNC_H */
