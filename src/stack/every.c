/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What programs have that do not say which policies they use: all. See policies.c. */
#include <weft/policies.h>

WEFT_POLICIES(commit, segmented, heap, lookahead, mmu, copy);
