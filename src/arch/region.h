/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fields that assembly uses of copied coroutines: of their records and of regions. stack/copy.h asserts the offsets. */
#ifndef WEFT_SRC_ARCH_REGION_H
#define WEFT_SRC_ARCH_REGION_H

#define WEFT_COPIED_REGION 320
#define WEFT_COPIED_IMAGE 328
#define WEFT_COPIED_SP 336

#define WEFT_REGION_OCCUPANT 0
#define WEFT_REGION_THREAD 8
#define WEFT_REGION_BUSY 24

#define WEFT_THREAD_ENTERING 0

/* The distance from the end of a thread's landing down to where the saved stack pointers of coroutines point: the C
 * functions run above. */
#define WEFT_LANDING_OWN 24576

/* enum weft__busy */
#define WEFT_REGION_IDLE 0
#define WEFT_REGION_RUNNING 1

/* WEFT__COPYING */
#define WEFT_FLAG_COPYING 0x10000
/* WEFT__SECLUDED */
#define WEFT_SECLUDED_BIT 20

#endif
