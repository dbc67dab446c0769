/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* nested DEPTH: this number of nested bodies of weft_run. The lane counts the cost of a level. */
#include "copy.h"

WEFT_EFFECT(int, one);

static int on_one(void *unused)
{
	(void)unused;
	return 1;
}

WEFT_HANDLER(ones, weft_tail(one, on_one));

static void *body(void *levels)
{
	if (!levels)
		return NULL;
	return (char *)weft_run(&ones, NULL, body, (char *)levels - 1) + one();
}

int main(int count, char **arguments)
{
	char *depth = (char *)(uintptr_t)(count > 1 ? atoi(arguments[1]) : 100);

	REQUIRE(weft_run(&ones, NULL, body, depth) == depth);
	return 0;
}
