/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * gcc's nested functions by pointer: code on the stack that calls them. In a coroutine and a thread, on the policy in
 * force. Prints any error.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

static __attribute__((noipa)) long call(long (*f)(long), long x)
{
	volatile char frame[300];

	frame[0] = 1;
	return f(x) * frame[0];
}

/* The frame that holds the code is small, or has pages of its own. */
static __attribute__((noipa)) long small(long n)
{
	long add(long x)
	{
		return x + n;
	}
	return n ? call(add, 1) + small(n - 1) : 0;
}

static __attribute__((noipa)) long large(long n)
{
	volatile char frame[9000];
	long add(long x)
	{
		return x + n + frame[n];
	}

	frame[n] = 1;
	return n ? call(add, 0) + large(n - 1) : 0;
}

static __attribute__((noipa)) long sorted(long n)
{
	long calls = 0;
	int numbers[] = {3, 1, 2};
	int compare(const void *a, const void *b)
	{
		calls += n;
		return *(const int *)a - *(const int *)b;
	}

	qsort(numbers, 3, sizeof *numbers, compare);
	return numbers[0] == 1 && numbers[2] == 3 && calls >= 2 * n;
}

static void *body(void *unused)
{
	long wrong = (small(10) != 65) + (large(4) != 14) + !sorted(5);

	(void)unused;
	return (void *)wrong;
}

int main(void)
{
	weft_coro_t *k = weft_create(body, NULL);
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	pthread_t thread;
	void *wrong;

	if (!weft_returned(r) || r.payload)
		return puts("wrong in a coroutine");
	weft_delete(k);
	if (weft_thread_create(&thread, NULL, body, NULL) || pthread_join(thread, &wrong) || wrong)
		return puts("wrong in a thread");
	return 0;
}
