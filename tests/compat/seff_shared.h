/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "seff.h"

DEFINE_EFFECT(greet, 9, int, { const char *name; });

#ifdef __cplusplus
extern "C"
#endif
    void *
    greets(void *arg);
