/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * bare [TEST]: the core without a system. Without an argument: coroutines on arrays, effects, handlers, cleanups.
 * `overflow`, `finished`: the process ends with a line; `mmap`: that the filter of start.c kills.
 */
#include <errno.h>
#include <string.h>

#include <weft/defer.h>
#include <weft/effect.h>
#include <weft/freestanding.h>

#include "require.h"

enum { STACKS = 7, EACH = 8192, DEEP_BYTES = 256 };
#include "deep.h"

static char array[STACKS * EACH + 100], single[WEFT_MEMORY_BYTES(6000)];

WEFT_FAMILY(state, (int, get), (void, put, int, x));
WEFT_EXCEPTION(stops, int, why);
WEFT_EFFECT(int, choose, int, most);

/* ---- coroutines ------------------------------------------------------------------------------------------------- */

static void *counts(void *n)
{
	for (long i = 0; i < (long)n; i++)
		(void)weft_suspend((void *)i);
	return n;
}

static void run(weft_coro_t *k, long n)
{
	weft_request_t r;

	for (long i = 0; i < n; i++) {
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		REQUIRE(!weft_returned(r) && r.payload == (void *)i);
	}
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(weft_returned(r) && r.payload == (void *)n);
}

static void in_arrays(void)
{
	weft_attr_t attr = {.name = "single", .memory = single, .memory_size = sizeof single};
	weft_coro_t *k[STACKS + 1], own = {0};
	weft_stack_stats_t stats;

	/* There is no memory yet. */
	REQUIRE(!weft_create(counts, NULL) && weft_errno() == ENOTSUP);
	k[0] = weft_create_with(counts, (void *)5, &attr);
	REQUIRE(k[0] && weft_stack_usable(k[0]) >= 6000);
	run(k[0], 5);
	weft_delete(k[0]);
	REQUIRE(!weft_init(&own, counts, (void *)3, &attr));
	REQUIRE(weft_init(&own, counts, (void *)3, &attr) == -EBUSY);
	(void)weft_use_memory(NULL, 0, 0);

	REQUIRE(weft_use_memory(array, sizeof array, 100) == -ENOSPC);
	REQUIRE(weft_use_memory(array, 100, EACH) == -ENOSPC);
	REQUIRE(weft_use_memory(array + 1, sizeof array - 1, EACH) == STACKS);
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < STACKS; i++) {
			REQUIRE(weft_memory_left() == (size_t)(STACKS - i));
			k[i] = round % 2 ? weft_create_with(counts, (void *)3, &(weft_attr_t){.name = "x"})
					 : weft_create(counts, (void *)3);
			REQUIRE(k[i] && (char *)k[i] > array && (char *)k[i] < array + sizeof array);
		}
		REQUIRE(!weft_create(counts, NULL) && weft_errno() == ENOMEM && !weft_memory_left());
		REQUIRE(weft_use_memory(array, sizeof array, EACH) == -EBUSY);
		for (int i = 0; i < STACKS; i++) {
			run(k[i], 3);
			weft_reset(k[i], counts, (void *)2);
			run(k[i], 2);
		}
		REQUIRE(!weft_stack_stats(WEFT_DEFAULT_POLICY, &stats) && stats.in_memory >= STACKS);
		for (int i = 0; i < STACKS; i++)
			weft_delete(k[(i + round) % STACKS]);
	}
	REQUIRE(weft_use_memory(NULL, 0, 0) == 0 && !weft_create(counts, NULL));
	REQUIRE(weft_use_memory(array, sizeof array, EACH) == STACKS);
}

static void refusals(void)
{
	static const weft_policy_t others[] = {WEFT_COMMIT,    WEFT_SEGMENTED, WEFT_HEAP,
					       WEFT_LOOKAHEAD, WEFT_MMU,       WEFT_COPY};
	weft_attr_t attr = {.memory = single, .memory_size = sizeof single, .flags = WEFT_UNWIND};
	char text[160];

	REQUIRE(!weft_create_with(counts, NULL, &attr) && weft_errno() == EINVAL);
	attr.flags = 0;
	attr.guard_size = 4096;
	attr.memory = array;
	attr.memory_size = sizeof array;
	REQUIRE(!weft_create_with(counts, NULL, &attr) && weft_errno() == ENOTSUP);
	attr.guard_size = 0;
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		attr.policy = others[i];
		REQUIRE(!weft_create_with(counts, NULL, &attr) && weft_errno() == ENOTSUP);
		REQUIRE(weft_memory_unfit(&attr, text, sizeof text) == text);
		REQUIRE(!strcmp(text, weft_policy_unavailable(others[i])));
		REQUIRE(!weft_create_with(counts, NULL, &(weft_attr_t){.policy = others[i]}));
	}
}

static void *takes_turns(void *pair)
{
	for (int i = 0; i < 100; i++)
		(void)weft_switch(((weft_coro_t **)pair)[weft_current() == *(weft_coro_t **)pair], pair);
	return pair;
}

static void sideways(void)
{
	weft_coro_t *pair[2] = {weft_create(takes_turns, pair), weft_create(takes_turns, pair)};

	REQUIRE(weft_returned(weft_resume(pair[0], pair, WEFT_HANDLE_NONE)));
	weft_delete(pair[0]);
	weft_delete(pair[1]);
	REQUIRE(weft_memory_left() == STACKS);
}

