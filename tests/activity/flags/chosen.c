/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Twins call functions of other files by name. The definition that the linker chose runs; its twin does, if it has one.
 * TURNS in the environment: 1 if the other files were compiled with the pass.
 */
#include "../cases.h"
#include "chosen.h"
#include <unistd.h>

static long turns;
static bool should_turn;

/* Another activity runs while CALL does, if CALL lets it. Nobody runs while it is called in no_yield. */
#define TRY(call, should)                                                                                              \
	do {                                                                                                           \
		long got = 0, atomic = 0, before = 0, between = 0, slipped = 0;                                        \
		activity_t caller, other;                                                                              \
		bool done = false;                                                                                     \
                                                                                                                       \
		activate(&caller)                                                                                      \
		{                                                                                                      \
			no_yield                                                                                       \
			{                                                                                              \
				before = turns;                                                                        \
				atomic = (long)(call);                                                                 \
				slipped = turns - before;                                                              \
			}                                                                                              \
			no_implicit_yield /* there are yields around a call */                                         \
			{                                                                                              \
				before = turns;                                                                        \
				got = (long)(call);                                                                    \
				between = turns - before;                                                              \
			}                                                                                              \
			done = true;                                                                                   \
		}                                                                                                      \
		activate(&other)                                                                                       \
		{                                                                                                      \
			for (; !done; yield_now())                                                                     \
				turns++;                                                                               \
		}                                                                                                      \
		activity_wait(&caller);                                                                                \
		activity_wait(&other);                                                                                 \
		expect(got == (should) && atomic == (should) && !slipped && (between > 0) == should_turn, #call);      \
	} while (0)

__attribute__((weak)) int overridden(int n)
{
	yield_now();
	return n;
}

#ifdef OVERRIDES
int interposed(int n)
{
	for (int i = 0; i < 2; i++)
		yield_now();
	return INTERPOSED * n;
}
#endif

/* In code that is not position-independent, these are the addresses of the linker's jumps. */
static int (*const pointers[])(int) = {strong, alias, cloned};
static ssize_t (*const reader)(int, void *, size_t) = read;

/* Functions of libc that wait let other activities run: a second activity writes. */
static void libc(void)
{
	ssize_t (*volatile reads)(int, void *, size_t) = reader;
	activity_t caller, other;
	char bytes[2] = "";
	int ends[2];

	if (pipe(ends))
		abort();
	activate(&caller)
	{
		(void)!read(ends[0], bytes, 1);
		(void)!reads(ends[0], bytes + 1, 1);
	}
	activate(&other)
	{
		for (int i = 0; i < 2; i++) {
			(void)!write(ends[1], &"ab"[i], 1);
			yield_now();
			yield_now();
		}
	}
	activity_wait(&caller);
	activity_wait(&other);
	expect(!memcmp(bytes, "ab", 2), "libc's functions that wait, by name and by pointer");
}

int activity_main(void)
{
	int (*const *volatile table)(int) = pointers;

	should_turn = getenv("TURNS") != NULL;
#ifndef INTERPOSED
	TRY(overridden(1), 1000);
#endif
	TRY(strong(1), 2000);
	TRY(alias(1), 2000);
	TRY(weak_alias(1), 2000);
	TRY(cloned(1), 3000);
	TRY(dots(3, 1.0, 2.0, 3.0), 6000);
	for (int i = 0; i < 3; i++)
		TRY(table[i](1), i < 2 ? 2000 : 3000);
#ifdef WRAPPED
	TRY(wrapped(1), 4001);
#endif
#ifdef NAMES_OF_LIBC
	TRY(send(1, NULL, 0, 0), 6000);
	TRY(sleep(1), 7000);
	TRY(stat("\1", NULL), 8000);
#endif
#ifdef INTERPOSED
	TRY(calls_interposed(1), INTERPOSED + 1);
#endif
	libc();
	return cases_failed != 0;
}
