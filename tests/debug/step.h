/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The functions that a program calls before and after the code that the lane executes instruction by instruction. */
#ifndef WEFT_TESTS_STEP_H
#define WEFT_TESTS_STEP_H

#include "look.h"

FRAME void step_begin(void);
FRAME void step_begin(void)
{
	KEEP();
}

FRAME void step_end(void);
FRAME void step_end(void)
{
	KEEP();
}

#endif
