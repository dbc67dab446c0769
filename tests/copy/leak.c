/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A coroutine referenced only by a parked coroutine is no leak; an unreferenced coroutine is a leak: with an
 * argument. */
#include <stdlib.h>
#include <weft/weft.h>

static weft_coro_t *kept[2];

static void *keeps(void *arg)
{
	void *volatile heap = malloc(100);

	weft_suspend(NULL);
	free(heap);
	return arg;
}

int main(int count, char **words)
{
	weft_attr_t attr = {.policy = WEFT_COPY};

	for (int i = 0; i < 2; i++)
		weft_resume(kept[i] = weft_create_with(keeps, words, &attr), NULL, WEFT_HANDLE_NONE);
	if (count > 1) {
		void *volatile lost = malloc(50);

		lost = NULL;
		(void)lost;
	}
	return 0;
}
