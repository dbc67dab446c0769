/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where programs are looked at: by a debugger that stops in stop(), or by themselves. */
#ifndef WEFT_TESTS_LOOK_H
#define WEFT_TESTS_LOOK_H

#include <stdbool.h>

/* Frames must be there to be seen: neither inlined nor replaced by a jump, and visible to dladdr. */
#define FRAME __attribute__((noinline))
#define KEEP() __asm__ volatile("" : : : "memory")

/* "walk": from now on stop() prints what backtrace() and _Unwind_Backtrace see; "libunwind": what that sees. */
bool look_by(const char *mode);
void stop(const char *scenario);

#endif
