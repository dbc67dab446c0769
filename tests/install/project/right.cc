/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "beacon.h"

int right_sum(int n)
{
	int sum = 0;

	for (; n > 0; n--)
		sum += beacon("right", n);
	return sum;
}

const weft_effect_t *right_effect(void)
{
	return &weft_effect_beacon;
}
