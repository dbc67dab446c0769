/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that fixed and overcommit share: slots that may be touched everywhere above the guard. */
#ifndef WEFT_SRC_STACK_CONTIGUOUS_H
#define WEFT_SRC_STACK_CONTIGUOUS_H

#include "stack/policy.h"

int weft__contiguous_prepare(const struct weft__policy *self, struct weft__slot *slot, char *start, char *low);
size_t weft__contiguous_discard(const struct weft__policy *self, struct weft__slot *slot);
size_t weft__contiguous_trim(struct weft__slot *slot, char *to);
enum weft__fault weft__contiguous_fault(struct weft__slot *slot, char *address);

#endif
