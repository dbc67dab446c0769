/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls foreign.c from a coroutine. */
#include <ctype.h>
#include <stdio.h>
#include <weft/weft.h>

static void *body(void *argument)
{
	long sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += toupper(97 + i % 26);
	return (char *)argument + sum;
}

int main(void)
{
	weft_coro_t *k = weft_create(body, NULL);

	printf("%ld\n", (long)weft_resume(k, NULL, WEFT_HANDLE_NONE).payload);
	return 0;
}
