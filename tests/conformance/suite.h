/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The smallest possible test frame, so that the suite builds with any flags: tests are functions that CHECK. */
#ifndef WEFT_TESTS_SUITE_H
#define WEFT_TESTS_SUITE_H

#include <stdio.h>
#include <weft/weft.h>

#define CHECK(condition) suite_check((condition), #condition, __FILE__, __LINE__)

void suite_check(bool holds, const char *text, const char *file, int line);

/* An opaque value: the compiler cannot know it. */
#define OPAQUE(x)                                                                                                      \
	(__extension__({                                                                                               \
		__typeof__(x) opaque_ = (x);                                                                           \
		__asm__ volatile("" : "+m"(opaque_));                                                                  \
		opaque_;                                                                                               \
	}))

/* Creates a coroutine; ends the program if that fails. */
weft_coro_t *make(weft_fn_t *fn, void *arg);

/* Resumes until the coroutine ends; returns its result. */
void *run_out(weft_coro_t *k);

extern void test_registers(void), test_frames(void), test_effects(void), test_many(void), test_signals(void);

#endif
