/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Ends without memory: malloc returns NULL from the first weft_exit on. Many ends are in progress at once, nested in
 * deferred functions, or suspended there. Each deferred function is called exactly once.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

enum { ENDS = 300, ROOM = 4096, MANY = ROOM + 100 };

/* glibc's malloc by another name. */
void *__libc_malloc(size_t bytes);

static bool no_memory;
static int calls;
static weft_coro_t *outer[MANY];

void *malloc(size_t bytes)
{
	return no_memory ? NULL : __libc_malloc(bytes);
}

#define REQUIRE(condition)                                                                                             \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "spent: line %d: %s\n", __LINE__, #condition);                                 \
			exit(1);                                                                                       \
		}                                                                                                      \
	} while (0)

static weft_coro_t *started(weft_fn_t *fn, size_t n)
{
	weft_coro_t *k = weft_create(fn, (void *)n);

	REQUIRE(k && weft_resume(k, NULL, WEFT_HANDLE_NONE).effect == &weft_suspended);
	return k;
}

static void *runs_nested(void *n);

static void nests(void *n)
{
	calls++;
	if (n)
		weft_delete(started(runs_nested, (size_t)n - 1));
}

static void *exits_nested(void *n)
{
	weft_defer(nests, n);
	no_memory = true;
	weft_exit(outer[(size_t)n], &weft_suspended, NULL);
}

static void *runs_nested(void *n)
{
	weft_coro_t *k = weft_create(exits_nested, n);

	outer[(size_t)n] = weft_current();
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return "not left";
}

/* The deferred function runs a coroutine that is left in the same way. */
static void nested(void)
{
	weft_delete(started(runs_nested, ENDS));
	REQUIRE(calls == ENDS + 1);
}

static void waits(void *n)
{
	weft_suspend(n);
	calls++;
}

static void *exits_slowly(void *n)
{
	weft_defer(waits, n);
	no_memory = true;
	weft_exit(outer[(size_t)n], &weft_suspended, NULL);
}

static void *runs_slowly(void *n)
{
	weft_coro_t *k = weft_create(exits_slowly, n);

	outer[(size_t)n] = weft_current();
	REQUIRE(k && weft_resume(k, NULL, WEFT_HANDLE_NONE).effect == &weft_suspended);
	weft_suspend(NULL);
	weft_resume(k, NULL, WEFT_HANDLE_NONE);
	return "not left";
}

/* The deferred function suspends. */
static void suspended(void)
{
	weft_coro_t *k[ENDS];

	for (size_t i = 0; i < ENDS; i++)
		k[i] = started(runs_slowly, i);
	for (size_t i = 0; i < ENDS; i++) {
		REQUIRE(weft_resume(k[i], NULL, WEFT_HANDLE_NONE).effect == &weft_suspended);
		REQUIRE(weft_state(k[i]) == WEFT_FINISHED);
		weft_delete(k[i]);
	}
	REQUIRE(calls == ENDS);
}

static int told;

static void count_failures(weft_coro_t *k, weft_failure_t why)
{
	REQUIRE(why == WEFT_MEMORY_SPENT && weft_failure(k) == why);
	told++;
}

/* More ends than the library has room for: coroutines fail, and their deferred functions are abandoned. */
static void too_many(void)
{
	static weft_coro_t *k[MANY];
	weft_request_t r;

	weft_set_failure_hook(count_failures);
	for (size_t i = 0; i < MANY; i++) {
		k[i] = weft_create(runs_slowly, (void *)i);
		REQUIRE(k[i]);
	}
	for (size_t i = 0; i < MANY; i++) {
		r = weft_resume(k[i], NULL, WEFT_HANDLE_NONE);
		REQUIRE(r.effect == (i < ROOM ? &weft_suspended : &weft_failed));
		REQUIRE(weft_state(k[i]) == (i < ROOM ? WEFT_SUSPENDED : WEFT_FINISHED));
	}
	REQUIRE(told == MANY - ROOM);
	for (size_t i = 0; i < MANY; i++) {
		if (i < ROOM)
			REQUIRE(weft_resume(k[i], NULL, WEFT_HANDLE_NONE).effect == &weft_suspended);
		REQUIRE(weft_state(k[i]) == WEFT_FINISHED);
		weft_delete(k[i]);
	}
	REQUIRE(calls == ROOM);
	weft_set_failure_hook(NULL);
}

int main(void)
{
	nested();
	no_memory = false;
	calls = 0;
	suspended();
	no_memory = false;
	calls = 0;
	too_many();
	return 0;
}
