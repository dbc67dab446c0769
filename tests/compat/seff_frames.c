/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bytes of stack that each operation costs the function that uses it: compares the frames of two recursions, one of
 * which could do the operation. And the bytes of stack that a suspended coroutine uses below the function. C and C++.
 */
#include <stdio.h>
#include <stdlib.h>
#include <weft/weft.h>

#include "seff.h"

enum { DEPTH = 200, FRAME = 160, SUSPENDED_FRAME = 544 };

WEFT_EFFECT(int, ask);
WEFT_EFFECT(int, add, int, x, int, y);
DEFINE_EFFECT(put, 5, int, { int x; });

static volatile int never;
static char *first, *last;
static weft_coro_t *k;
static seff_coroutine_t *seff;

/* ---- frames ------------------------------------------------------------------------------------------------------ */

#define RECURSION(name, ...)                                                                                           \
	static __attribute__((noinline)) int name(int n)                                                               \
	{                                                                                                              \
		if (n == DEPTH)                                                                                        \
			first = (char *)__builtin_frame_address(0);                                                    \
		if (n == 0)                                                                                            \
			last = (char *)__builtin_frame_address(0);                                                     \
		if (never == 1) {                                                                                      \
			__VA_ARGS__;                                                                                   \
		}                                                                                                      \
		return n ? name(n - 1) + never : 0;                                                                    \
	}

RECURSION(does_nothing, never = 0)
RECURSION(performs, never = ask())
RECURSION(performs_often, never = ask(); never = add(1, 2) + ask())
RECURSION(suspends, (void)weft_suspend(NULL))
RECURSION(yields, (void)weft_yield(k, &weft_suspended, NULL))
RECURSION(switches, (void)weft_switch(k, NULL))
RECURSION(resumes, never = weft_returned(weft_resume(k, NULL, weft_handles(ask))))
RECURSION(
    handles, weft_request_t r; weft_handle (r, k, ask, add) {
	    if (weft_is(ask, r))
		    weft_reply(ask, r, 1);
	    else if (weft_is(add, r))
		    weft_reply(add, r, weft_args(add, r)->x);
    })
RECURSION(seff_performs, never = PERFORM(put, 1))
RECURSION(seff_yields, (void)seff_yield(seff, EFF_ID(put), NULL))
RECURSION(
    seff_resumes, seff_request_t r = seff_resume(seff, NULL, HANDLES(put)); switch (r.effect) {
	    CASE_EFFECT(r, put, {
		    never = payload.x;
		    break;
	    });
	    CASE_RETURN(r, { break; });
    })

static long frame_of(int (*recursion)(int))
{
	recursion(DEPTH);
	return (long)(first - last) / DEPTH;
}

static void judge(const char *name, long bytes, long most)
{
	if (bytes <= most)
		printf("%s: fits\n", name);
	else
		printf("%s: %ld bytes\n", name, bytes);
}

/* ---- suspended coroutines ---------------------------------------------------------------------------------------- */

static char *leaf;

#define LEAF(name, ...)                                                                                                \
	static __attribute__((noinline)) void name(void)                                                               \
	{                                                                                                              \
		volatile char here = 0;                                                                                \
                                                                                                                       \
		leaf = (char *)&here;                                                                                  \
		never = 0;                                                                                             \
		__VA_ARGS__;                                                                                           \
		never = here;                                                                                          \
	}

LEAF(waits_in_ask, never = ask())
LEAF(waits_in_add, never = add(1, 2))
LEAF(waits, (void)weft_suspend(NULL))
LEAF(waits_in_put, never = PERFORM(put, 1))

static void *call(void *leaf_function)
{
	((void (*)(void))leaf_function)();
	return NULL;
}

static long suspended_by(void (*function)(void))
{
	weft_coro_t *c = weft_create(call, (void *)function);
	long bytes;

	(void)weft_resume(c, NULL, weft_handles(ask, add));
	bytes = (long)(leaf - (char *)c->link.sp);
	weft_delete(c);
	return bytes;
}

static long suspended_by_seff(void (*function)(void))
{
	seff_coroutine_t *c = seff_coroutine_new(call, (void *)function);
	long bytes;

	(void)seff_resume(c, NULL, HANDLES(put));
	bytes = (long)(leaf - (char *)((weft_coro_t *)(void *)c)->link.sp);
	seff_coroutine_delete(c);
	return bytes;
}

int main(void)
{
	long without = frame_of(does_nothing);

	judge("perform", frame_of(performs) - without, FRAME);
	judge("three performs", frame_of(performs_often) - without, FRAME);
	judge("weft_suspend", frame_of(suspends) - without, FRAME);
	judge("weft_yield", frame_of(yields) - without, FRAME);
	judge("weft_switch", frame_of(switches) - without, FRAME);
	judge("weft_resume", frame_of(resumes) - without, FRAME);
	judge("weft_handle", frame_of(handles) - without, FRAME);
	judge("PERFORM", frame_of(seff_performs) - without, FRAME);
	judge("seff_yield", frame_of(seff_yields) - without, FRAME);
	judge("seff_resume", frame_of(seff_resumes) - without, FRAME);
	judge("suspended in a perform", suspended_by(waits_in_ask), SUSPENDED_FRAME);
	judge("suspended in a perform with arguments", suspended_by(waits_in_add), SUSPENDED_FRAME);
	judge("suspended in weft_suspend", suspended_by(waits), SUSPENDED_FRAME);
	judge("suspended in PERFORM", suspended_by_seff(waits_in_put), SUSPENDED_FRAME);
	return 0;
}
