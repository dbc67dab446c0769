/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the environment says about stacks. Read once, at first use. */
#ifndef WEFT_SRC_STACK_CONFIG_H
#define WEFT_SRC_STACK_CONFIG_H

#include <weft/stack.h>

/* The size of stacks of this policy that do not ask for one. */
size_t weft__config_size(weft_policy_t policy);

/* The budget that `commit` starts with. */
size_t weft__config_budget(void);

#endif
