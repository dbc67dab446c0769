/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Does not compile, with a warning before. */
int wrong(int x)
{
	int unused;

	return y;
}
