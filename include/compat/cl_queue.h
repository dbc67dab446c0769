/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cl_queue.h: a queue of tasks, whose owner pops the newest, and other threads steal the oldest. See seff_queue.h. */
#ifndef SEFF_CL_QUEUE_H
#define SEFF_CL_QUEUE_H

#include "seff_queue.h"

WEFT_EXTERN_C_BEGIN
SEFF__QUEUE(cl_queue, true)
WEFT_EXTERN_C_END

#endif /* SEFF_CL_QUEUE_H */
