// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A program of three files, which is linked in various ways. Its exit code is 0.

int one(void);
int two(void);

int main(void)
{
	return one() + two() - 3;
}
