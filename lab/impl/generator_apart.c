/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 generator, where the consumer calls a function that is not inlined, and that function resumes.
 *
 * The processor predicts the target of a return from the sequence of earlier calls. It sees the calls and returns of
 * the walk and of this function as one sequence, although each stack has its own sequence. So it mispredicts the return
 * of this function, and each return of the walk between two values. The hand-written switch has that cost too.
 */
#include "lab.h"

#define GENERATOR_NEXT LAB_NOINLINE
#include "generator.c"
