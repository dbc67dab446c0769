/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cmocka, with the headers that must be included before it. */
#ifndef WEFT_TESTS_UNIT_H
#define WEFT_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weft/weft.h>

#include "child.h"

/* The child exited with 0 and wrote nothing except this. */
static inline void expect_quiet(struct outcome o)
{
	assert_string_equal(o.text, "");
	assert_int_equal(o.signal, 0);
	assert_int_equal(o.code, 0);
}

static inline void expect_text(struct outcome o, const char *text)
{
	assert_string_equal(o.text, text);
	assert_int_equal(o.signal, 0);
	assert_int_equal(o.code, 0);
}

/* The child died of a broken rule, with exactly this line. */
static inline void expect_abort(struct outcome o, const char *line)
{
	assert_string_equal(o.text, line);
	assert_int_equal(o.signal, SIGABRT);
}

#define T(name) cmocka_unit_test(name)

/* CASE(name, line) { … }: a test, C(name), whose block must end the process with that line. */
#define CASE(name, line)                                                                                               \
	static void name(void);                                                                                        \
	static void test_##name(void **state)                                                                          \
	{                                                                                                              \
		(void)state;                                                                                           \
		expect_abort(in_child(name), line "\n");                                                               \
	}                                                                                                              \
	static void name(void)
#define C(name) cmocka_unit_test(test_##name)

#endif
