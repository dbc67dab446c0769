/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the effect layer share. */
#ifndef WEFT_SRC_EFFECT_EFFECT_H
#define WEFT_SRC_EFFECT_EFFECT_H

#include <weft/effect.h>

#include "coro/coro.h"

/* The handler whose table a coroutine's resumer handles by; NULL if it is no table. */
static inline const weft_handler_t *weft__handler_of(uintptr_t handled)
{
	return weft__handles_table(handled) ? (const weft_handler_t *)(handled & ~(uintptr_t)7) : NULL;
}

#endif
