/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * mem/seff_mem_common.h: libseff's own variables for the sizes of stacks, which its environment variables set. Weft has
 * one variable, WEFT_STACK, and a program cannot change it while it runs.
 */
#ifndef SEFF_MEM_COMMON_H
#define SEFF_MEM_COMMON_H

#include <stdio.h>
#include <string.h>

#include "seff_mem.h"

#endif /* SEFF_MEM_COMMON_H */
