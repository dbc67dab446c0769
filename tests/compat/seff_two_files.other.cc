// SPDX-License-Identifier: MIT OR Apache-2.0
#include "seff_shared.h"

void *greets(void *arg)
{
	return (void *)(intptr_t)(PERFORM(greet, (const char *)arg) + PERFORM(greet, "again"));
}
