/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * fiber_c: the C interface of fibers, fiber.h, on Weft, for ./weft lab --peer fiber-c=DIR. Each of the checkout's own
 * programs is compiled together with this file, and so runs on Weft's stack policies.
 */
#include <fiber.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

struct fiber {
	weft_coro_t *k;
	fiber_entry_point_t entry;
	void *first; /* the argument of the first resume is passed to the entry point */
};

static void *body(void *arg)
{
	const struct fiber *f = arg;

	return f->entry(f->first);
}

fiber_t fiber_alloc(fiber_entry_point_t entry)
{
	fiber_t f = malloc(sizeof(*f));

	if (f) {
		*f = (struct fiber){NULL, entry, NULL};
		f->k = weft_create(body, f);
	}
	if (!f || !f->k) {
		perror("fiber_alloc");
		exit(2);
	}
	return f;
}

void fiber_free(fiber_t f)
{
	weft_delete(f->k);
	free(f);
}

void *fiber_yield(void *arg)
{
	return weft_suspend(arg);
}

void *fiber_resume(fiber_t f, void *arg, fiber_result_t *status)
{
	weft_request_t r;

	f->first = arg;
	r = weft_resume(f->k, arg, WEFT_HANDLE_NONE);
	*status = weft_returned(r) ? FIBER_OK : FIBER_YIELD;
	return r.payload;
}

void fiber_init(void)
{
}

void fiber_finalize(void)
{
}
