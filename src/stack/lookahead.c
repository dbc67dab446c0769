/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* lookahead: the checkpoints of a call graph check the room for all calls up to the next checkpoint. The rest is in
 * linked.c. */
#define WEFT__PART_LINKED
#include "stack/policy.h"

static atomic_size_t committed;

const char weft__with_lookahead;

const struct weft__policy weft__lookahead = {
    .name = "lookahead",
    .default_size = 256 * 1024,
    .callers = WEFT__CALLERS_ANY,
    .closed = true,
    .linked = true,
    .tiny = true,
    .committed = &committed,
    .prepare = weft__linked_prepare,
    .discard = weft__linked_discard,
    .trim = weft__linked_trim,
    .fault = weft__linked_fault,
};
