/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Handles what both libraries perform. Also compiled as C++. */
#include <stdio.h>

#include "beacon.h"

static void *work(void *result)
{
	*(int *)result = left_sum(10) + right_sum(20);
	return result;
}

int main(void)
{
	const weft_effect_t *here = &weft_effect_beacon;
	int requests = 0, sum = 0;
	weft_coro_t *k = weft_create(work, &sum);
	weft_request_t r;

	if (here != left_effect() || here != right_effect()) {
		printf("three effects instead of one: %p %p %p\n", (const void *)here, (const void *)left_effect(),
		       (const void *)right_effect());
		return 1;
	}
	weft_handle (r, k, beacon) {
		weft_reply(beacon, r, 2);
		requests++;
	}
	if (weft_state(k) != WEFT_FINISHED) {
		puts("the program and the library disagree about states");
		return 1;
	}
	weft_delete(k);
	printf("%d requests, sum %d\n", requests, sum);
	return requests != 30 || sum != 60;
}
