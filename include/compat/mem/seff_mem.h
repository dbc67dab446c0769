/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mem/seff_mem.h: programs written for libseff include this file, which declares how libseff takes a frame from its
 * memory. They call nothing of it: seff_coroutine_new and seff_coroutine_init (seff.h) take stacks from Weft's pool.
 */
#ifndef SEFF_MEM_H
#define SEFF_MEM_H

#include <stdlib.h>

#include "../seff_types.h"

#endif /* SEFF_MEM_H */
