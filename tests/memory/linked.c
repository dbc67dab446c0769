/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * linked POLICY [thread]: code for linked stacks whose first chunk is the caller's memory: it grows beyond that, or
 * with WEFT_MEMORY_ONLY the coroutine fails; `thread`: a thread cannot fail, and ends the process with a line.
 */
#include <string.h>

#include <weft/thread.h>
#include <weft/weft.h>

#include "require.h"

enum { BYTES = 48 * 1024 };

static _Alignas(64) unsigned char memory[BYTES];

/* Number of calls, in memory and elsewhere. */
static int calls_in_memory, calls_elsewhere;

static __attribute__((noinline)) long sum(long n)
{
	unsigned char here[100];

	memset(here, (int)n, sizeof here);
	__asm__ volatile("" : : "r"(here) : "memory");
	*(here >= memory && here < memory + BYTES ? &calls_in_memory : &calls_elsewhere) += 1;
	if (n)
		n += sum(n - 1);
	__asm__ volatile("" : : "r"(here) : "memory");
	return n;
}

static void *body(void *n)
{
	return (void *)sum((long)n);
}

static weft_coro_t *make(weft_policy_t policy, size_t bytes, unsigned flags, long n)
{
	weft_attr_t attr = {
	    .name = "m", .policy = policy, .memory = memory + 1024, .memory_size = bytes, .flags = flags};
	weft_coro_t *k = weft_create_with(body, (void *)n, &attr);

	REQUIRE(k);
	calls_in_memory = calls_elsewhere = 0;
	return k;
}

static void check_red_zones(size_t bytes)
{
	for (size_t i = 0; i < BYTES; i++)
		if (i < 1024 || i >= 1024 + bytes)
			REQUIRE(memory[i] == 0xa5);
}

static void size(weft_policy_t policy, size_t bytes)
{
	weft_coro_t *k;
	weft_request_t r;

	memset(memory, 0xa5, sizeof memory);
	/* Calls that fit are in the memory. */
	k = make(policy, bytes, WEFT_MEMORY_ONLY, 0);
	r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
	REQUIRE(weft_returned(r) && calls_in_memory == 1 && !calls_elsewhere);
	weft_delete(k);
	/* The other calls are elsewhere, also the second time and after a restart. */
	for (int i = 0; i < 3; i++) {
		k = make(policy, bytes, 0, 2000);
		for (int again = 0; again < 2; again++) {
			r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
			REQUIRE(weft_returned(r) && r.payload == (void *)2001000);
			REQUIRE(calls_in_memory > 0 && calls_elsewhere > 1000);
			weft_reset(k, body, (void *)2000);
		}
		weft_delete(k);
	}
	/* Or the coroutine fails. */
	for (int i = 0; i < 3; i++) {
		k = make(policy, bytes, WEFT_MEMORY_ONLY, 2000);
		r = weft_resume(k, NULL, WEFT_HANDLE_NONE);
		REQUIRE(r.effect == &weft_failed && weft_failure(k) == WEFT_RESERVATION_SPENT);
		REQUIRE(!calls_elsewhere && calls_in_memory > (int)(bytes / 1000));
		weft_delete(k);
	}
	check_red_zones(bytes);
}

static void *in_thread(void *n)
{
	return (void *)sum((long)n);
}

static void thread(weft_policy_t policy)
{
	weft_attr_t attr = {.policy = policy, .memory = memory, .memory_size = BYTES};
	pthread_t t;
	void *result;

	REQUIRE(!weft_thread_create(&t, &attr, in_thread, (void *)2000) && !pthread_join(t, &result));
	REQUIRE(result == (void *)2001000 && calls_in_memory && calls_elsewhere);
	attr.flags = WEFT_MEMORY_ONLY;
	REQUIRE(!weft_thread_create(&t, &attr, in_thread, (void *)2000));
	(void)pthread_join(t, &result);
}

int main(int count, char **arguments)
{
	weft_policy_t policy = weft_policy_named(arguments[1]);
	size_t least = weft_memory_size(&(weft_attr_t){.policy = policy}, 0);
	weft_stack_stats_t before, after;

	REQUIRE(policy && count <= 3);
	if (count == 3) {
		thread(policy);
		return 0;
	}
	(void)weft_stack_stats(policy, &before);
	if (least < 2000) {
		size(policy, 1000);
		size(policy, 3000);
	}
	size(policy, 16384);
	size(policy, 40000);
	(void)weft_stack_stats(policy, &after);
	REQUIRE(after.splits > before.splits && !after.in_memory);
	printf("ok - %s\n", arguments[1]);
	return 0;
}
