/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs a coroutine on the default policy, whatever WEFT_STACK asks for. */
#include <weft/weft.h>

static void *twice(void *number)
{
	return (void *)(2 * (intptr_t)number);
}

int main(void)
{
	weft_coro_t *k = weft_create(twice, (void *)21);
	bool right = weft_resume(k, NULL, WEFT_HANDLE_NONE).payload == (void *)42;

	weft_delete(k);
	return !right;
}
