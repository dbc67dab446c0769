/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* mechanism.h: contenders that request a mechanism by WEFT_COMMIT are skipped on systems without it. */
#ifndef LAB_MECHANISM_H
#define LAB_MECHANISM_H

#include "lab.h"
#include <weft/stack.h>

static inline void lab_need_mechanism(void)
{
	const char *asked = getenv("WEFT_COMMIT");

	if (asked && *asked && strcmp(asked, weft_commit_mechanism()))
		lab_cannot("WEFT_COMMIT=%s cannot be had here", asked);
}

#endif
