/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * B5 product_early: n times the product of a list that ends in 0, by recursion, left by an exception at the 0.
 * form=table: by an abort clause. plain=1: the recursion just returns 0 upwards.
 */
#include "lab.h"
#include <weft/weft.h>

enum { LENGTH = 1001 };

struct list {
	int64_t head;
	struct list *tail;
};

WEFT_EXCEPTION(done, int64_t, value);

/* The recursion is the experiment: without the hidden value compilers would turn it into a loop. */
static LAB_NOINLINE int64_t product(const struct list *xs)
{
	int64_t rest;

	if (!xs)
		return 1;
	if (xs->head == 0)
		done(0);
	rest = product(xs->tail);
	LAB_HIDE(rest);
	return xs->head * rest;
}

static LAB_NOINLINE int64_t product_plain(const struct list *xs)
{
	int64_t rest;

	if (!xs)
		return 1;
	if (xs->head == 0)
		return 0;
	rest = product_plain(xs->tail);
	LAB_HIDE(rest);
	return xs->head * rest;
}

struct job {
	const struct list *xs;
	int64_t result;
};

static void *body(void *arg)
{
	struct job *job = arg;

	job->result = product(job->xs);
	return NULL;
}

static int64_t run(const struct list *xs)
{
	struct job job = {xs, 0};
	weft_coro_t *k = weft_create(body, &job);
	weft_request_t r;

	if (!k)
		lab_die("weft_create");
	r = weft_resume(k, NULL, weft_handles(done));
	if (!weft_returned(r))
		job.result = weft_args(done, r)->value;
	weft_delete(k);
	return job.result;
}

static void *on_done(void *state, int64_t value)
{
	*(int64_t *)state = value;
	return NULL;
}

WEFT_HANDLER(early, weft_abort(done, on_done));

static int64_t run_table(const struct list *xs)
{
	struct job job = {xs, 0};

	weft_run(&early, &job.result, body, &job);
	return job.result;
}

int main(int argc, char **argv)
{
	static struct list nodes[LENGTH];
	int64_t n = lab_number(argc, argv, "n", 5), plain = lab_number(argc, argv, "plain", 0), sum = 0, i;
	bool table = lab_is(argc, argv, "form", "table");

	for (i = 0; i < LENGTH; i++)
		nodes[i] = (struct list){LENGTH - 1 - i, i + 1 < LENGTH ? &nodes[i + 1] : NULL};
	lab_start();
	for (i = 0; i < n; i++)
		sum += plain ? product_plain(nodes) : table ? run_table(nodes) : run(nodes);
	lab_stop();
	return lab_report((uint64_t)n, sum);
}
