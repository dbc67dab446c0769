/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* THROW and EXIT, rethrowing, coroutines by value that are initialised anew in place, reset, default handlers. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "seff.h"

DEFINE_EFFECT(division_by_zero, 7, void, { int dividend; });
DEFINE_EFFECT(runtime_error, 10, void, { const char *msg; });
DEFINE_EFFECT(log_line, 11, int, { const char *msg; });

static int divide(int dividend, int divisor)
{
	if (!divisor)
		THROW(division_by_zero, dividend);
	return dividend / divisor;
}

static void *computation(void *arg)
{
	int sum = 0;

	for (int i = -5; i < 5; i++)
		sum += divide((int)(intptr_t)arg, i);
	return (void *)(intptr_t)sum;
}

static void caught_again_and_again(void)
{
	seff_coroutine_t k;
	int caught = 0, total = 0;

	for (int i = 0; i < 10000; i++) {
		/* Never released in between: the new initialisation frees the old resources. */
		seff_coroutine_init(&k, computation, (void *)(intptr_t)i);
		seff_request_t request = seff_resume(&k, NULL, HANDLES(division_by_zero));
		switch (request.effect) {
			CASE_EFFECT(request, division_by_zero, {
				caught++;
				total += payload.dividend;
			});
			break;
		default:
			assert(false);
		}
		assert(k.state == FINISHED);
	}
	for (int i = 0; i < 100; i++) {
		seff_coroutine_reset(&k);
		assert(k.state == PAUSED);
		seff_request_t request = seff_resume_handling_all(&k, NULL);
		caught += request.effect == EFF_ID(division_by_zero);
	}
	seff_coroutine_release(&k);
	printf("caught %d, total %d\n", caught, total);
}

/* ---- through a hundred coroutines, none of which handles it ---- */

static void *deep(void *arg)
{
	intptr_t depth = (intptr_t)arg;
	seff_coroutine_t *k;

	if (!depth)
		THROW(runtime_error, "from the depth");
	k = seff_coroutine_new(deep, (void *)(depth - 1));
	seff_resume(k, NULL, 0);
	seff_coroutine_delete(k);
	return NULL;
}

static void through_many(void)
{
	int caught = 0;

	for (int i = 0; i < 100; i++) {
		seff_coroutine_t *k = seff_coroutine_new(deep, (void *)(intptr_t)100);
		seff_request_t request = seff_resume(k, NULL, HANDLES(runtime_error));
		switch (request.effect) {
			CASE_EFFECT(request, runtime_error, { caught += !strcmp(payload.msg, "from the depth"); });
			break;
		default:
			assert(false);
		}
		seff_coroutine_delete(k);
	}
	printf("through many: %d\n", caught);
}

/* ---- rethrown by each of fifty coroutines, which are values in an array ---- */

#define MAX_DEPTH 50
static seff_coroutine_t children[MAX_DEPTH];
static int rethrown;

static void *rethrowing(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	if (!depth)
		THROW(runtime_error, "rethrown");
	seff_coroutine_init_sized(&children[depth], rethrowing, (void *)(depth - 1), 16 * 1024);
	seff_request_t request = seff_resume(&children[depth], NULL, HANDLES(runtime_error));
	switch (request.effect) {
		CASE_EFFECT(request, runtime_error, {
			rethrown++;
			THROW(runtime_error, payload.msg);
			break;
		});
	default:
		assert(false);
	}
	return NULL;
}

static void rethrow(void)
{
	for (int i = 0; i < 20; i++) {
		seff_coroutine_t k;

		seff_coroutine_init(&k, rethrowing, (void *)(intptr_t)(MAX_DEPTH - 1));
		seff_request_t request = seff_resume(&k, NULL, HANDLES(runtime_error));
		assert(request.effect == EFF_ID(runtime_error));
		seff_coroutine_release(&k);
	}
	for (int i = 0; i < MAX_DEPTH; i++)
		if (children[i].state != PAUSED && i)
			seff_coroutine_release(&children[i]);
	printf("rethrown: %d\n", rethrown);
}

/* ---- the same array, thrown through without a stop, then reused while the outer coroutine still exists ---- */

