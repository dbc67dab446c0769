/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The contract between workers and their source of events: of what is neither a task nor a timer, as a socket that can
 * be read. src/io has two sources, epoll and io_uring. A runtime gets its source with its first I/O, by a store into
 * `rt->source` that releases what the source is; it keeps that source until it is freed.
 *
 *   a worker                                     calls
 *   picks tasks, and looks at its timers         take_in, every 0.1 ms about, and more seldom if tasks run long
 *   finds another one held inside a long task    attend, for that one: before it steals, as it watches, as it looks
 *   has nothing to do                            expects, and if that is true take_in and a look at its queues;
 *                                                enter_sleep; if that is true: watch for each worker that is held, if
 *                                                this one watches; sleep, leave_sleep
 *   gets a task, and nobody sleeps there         unattended; then it wakes another worker, which will sleep there
 *   any thread that wakes it                     wake, if it sleeps in the source; else its futex
 *
 * No wake-up is lost: a worker sets `in_source`, then looks at its token, then sleeps; whoever wakes it sets the token,
 * then looks at `in_source`. All of it is sequentially consistent. So either the worker sees the token, or `wake` is
 * called, which ends the sleep that goes on or the next one.
 *
 * What a source does to a task is what any thread may do: claim its waiter, and complete it. A source counts the waits
 * for I/O in `io_began` and `io_ended` of the worker that it does so on: while they differ nothing is a deadlock.
 *
 * In a simulation there is no source; the simulated world takes its place. A runtime without threads (weft_rt_open) has
 * one, never sleeps in it, and adds its descriptor to the set that the program polls.
 */
#ifndef WEFT_SRC_SCHED_EVENT_SOURCE_H
#define WEFT_SRC_SCHED_EVENT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

struct weft__worker;

struct weft__source {
	/* Take in what has happened, and begin what is to begin. By a worker; never waits. */
	void (*take_in)(struct weft__source *source, struct weft__worker *w);
	/* The same for what belongs to `held`, which has been in one task for a while. */
	void (*attend)(struct weft__source *source, struct weft__worker *w, struct weft__worker *held);
	/* What happens to what belongs to `held` is to end the sleep of `w` that comes. False: there is something. */
	bool (*watch)(struct weft__source *source, struct weft__worker *w, struct weft__worker *held);
	/* Is the worker to sleep in it? Then leave_sleep follows; until then `wake` ends a sleep, also one to come. */
	bool (*enter_sleep)(struct weft__source *source, struct weft__worker *w);
	/* Until something has happened, `wake` is called, or that time of weft__clock() comes. */
	void (*sleep)(struct weft__source *source, struct weft__worker *w, uint64_t until);
	void (*leave_sleep)(struct weft__source *source, struct weft__worker *w);
	/* By any thread. */
	void (*wake)(struct weft__source *source, struct weft__worker *w);
	/* Nobody sleeps in it, and somebody should. */
	bool (*unattended)(struct weft__source *source);
	/* Has the worker begun operations that end as soon as they are looked for? Then it looks before it parks. */
	bool (*expects)(struct weft__source *source, struct weft__worker *w);
	/* When no task is left, and no worker runs. */
	void (*free)(struct weft__source *source);
	int descriptor; /* readable when something has happened, for a runtime that has no worker of its own */
};

#endif
