/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mmu: a store in each prologue faults if the frame does not fit, and the handler continues at __morestack. The rest is
 * in linked.c. */
#define WEFT__PART_LINKED
#include "stack/policy.h"

static atomic_size_t committed;

const char weft__with_mmu;

const struct weft__policy weft__mmu = {
    .name = "mmu",
    .default_size = 256 * 1024,
    .callers = WEFT__CALLERS_CLOSED,
    .closed = true,
    .linked = true,
    .tiny = false,
    .committed = &committed,
    .prepare = weft__linked_prepare,
    .discard = weft__linked_discard,
    .trim = weft__linked_trim,
    .fault = weft__linked_fault,
};
