/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A canary: map.c, whose function does not yield, so that with the timer off nobody sees the work half done. */
#include <weft/charcoal.h>

#undef yield_now
#define yield_now() (void)0
#include "../../examples/activities/map.c"
