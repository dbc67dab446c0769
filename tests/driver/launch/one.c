// SPDX-License-Identifier: MIT OR Apache-2.0

int one(void);

int one(void)
{
	return 1;
}
