/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the environment says about stacks. Read once, at first use. */
#ifndef WEFT_SRC_STACK_CONFIG_H
#define WEFT_SRC_STACK_CONFIG_H

#include <weft/stack.h>

/* The size of stacks of this policy that do not ask for one. */
size_t weft__config_size(weft_policy_t policy);

/* The budget that `commit` starts with. */
size_t weft__config_budget(void);

/* Does WEFT_COMMIT ask for userfaultfd? Said: that it does, and that this was refused for that reason. */
bool weft__config_wants_missing(void);
void weft__config_refuse_missing(const char *why);
/* May probes become comparisons? */
bool weft__config_learns_probes(void);

#endif
