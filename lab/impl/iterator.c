/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 iterator: a producer emits 0…n by an effect, the handler sums. form=table: by a tail clause. form=hot: by a tail
 * clause that the producer guesses. plain=1: an ordinary callback.
 */
#include "lab.h"
#include <weft/weft.h>

WEFT_EFFECT(void, emit, int64_t, value);

static void *produce(void *arg)
{
	const int64_t *n = arg;
	int64_t i, end = *n;

	for (i = 0; i <= end; i++)
		emit(i);
	return NULL;
}

static int64_t run(int64_t n)
{
	weft_coro_t *k = weft_create(produce, &n);
	weft_request_t r;
	int64_t sum = 0;

	if (!k)
		lab_die("weft_create");
	weft_handle (r, k, emit)
		sum += weft_args(emit, r)->value;
	weft_delete(k);
	return sum;
}

static void on_emit(void *sum, int64_t value)
{
	*(int64_t *)sum += value;
}

WEFT_HANDLER(summing, weft_tail(emit, on_emit));

static void *produce_hot(void *arg)
{
	const int64_t *n = arg;
	int64_t i, end = *n;

	for (i = 0; i <= end; i++)
		weft_perform_hot(emit, on_emit, i);
	return NULL;
}

static int64_t run_table(int64_t n, weft_fn_t *body)
{
	int64_t sum = 0;

	weft_run(&summing, &sum, body, &n);
	return sum;
}

static LAB_NOINLINE void add(void *sum, int64_t value)
{
	*(int64_t *)sum += value;
}

static int64_t run_plain(int64_t n)
{
	void (*sink)(void *, int64_t) = add;
	int64_t sum = 0, i;

	LAB_HIDE(sink);
	for (i = 0; i <= n; i++)
		sink(&sum, i);
	return sum;
}

int main(int argc, char **argv)
{
	int64_t n = lab_number(argc, argv, "n", 5), sum;

	lab_start();
	if (lab_number(argc, argv, "plain", 0))
		sum = run_plain(n);
	else if (lab_is(argc, argv, "form", "hot"))
		sum = run_table(n, produce_hot);
	else
		sum = lab_is(argc, argv, "form", "table") ? run_table(n, produce) : run(n);
	lab_stop();
	return lab_report((uint64_t)(n + 1), sum);
}
