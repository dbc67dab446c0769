/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Two files have a family `state` with an operation `get`, of other types. The linker takes them for one effect unless
 * a namespace keeps them apart (-DAPART). So the program ends when it starts, or finds nobody who handles the other.
 */
#include <stdio.h>

#ifdef APART
#define WEFT_NAMESPACE apart
#endif
#include <weft/weft.h>

#include "named.h"

WEFT_FAMILY(state, (void, get, long *, place, double, value));

static void on_get(void *unused, long *place, double value)
{
	(void)unused;
	printf("the clause got %p and %g\n", (void *)place, value);
}

WEFT_HANDLER(handler, weft_tail(get, on_get));

static void *body(void *unused)
{
	printf("%d\n", performs_get());
	return unused;
}

int main(void)
{
	weft_run(&handler, NULL, body, NULL);
	return 0;
}
