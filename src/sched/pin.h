/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For layers above: hold the calling task at its worker, if it uses something of the thread; describe the activities or
 * other runs in a task. */
#ifndef WEFT_SRC_SCHED_PIN_H
#define WEFT_SRC_SCHED_PIN_H

#include <weft/sched.h>

#include "internal/message.h"

/* Holds the task; returns the argument for weft__task_let_go. In a thread it does nothing. Pairs nest. */
WEFT_API void *weft__task_hold(void);
WEFT_API void weft__task_let_go(void *before);

/*
 * A scope of a task in which a layer above runs more than tasks. weft_dump calls `tell`, which calls `line` once for
 * each of them: in any thread, with locks of dumps held, while the task waits and is kept from resuming, so that
 * nothing in it changes.
 */
struct weft__inside {
	weft_scope_t scope;
	void (*tell)(const struct weft__inside *inside, void (*line)(const struct weft__line *line, void *arg),
		     void *arg);
};

/* Like weft_scope_open, and the caller has set `tell`. */
WEFT_API void weft__inside_open(struct weft__inside *inside);
/* After this call no dump calls `tell`. */
WEFT_API void weft__inside_leave(struct weft__inside *inside);

#endif
