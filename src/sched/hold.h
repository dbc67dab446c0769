/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For layers above: keep the calling task at its worker, because something belongs to the thread. */
#ifndef WEFT_SRC_SCHED_HOLD_H
#define WEFT_SRC_SCHED_HOLD_H

#include <weft/base.h>

/* What weft__task_let_go is to be given. In a thread: nothing. Pairs nest. */
WEFT_API void *weft__task_hold(void);
WEFT_API void weft__task_let_go(void *before);

#endif
