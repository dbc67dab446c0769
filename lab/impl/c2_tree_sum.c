/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* C2 tree sum: walk a binary tree of depth n recursively and yield each leaf (its number, counted from the left). */
#include "lab.h"
#include <weft/weft.h>

static void walk(weft_coro_t *self, int64_t node, int64_t depth)
{
	if (depth == 0) {
		weft_yield(self, &weft_suspended, (void *)(intptr_t)node);
		return;
	}
	walk(self, 2 * node, depth - 1);
	walk(self, 2 * node + 1, depth - 1);
}

static void *body(void *arg)
{
	const int64_t *depth = arg;

	walk(weft_current(), 0, *depth);
	return NULL;
}

static int64_t run(int64_t depth)
{
	weft_coro_t *k = weft_create(body, &depth);
	weft_request_t r;
	int64_t sum = 0;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k)
		sum += (intptr_t)r.payload;
	weft_delete(k);
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 10), sum;

	lab_start();
	sum = run(n);
	lab_stop();
	return lab_report(UINT64_C(1) << n, sum);
}
