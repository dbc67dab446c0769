/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For written.py: functions that others can reach, and a function that they cannot. */
int puts(const char *text);

__attribute__((noinline)) static int hidden(int x)
{
	return puts("a") + x;
}

int shown(int x)
{
	return hidden(x) + hidden(1);
}

__attribute__((weak)) int weak(int x)
{
	return hidden(x) + 2;
}
