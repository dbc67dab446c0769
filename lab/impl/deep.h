/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* deep.h: how large a stack to ask for when the work is known to get deep. */
#ifndef LAB_DEEP_H
#define LAB_DEEP_H

#include <string.h>
#include <weft/weft.h>

enum { LAB_STACK_RESERVE = 64 * 1024 };

/*
 * A stack that cannot grow beyond its reservation has to be as large as the work needs at its deepest; what is asked
 * for includes its guard, of 64 KiB at most. One that grows by linking, or shares a region, is left to begin as it
 * will.
 */
static inline size_t lab_stack_for(size_t bytes)
{
	const char *name = weft_policy_name(weft_default_policy());
	int ends = !strcmp(name, "fixed") || !strcmp(name, "overcommit") || !strcmp(name, "commit");

	return ends ? bytes + 2 * LAB_STACK_RESERVE : 0;
}

#endif /* LAB_DEEP_H */
