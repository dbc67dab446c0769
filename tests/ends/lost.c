/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* lost COUNT: coroutines that are leaked while they are suspended, beside coroutines that are not. */
#include <stdlib.h>
#include <weft/weft.h>

static void *waits(void *arg)
{
	weft_suspend(arg);
	return arg;
}

static __attribute__((noinline)) weft_coro_t *opens(const char *name)
{
	weft_attr_t attr = {.name = name};
	weft_coro_t *k = weft_create_with(waits, NULL, &attr);

	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return k;
}

int main(int argc, char **argv)
{
	static weft_coro_t embedded;
	weft_coro_t *ends = opens("ends");

	for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; i--)
		opens("reader");
	weft_delete(opens("deleted"));
	weft_resume(ends, NULL, WEFT_HANDLE_NONE);
	weft_create(waits, NULL); /* owns nothing that could be lost */
	weft_init(&embedded, waits, NULL, NULL);
	weft_resume(&embedded, NULL, WEFT_HANDLE_NONE);
	return 0;
}
