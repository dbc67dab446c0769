/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* weft/weft.h: all of Weft. */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <weft/base.h>
#include <weft/stack.h>
#include <weft/coro.h>
#include <weft/copy.h>
#include <weft/handler.h>
#include <weft/effect.h>
#include <weft/defer.h>
#include <weft/thread.h>

#endif /* WEFT_WEFT_H */
