/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * overcommit: the slot is only reserved; the kernel adds a zero page at each first touch, and may run out of memory
 * then. The mechanism is that of fixed, without the accounting.
 */
#include "stack/contiguous.h"

static atomic_size_t committed;

const struct weft__policy weft__overcommit = {
    .name = "overcommit",
    .default_size = 256 * 1024,
    .callers = WEFT__CALLERS_ANY,
    .accounted = false,
    .closed = false,
    .committed = &committed,
    .prepare = weft__contiguous_prepare,
    .discard = weft__contiguous_discard,
    .trim = weft__contiguous_trim,
    .fault = weft__contiguous_fault,
};
