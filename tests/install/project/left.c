/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "beacon.h"

int left_sum(int n)
{
	int sum = 0;

	while (n--)
		sum += beacon("left", n);
	return sum;
}

const weft_effect_t *left_effect(void)
{
	return &weft_effect_beacon;
}
