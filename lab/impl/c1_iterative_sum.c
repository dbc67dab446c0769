/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C1 iterative sum: two coroutines yield in a tight loop, sum += yield(i); their resumer passes i back. */
#include "lab.h"
#include <weft/weft.h>

struct summer {
	int64_t n, sum;
};

static void *body(void *arg)
{
	struct summer *s = arg;
	weft_coro_t *self = weft_current();
	int64_t sum = 0, i;

	for (i = 0; i < s->n; i++)
		sum += (intptr_t)weft_yield(self, &weft_suspended, (void *)(intptr_t)i);
	s->sum = sum;
	return NULL;
}

static int64_t run(int64_t n)
{
	struct summer s[2] = {{n, 0}, {n, 0}};
	weft_coro_t *a = weft_create(body, &s[0]), *b = weft_create(body, &s[1]);
	weft_request_t ra = {0}, rb = {0};

	if (!a || !b)
		lab_die("weft_create");
	do {
		ra = weft_resume(a, ra.payload, WEFT_HANDLE_NONE);
		rb = weft_resume(b, rb.payload, WEFT_HANDLE_NONE);
	} while (!weft_returned(ra) && !weft_returned(rb));
	weft_delete(a);
	weft_delete(b);
	return s[0].sum + s[1].sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10000), laps = lab_number(argc, argv, "laps", 1), sum = 0, i;

	lab_start();
	for (i = 0; i < laps; i++)
		sum = run(n);
	lab_stop();
	return lab_report((uint64_t)(2 * n * laps), sum);
}
