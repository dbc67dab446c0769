/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A library with small limits overwrites the frames of a deleted coroutine, so that a use after deletion is noticed. */
#include "scenario.h"

enum { KB = 1024 };

static volatile char *frame;

static void *leaves_a_pointer(void *argument)
{
	volatile char here[64];

	frame = here;
	here[0] = 1;
	return argument;
}

static void require_poison_of(weft_coro_t *k)
{
	REQUIRE(k && weft_returned(resume(k)) && *frame == 1);
	weft_delete(k);
	REQUIRE(*frame == (char)0xde);
}

static void at_hand(void)
{
	weft_delete(make_on(WEFT_DEFAULT_POLICY, 0, leaves_a_pointer, NULL)); /* a thread's first */
	require_poison_of(weft_create(leaves_a_pointer, NULL));
}

static void in_a_bin(void)
{
	require_poison_of(make_on(WEFT_DEFAULT_POLICY, 1024 * KB, leaves_a_pointer, NULL));
}

static const struct scenario scenarios[] = {
    {"what is at hand is poisoned", at_hand, 0, NULL},
    {"what is in a bin is poisoned", in_a_bin, 0, NULL},
};

int main(int count, char **arguments)
{
	return run_scenarios(scenarios, sizeof scenarios / sizeof *scenarios, count, arguments);
}
