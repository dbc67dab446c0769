/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* B5 fibonacci_recursive: no effects; the cost of plain calls on a coroutine's stack. plain=1: on the thread's own
 * stack. */
#include "lab.h"
#include <weft/weft.h>

static LAB_NOINLINE int64_t fibonacci(int64_t n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static void *body(void *arg)
{
	int64_t *n = arg;

	*n = fibonacci(*n);
	return NULL;
}

/* Returns how many times fibonacci(n) is entered. */
static uint64_t calls(int64_t n)
{
	uint64_t before = 1, now = 1;

	for (; n > 1; n--) {
		uint64_t next = now + before + 1;

		before = now;
		now = next;
	}
	return now;
}

static void on_a_coroutine(int64_t *n)
{
	weft_coro_t *k = weft_create(body, n);

	if (!k)
		lab_die("weft_create");
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	weft_delete(k);
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), result = n;

	lab_start();
	if (lab_number(argc, argv, "plain", 0))
		body(&result);
	else
		on_a_coroutine(&result);
	lab_stop();
	return lab_report(calls(n), result);
}
