/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -O1: compile with -fsplit-stack */
/* gcc -fsplit-stack -dp -O1 -flto: drop -flto */
/* gcc -fsplit-stack -dp -O1 -masm=intel: drop -masm=intel */
/* gcc -fsplit-stack -dp -O1 -mcmodel=large: mcmodel=large */
/* clang -O1: compile with -fsplit-stack */
/* clang -fsplit-stack -O1 -fno-verbose-asm: drop -fno-verbose-asm */
int g(int x);

int f(int x)
{
	return g(x) + 1;
}
