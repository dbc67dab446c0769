/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* deep.h: the stack size to request when the work is known to get deep. */
#ifndef LAB_DEEP_H
#define LAB_DEEP_H

#include <string.h>
#include <weft/weft.h>

enum { LAB_STACK_RESERVE = 64 * 1024 };

/*
 * A stack that cannot grow beyond its reservation must be as large as the work's deepest point needs. The requested
 * size includes its guard of 64 KiB at most. A stack that grows by linking, or shares a region, keeps its default
 * initial size.
 */
static inline size_t lab_stack_for(size_t bytes)
{
	const char *name = weft_policy_name(weft_default_policy());
	int ends = !strcmp(name, "fixed") || !strcmp(name, "overcommit") || !strcmp(name, "commit");

	return ends ? bytes + 2 * LAB_STACK_RESERVE : 0;
}

#endif /* LAB_DEEP_H */
