/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fixed: the whole slot is usable from the start, and kernels that count memory count all of it, so that every page of
 * an existing stack can always be touched.
 */
#include "stack/contiguous.h"

static atomic_size_t committed;

const struct weft__policy weft__fixed = {
    .name = "fixed",
    .default_size = 64 * 1024,
    .callers = WEFT__CALLERS_ANY,
    .accounted = true,
    .closed = false,
    .committed = &committed,
    .prepare = weft__contiguous_prepare,
    .discard = weft__contiguous_discard,
    .trim = weft__contiguous_trim,
    .fault = weft__contiguous_fault,
};
