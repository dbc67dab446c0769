/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 generator, where the consumer calls a function that is not inlined, and that function resumes.
 *
 * The processor predicts where a return goes by the order of the calls before it. It sees the calls and returns of the
 * walk and those of this function as one order, but each stack has an order of its own. So it predicts wrongly where
 * this function returns to, and each return of the walk between two values. The hand-written switch has that cost too.
 */
#include "lab.h"

#define GENERATOR_NEXT LAB_NOINLINE
#include "generator.c"
