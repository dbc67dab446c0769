/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The line formatter: one write, and it loses only text that does not fit. */
#include "internal/message.h"

#include <errno.h>

#include "unit.h"

static struct weft__line line;

static const char *text(void)
{
	line.text[line.length] = 0;
	return line.text;
}

static void line_numbers(void **state)
{
	(void)state;
	weft__line_begin(&line);
	weft__line_number(&line, 0);
	weft__line_text(&line, " ");
	weft__line_number(&line, UINT64_MAX);
	weft__line_text(&line, " ");
	weft__line_address(&line, 0);
	weft__line_text(&line, " ");
	weft__line_address(&line, UINTPTR_MAX);
	assert_string_equal(text(), "weft: 0 18446744073709551615 0x0 0xffffffffffffffff");
}

static void line_bytes(void **state)
{
	static const struct {
		size_t bytes;
		const char *text;
	} cases[] = {
	    {0, "weft: 0 B"},
	    {1, "weft: 1 B"},
	    {1023, "weft: 1023 B"},
	    {1024, "weft: 1 KiB"},
	    {1536, "weft: 1536 B"},
	    {256 << 10, "weft: 256 KiB"},
	    {1 << 20, "weft: 1 MiB"},
	    {(1 << 20) + 1024, "weft: 1025 KiB"},
	    {(size_t)3 << 30, "weft: 3 GiB"},
	    {(size_t)5 << 40, "weft: 5120 GiB"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		weft__line_begin(&line);
		weft__line_bytes(&line, cases[i].bytes);
		assert_string_equal(text(), cases[i].text);
	}
}

static void write_much(void)
{
	weft__line_begin(&line);
	for (int i = 0; i < 1000; i++)
		weft__line_text(&line, "0123456789");
	errno = 1234;
	weft__line_write(&line);
	REQUIRE(errno == 1234);
}

static void line_is_cut(void **state)
{
	struct outcome o = in_child(write_much);

	(void)state;
	assert_int_equal(o.code, 0);
	assert_int_equal(strlen(o.text), sizeof line.text);
	assert_int_equal(o.text[strlen(o.text) - 1], '\n');
	assert_int_equal(strncmp(o.text, "weft: 01234567890", 17), 0);
}

static void die(void)
{
	weft__line_begin(&line);
	weft__line_text(&line, "the end");
	weft__line_die(&line);
}

static void line_dies(void **state)
{
	(void)state;
	expect_abort(in_child(die), "weft: the end\n");
}

static void write_nowhere(void)
{
	close(STDERR_FILENO);
	weft__line_begin(&line);
	weft__line_write(&line);
}

static void line_without_standard_error(void **state)
{
	(void)state;
	expect_quiet(in_child(write_nowhere));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(line_numbers), T(line_bytes), T(line_is_cut), T(line_dies), T(line_without_standard_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
