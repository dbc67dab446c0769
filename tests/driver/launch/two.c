// SPDX-License-Identifier: MIT OR Apache-2.0

int two(void);

int two(void)
{
	return 2;
}
