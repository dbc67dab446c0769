/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Compiled with gcc's own -fsplit-stack, not assembled by weft-as: a function that needs more stack than libc's
 * function of the same name, for which instrumented code does not switch stacks. It calls __morestack by the compilers'
 * convention.
 */
int toupper(int c);

int toupper(int c)
{
	volatile char frame[20000];

	frame[0] = (char)c;
	frame[19999] = 32;
	return frame[0] - frame[19999];
}