static void *unstopped(void *arg)
{
	intptr_t depth = (intptr_t)arg;

	if (!depth)
		THROW(runtime_error, "unstopped");
	seff_coroutine_init_sized(&children[depth], unstopped, (void *)(depth - 1), 16 * 1024);
	seff_resume(&children[depth], NULL, 0);
	return NULL;
}

static void *quick(void *arg)
{
	return arg;
}

static void in_place_while_orphaned(void)
{
	seff_coroutine_t k;
	int ok = 0;

	for (int i = 0; i < 20; i++) {
		seff_coroutine_init(&k, unstopped, (void *)(intptr_t)10);
		seff_request_t request = seff_resume(&k, NULL, HANDLES(runtime_error));
		ok += request.effect == EFF_ID(runtime_error);
		for (int j = 1; j <= 10; j++) {
			seff_coroutine_init(&children[j], quick, (void *)(intptr_t)j);
			ok += seff_finished(seff_resume(&children[j], NULL, 0));
		}
	}
	seff_coroutine_release(&k);
	for (int j = 1; j <= 10; j++)
		seff_coroutine_release(&children[j]);
	printf("in place: %d\n", ok);
}

/* ---- released by hand, before and after the enclosing coroutine ---- */

static void released_in_any_order(void)
{
	seff_coroutine_t k;

	for (int outer_first = 0; outer_first < 2; outer_first++) {
		seff_coroutine_init(&k, unstopped, (void *)(intptr_t)10);
		seff_request_t request = seff_resume(&k, NULL, HANDLES(runtime_error));
		assert(request.effect == EFF_ID(runtime_error));
		if (outer_first)
			seff_coroutine_release(&k);
		for (int j = 1; j <= 10; j++)
			seff_coroutine_release(&children[j]);
		if (!outer_first)
			seff_coroutine_release(&k);
	}
	puts("released");
}

/* ---- EXIT at a located handler; a default handler that runs in place ---- */

static void *leaves(void *arg)
{
	seff_coroutine_t *handler = seff_locate_handler(EFF_ID(runtime_error));

	assert(handler == seff_current_coroutine());
	if (arg)
		EXIT(handler, runtime_error, "left");
	seff_exit(handler, 42, (void *)"left by number");
}

static void *count_lines(void *arg)
{
	static int lines;
	EFF_PAYLOAD_T(log_line) payload = *(EFF_PAYLOAD_T(log_line) *)arg;

	printf("default: %s\n", payload.msg);
	return (void *)(intptr_t)++lines;
}

static jmp_buf after_default;

static void *escape(void *arg)
{
	printf("default: dividing %d by zero\n", ((EFF_PAYLOAD_T(division_by_zero) *)arg)->dividend);
	longjmp(after_default, 1);
}

int main(void)
{
	seff_coroutine_t *k = seff_coroutine_new(leaves, (void *)(intptr_t)1);
	seff_request_t request = seff_resume(k, NULL, HANDLES(runtime_error));
	int lines;

	caught_again_and_again();
	through_many();
	rethrow();
	in_place_while_orphaned();
	released_in_any_order();

	assert(request.effect == EFF_ID(runtime_error) && k->state == FINISHED);
	printf("%s\n", ((EFF_PAYLOAD_T(runtime_error) *)request.payload)->msg);
	seff_coroutine_delete(k);
	k = seff_coroutine_new(leaves, NULL);
	request = seff_resume(k, NULL, HANDLES(runtime_error));
	assert(request.effect == 42 && !seff_finished(request));
	printf("%s\n", (const char *)request.payload);
	seff_coroutine_delete(k);

	assert(!seff_get_default_handler(EFF_ID(log_line)));
	assert(!seff_set_default_handler(EFF_ID(log_line), count_lines));
	assert(seff_get_default_handler(EFF_ID(log_line)) == count_lines);
	PERFORM(log_line, "one");
	lines = PERFORM(log_line, "two");
	printf("lines: %d\n", lines);
	seff_set_default_handler(EFF_ID(division_by_zero), escape);
	if (!setjmp(after_default))
		divide(3, 0);
	return 0;
}
