/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the default policy and a sum that took 100 MB of stack in a coroutine. */
#include <stdio.h>
#include <weft/weft.h>
#include "depth.h"

static void *run(void *result)
{
	*(long *)result = depth(DEPTH);
	return NULL;
}

int main(void)
{
	long result = 0;
	weft_coro_t *k = weft_create(run, &result);

	if (!k)
		return 1;
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
	printf("%s %ld\n", weft_policy_name(weft_default_policy()), result);
	return result != DEPTH * (DEPTH + 1L) / 2;
}
