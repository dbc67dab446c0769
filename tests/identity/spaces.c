/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Performs effects that C++ namespaces declare (spaces.cc). */
#include <weft/weft.h>

WEFT_FAMILY(state, (int, get), (void, put, int, value));
#define WEFT_NAMESPACE two
WEFT_FAMILY_AS(two_, state, (int, get), (void, put, int, value));
#undef WEFT_NAMESPACE
#define WEFT_NAMESPACE two.deep
WEFT_FAMILY_AS(deep_, state, (int, get), (void, put, int, value));

int c_gets(void);
int c_gets_two(void);
int c_gets_deep(void);
void *c_puts_deep(void *unused);

int c_gets(void)
{
	return get();
}

int c_gets_two(void)
{
	return two_get();
}

int c_gets_deep(void)
{
	return deep_get();
}

void *c_puts_deep(void *unused)
{
	for (int i = 1; i <= 3; i++)
		deep_put(i);
	return unused;
}