/* ---- effects ---------------------------------------------------------------------------------------------------- */

static int cleaned;

static void clean(void *by)
{
	cleaned += (int)(long)by;
}

static void *uses_state(void *unused)
{
	weft_defer(clean, (void *)1);
	for (int i = 0; i < 10; i++)
		put(get() + i);
	(void)unused;
	return (void *)(long)get();
}

static void *performs(void *unused)
{
	int state = 5;
	weft_request_t r;
	weft_coro_t *k = weft_create(uses_state, unused);

	for (;;) {
		r = weft_resume(k, NULL, weft_handles(state));
		if (weft_is(get, r))
			weft_reply(get, r, state);
		else if (weft_is(put, r))
			state = weft_args(put, r)->x;
		else
			break;
	}
	weft_delete(k);
	return r.payload;
}

static int get_value(void *state)
{
	return *(int *)state;
}

static void put_value(void *state, int x)
{
	*(int *)state = x;
}

WEFT_HANDLER(in_memory, weft_tail(get, get_value), weft_tail(put, put_value));

/* Twice the rest of the body: once for each choice up to `most`. A clause that looks at the answer. */
static void *chosen(void *state, weft_resumption_t *k, int most)
{
	void *result = weft_continue(choose, k, most - 1);

	*(int *)state += 1;
	return (char *)result + 100;
}

WEFT_HANDLER(choosing, weft_general(choose, chosen));

static void *chooses(void *unused)
{
	int sum = 0;

	for (int i = 1; i <= 3; i++)
		sum += choose(i);
	(void)unused;
	return (void *)(long)sum;
}

static void *on_stops(void *state, int why)
{
	return why == 30 ? state : NULL;
}

WEFT_HANDLER(stopping, weft_abort(stops, on_stops));

static __attribute__((noinline)) void stop_here(void)
{
	weft_defer(clean, (void *)1);
	stops(30);
}

static __attribute__((noinline)) void stop_deep(void)
{
	weft_defer(clean, (void *)1);
	stop_here();
}

static void *stops_there(void *unused)
{
	weft_defer(clean, (void *)1);
	stop_deep();
	return unused;
}

static void *stops_inside(void *unused)
{
	int state = 0;

	weft_defer(clean, (void *)1);
	(void)weft_run(&in_memory, &state, stops_there, NULL);
	return unused;
}

static void effects(void)
{
	int state = 5, clauses = 0;
	size_t left = weft_memory_left();

	REQUIRE(performs(NULL) == (void *)50 && cleaned == 1);
	REQUIRE(weft_run(&in_memory, &state, uses_state, NULL) == (void *)50 && state == 50 && cleaned == 2);
	REQUIRE(weft_run(&choosing, &clauses, chooses, NULL) == (void *)303 && clauses == 3);
	cleaned = 0;
	REQUIRE(weft_run(&stopping, &state, stops_inside, NULL) == &state && cleaned == 4);
	REQUIRE(weft_memory_left() == left);
	REQUIRE(!strcmp(weft_effect_get.name, "get"));
}

static void *waits(void *unused)
{
	weft_defer(clean, (void *)1);
	(void)weft_suspend(NULL);
	return unused;
}

/* The payload lies on the stack that is left, where something is deferred: it is kept. */
static void *leaves(void *unused)
{
	int here[10] = {7};

	weft_defer(clean, (void *)1);
	(void)unused;
	weft_exit(weft_current(), &weft_suspended, here);
}

static void cleanups(void)
{
	weft_coro_t *k;
	weft_request_t r;

	cleaned = 0;
	for (int i = 0; i < 200; i++) {
		k = weft_create(waits, NULL);
		(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
		weft_delete(k);
		REQUIRE(cleaned == 2 * i + 1);
		k = weft_create(leaves, NULL);
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		REQUIRE(r.effect == &weft_suspended && *(int *)r.payload == 7);
		weft_delete(k);
	}
	REQUIRE(weft_memory_left() == STACKS);
}

/* ---- what ends the program -------------------------------------------------------------------------------------- */

static void *overflows(void *n)
{
	(void)deep((int)(long)n);
	return weft_suspend(n);
}

static void overflow(void)
{
	weft_coro_t *k;

	(void)weft_use_memory(array, sizeof array, EACH);
	(void)weft_create(counts, NULL);
	k = weft_create_with(overflows, (void *)32, &(weft_attr_t){.name = "deep"});
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
}

static void finished(void)
{
	weft_coro_t *k;

	(void)weft_use_memory(array, sizeof array, EACH);
	k = weft_create(counts, NULL);
	run(k, 0);
	(void)weft_resume(k, NULL, WEFT_HANDLE_NONE);
}

#ifdef BARE
long call_mmap(void);
#else
#define call_mmap() 0
#endif

int main(int count, char **arguments)
{
	if (count > 1 && !strcmp(arguments[1], "overflow"))
		overflow();
	else if (count > 1 && !strcmp(arguments[1], "finished"))
		finished();
	else if (count > 1 && !strcmp(arguments[1], "mmap"))
		(void)call_mmap();
	if (count > 1) {
		printf("not ok - bare: it went on\n");
		return 1;
	}
	in_arrays();
	refusals();
	sideways();
	effects();
	cleanups();
	printf("ok - bare\n");
	return 0;
}
