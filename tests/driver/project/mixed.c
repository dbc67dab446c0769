// SPDX-License-Identifier: MIT OR Apache-2.0

int seven(void);

int seven(void)
{
	int new = 7;

	return new;
}
