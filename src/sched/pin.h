/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For layers above: keep the calling task at its worker, since something belongs to the thread; say what runs in it. */
#ifndef WEFT_SRC_SCHED_PIN_H
#define WEFT_SRC_SCHED_PIN_H

#include <weft/sched.h>

#include "internal/message.h"

/* What weft__task_let_go is to be given. In a thread: nothing. Pairs nest. */
WEFT_API void *weft__task_hold(void);
WEFT_API void weft__task_let_go(void *before);

/*
 * A scope of a task, in which a layer above runs more than tasks. weft_dump has `tell` call `line` once for each: by
 * any thread, with locks of dumps held, while the task waits and is kept from going on, so that what runs in it stands
 * still.
 */
struct weft__inside {
	weft_scope_t scope;
	void (*tell)(const struct weft__inside *inside, void (*line)(const struct weft__line *line, void *arg),
		     void *arg);
};

/* As weft_scope_open, and `tell` is set. */
WEFT_API void weft__inside_open(struct weft__inside *inside);
/* No dump asks any more. */
WEFT_API void weft__inside_leave(struct weft__inside *inside);

#endif
