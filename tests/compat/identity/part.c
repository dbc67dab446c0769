/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiled many times, with PART defined as 0, 1, … */
#include "shared.h"

static int perform(int part)
{
	note(part);
	return shared(part) + twice(part);
}

static void fail(int part)
{
	shared_failure(part);
}

static const weft_effect_t *identity(int which)
{
	const weft_effect_t *const effects[] = {&weft_effect_shared, &weft_effect_shared_failure, &weft_effect_both,
						&weft_effect_twice,  &weft_effect_note,		  NULL};

	return effects[which];
}

#ifdef __cplusplus
extern "C"
#endif
    WEFT_API const struct part PART_NAME(PART);
const struct part PART_NAME(PART) = {perform, fail, identity};
