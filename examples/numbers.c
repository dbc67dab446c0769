/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* numbers.c: a generator, which is a coroutine that suspends at each value. docs/tutorial/first-program.md, step 1. */
/* doc: begin program */
#include <stdio.h>
#include <weft/weft.h>

static void *numbers(void *last)
{
	for (int i = 1; i <= *(int *)last; i++)
		weft_suspend(&i);
	return last;
}

int main(void)
{
	int last = 3;
	weft_coro_t *k = weft_create(numbers, &last);
	weft_request_t r;

	if (!k) {
		perror("numbers");
		return 1;
	}
	while ((r = weft_resume(k, NULL, WEFT_HANDLE_NONE)).effect == &weft_suspended)
		printf("%d\n", *(int *)r.payload);
	weft_delete(k);
	return weft_returned(r) ? 0 : 1;
}
/* doc: end */
