/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* tk_queue.h: a queue of tasks, whose owner pops the oldest, and other threads steal the oldest. See seff_queue.h. */
#ifndef SEFF_TK_QUEUE_H
#define SEFF_TK_QUEUE_H

#include "seff_queue.h"

WEFT_EXTERN_C_BEGIN
SEFF__QUEUE(tk_queue, false)
WEFT_EXTERN_C_END

#endif /* SEFF_TK_QUEUE_H */
