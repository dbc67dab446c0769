/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Depth: of the stack, of nesting, of chains suspended from below. */
#include <string.h>

#include "suite.h"

WEFT_EFFECT(uint64_t, depth_reached, uint64_t, depth);

/* ---- most of the stack --------------------------------------------------------------------------------------- */

/* A stack of chunks does not end: so deep that there are several. */
enum { CHUNKS_DEEP = 4000 };

static bool has_chunks(const weft_coro_t *k)
{
	return weft_policy(k) >= WEFT_SEGMENTED && weft_policy(k) <= WEFT_MMU;
}

static __attribute__((noinline)) uint64_t descend(const char *limit, uint64_t depth)
{
	volatile char frame[200];
	uint64_t below;

	frame[0] = (char)depth;
	frame[199] = (char)(depth + 1);
	if (limit ? (char *)__builtin_frame_address(0) - 1024 < limit : depth == CHUNKS_DEEP)
		return depth_reached(depth);
	below = descend(limit, depth + 1);
	CHECK(frame[0] == (char)depth && frame[199] == (char)(depth + 1));
	return below + 1;
}

static void *deep(void *argument)
{
	weft_coro_t *self = weft_current();
	char *top = __builtin_frame_address(0);

	(void)argument;
	return (void *)descend(has_chunks(self) ? NULL : top - weft_stack_usable(self) + 6144, 0);
}

static void most_of_the_stack(size_t size)
{
	weft_attr_t attr = {.name = "deep", .stack_size = size};
	weft_coro_t *k = weft_create_with(deep, NULL, &attr);
	weft_request_t r;
	uint64_t depth;

	CHECK(k);
	if (!k)
		return;
	r = weft_resume(k, NULL, weft_handles(depth_reached));
	CHECK(weft_is(depth_reached, r));
	depth = weft_args(depth_reached, r)->depth;
	CHECK(has_chunks(k) ? depth == CHUNKS_DEEP : depth > (weft_stack_usable(k) - 8192) / 1024);
	weft_reply(depth_reached, r, 7);
	r = weft_resume(k, NULL, weft_handles(depth_reached));
	CHECK(weft_returned(r) && (uint64_t)r.payload == depth + 7);
	/* Once more on the same stack, which is warm now. */
	weft_reset(k, deep, NULL);
	r = weft_resume(k, NULL, weft_handles(depth_reached));
	CHECK(weft_is(depth_reached, r) && weft_args(depth_reached, r)->depth == depth);
	weft_delete(k);
}

/* A frame that is larger than many pages, touched from its far end first. */
static void *large_frame(void *argument)
{
	volatile char buffer[100000];

	buffer[0] = 1;
	weft_suspend((void *)buffer);
	buffer[50000] = 2;
	buffer[sizeof buffer - 1] = 3;
	CHECK(buffer[0] == 1 && buffer[1] == 0 && buffer[50000] == 2);
	return argument;
}

static void untouched_middle(void)
{
	weft_attr_t attr = {.stack_size = 256 * 1024};
	weft_coro_t *k = weft_create_with(large_frame, NULL, &attr);
	weft_request_t r = weft_resume(k, NULL, WEFT_HANDLE_NONE);

	/* A warm stack may have any contents. */
	memset(r.payload, 0, 50000);
	*(char *)r.payload = 1;
	CHECK(weft_returned(weft_resume(k, NULL, WEFT_HANDLE_NONE)));
	weft_delete(k);
}

/* ---- nesting -------------------------------------------------------------------------------------------------- */

/* Each level makes the next level and adds one to its result. */
static void *nested(void *argument)
{
	size_t more = (size_t)argument;
	weft_coro_t *k;
	void *result;

	if (!more)
		return (void *)1;
	k = make(nested, (void *)(more - 1));
	result = run_out(k);
	weft_delete(k);
	return (char *)result + 1;
}

static void *nested_effects(void *argument)
{
	size_t more = (size_t)argument;
	weft_coro_t *k;
	weft_request_t r;

	if (!more) {
		uint64_t sum = 0;

		for (uint64_t i = 0; i < 50; i++)
			sum += depth_reached(i);
		return (void *)sum;
	}
	k = make(nested_effects, (void *)(more - 1));
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	CHECK(weft_returned(r));
	weft_delete(k);
	return r.payload;
}

/* The chain from the outermost coroutine down is suspended at each effect, and continues inside the innermost
 * coroutine. */
static void suspended_from_below(void)
{
	weft_coro_t *k = make(nested_effects, (void *)40);
	weft_request_t r;
	uint64_t expected = 0, sum = 0;

	weft_handle (r, k, depth_reached) {
		CHECK(weft_args(depth_reached, r)->depth == expected);
		CHECK(weft_state(k) == WEFT_SUSPENDED && !weft_parent(k));
		weft_reply(depth_reached, r, expected * 3);
		sum += expected++ * 3;
	}
	CHECK(expected == 50 && (uint64_t)r.payload == sum);
	weft_delete(k);
}

/* Any coroutine may continue a chain that is suspended from below, also inside another coroutine. */
static void *carrier(void *argument)
{
	weft_coro_t *k = argument;
	weft_request_t r = weft_resume(k, NULL, weft_handles(depth_reached));

	CHECK(weft_parent(k) == weft_current());
	return (void *)(uintptr_t)(weft_is(depth_reached, r) ? weft_args(depth_reached, r)->depth : 0);
}

static void passed_around(void)
{
	weft_coro_t *chain = make(nested_effects, (void *)5);

	for (uint64_t i = 0; i < 20; i++) {
		weft_coro_t *k = make(carrier, chain);

		CHECK((uint64_t)run_out(k) == i);
		weft_delete(k);
	}
	weft_delete(chain); /* deletes five coroutines */
}

void test_frames(void)
{
	weft_coro_t *k = make(nested, (void *)200);

	CHECK((size_t)run_out(k) == 201);
	weft_delete(k);
	most_of_the_stack(0);
	most_of_the_stack(16 * 1024);
	most_of_the_stack(1024 * 1024);
	untouched_middle();
	suspended_from_below();
	passed_around();
}
