/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* gcc -fsplit-stack -dp -O1 -mindirect-branch=thunk: retpolines */
int f(int (*g)(int))
{
	return g(1) + 1;
}
