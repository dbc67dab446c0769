/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The place where a debugger stops, in stop(), or where programs examine their own stacks. */
#ifndef WEFT_TESTS_LOOK_H
#define WEFT_TESTS_LOOK_H

#include <stdbool.h>

/* Frames must be visible: neither inlined nor replaced by a jump, and known to dladdr. */
#define FRAME __attribute__((noinline))
#define KEEP() __asm__ volatile("" : : : "memory")

/* "walk": from now on stop() prints the results of backtrace() and _Unwind_Backtrace; "libunwind": libunwind's
 * result. */
bool look_by(const char *mode);
void stop(const char *scenario);

#endif
