/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Settings for stacks from the environment. Read once, at first use. */
#ifndef WEFT_SRC_STACK_CONFIG_H
#define WEFT_SRC_STACK_CONFIG_H

#include <weft/stack.h>

/* The size of stacks of this policy if the program asks for none. */
size_t weft__config_size(weft_policy_t policy);

/* The budget that `commit` starts with. */
size_t weft__config_budget(void);

/* Does WEFT_COMMIT ask for userfaultfd? The second function reports that it does, and was refused for that reason. */
bool weft__config_wants_missing(void);
void weft__config_refuse_missing(const char *why);
/* May probes become comparisons? */
bool weft__config_learns_probes(void);

#endif
