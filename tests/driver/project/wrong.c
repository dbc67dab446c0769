// SPDX-License-Identifier: MIT OR Apache-2.0
//
// No compiler takes this.

int main(void)
{
	return undeclared;
}
