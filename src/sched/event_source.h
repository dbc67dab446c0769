/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract between workers and their source of events. Events are neither tasks nor timers: for example, a socket
 * becomes readable. src/io has two sources, epoll and io_uring. A runtime gets its source with its first I/O, by a
 * store into `rt->source` that releases the source's fields; it keeps that source until it is freed.
 *
 *   a worker                                     calls
 *   picks tasks, and looks at its timers         take_in, every 0.1 ms about, and less often if tasks run long
 *   finds another worker held in a long task     attend, for that worker: before it steals, as it watches, as it looks
 *   has nothing to do                            expects, and if that is true take_in and a look at its queues;
 *                                                enter_sleep; if that is true: watch for each worker that is held, if
 *                                                this one watches; sleep, leave_sleep
 *   gets a task, and nobody sleeps there         unattended; then it wakes another worker, which will sleep there
 *   is woken by any thread                       that thread calls wake, if the worker sleeps in the source; if not, it
 *                                                wakes the worker's futex
 *
 * No wake-up is lost: a worker sets `in_source`, then looks at its token, then sleeps; the thread that wakes it sets
 * the token, then looks at `in_source`. All of it is sequentially consistent. So either the worker sees the token, or
 * the thread calls `wake`, which ends the present sleep or the next one.
 *
 * A source treats a task as any thread may: it claims the task's waiter, and completes it. A source counts the waits
 * for I/O in `io_began` and `io_ended` of the worker that begins or ends them: while the sums differ, idle workers are
 * no deadlock.
 *
 * In a simulation there is no source; the simulated world takes its place. A runtime without threads (weft_rt_open) has
 * a source, never sleeps in it, and adds its descriptor to the set that the program polls.
 */
#ifndef WEFT_SRC_SCHED_EVENT_SOURCE_H
#define WEFT_SRC_SCHED_EVENT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct weft__worker;

struct weft__source {
	/* Take in the events that have happened, and begin queued operations. Called by a worker; never waits. */
	void (*take_in)(struct weft__source *source, struct weft__worker *w);
	/* Like take_in, for events and operations of `held`, which has been in one task for a while. */
	void (*attend)(struct weft__source *source, struct weft__worker *w, struct weft__worker *held);
	/* Arrange that an event for worker `held` ends the next sleep of `w`. False: an event is already pending. */
	bool (*watch)(struct weft__source *source, struct weft__worker *w, struct weft__worker *held);
	/* Should the worker sleep in the source? If true, leave_sleep follows; until then `wake` ends the present sleep
	 * or the next one. */
	bool (*enter_sleep)(struct weft__source *source, struct weft__worker *w);
	/* Sleep until an event happens, `wake` is called, or weft__clock() reaches `until`. */
	void (*sleep)(struct weft__source *source, struct weft__worker *w, uint64_t until);
	void (*leave_sleep)(struct weft__source *source, struct weft__worker *w);
	/* Called by any thread. */
	void (*wake)(struct weft__source *source, struct weft__worker *w);
	/* True: no worker sleeps in the source, and a worker should. */
	bool (*unattended)(struct weft__source *source);
	/* Has the worker begun operations that complete as soon as take_in looks for them? Then it looks before it
	 * parks. */
	bool (*expects)(struct weft__source *source, struct weft__worker *w);
	/* Called when no task is left, and no worker runs. */
	void (*free)(struct weft__source *source);
	int descriptor; /* readable when an event has happened, for a runtime without threads */
};

#endif
