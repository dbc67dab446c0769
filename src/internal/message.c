/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _GNU_SOURCE
#include "internal/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void put(struct weft__line *line, char c)
{
	if (line->length < sizeof line->text - 1) /* one byte stays for the newline */
		line->text[line->length++] = c;
}

static void put_digits(struct weft__line *line, uint64_t number, unsigned base)
{
	char digits[24];
	int n = 0;

	do {
		digits[n++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number);
	while (n)
		put(line, digits[--n]);
}

void weft__line_text(struct weft__line *line, const char *text)
{
	while (*text)
		put(line, *text++);
}

void weft__line_begin(struct weft__line *line)
{
	line->length = 0;
	weft__line_text(line, WEFT__LINE_BEGINS);
}

void weft__line_number(struct weft__line *line, uint64_t number)
{
	put_digits(line, number, 10);
}

void weft__line_address(struct weft__line *line, uintptr_t address)
{
	weft__line_text(line, "0x");
	put_digits(line, address, 16);
}

void weft__line_coroutine(struct weft__line *line, const char *name, uint64_t id)
{
	weft__line_text(line, "coroutine ");
	if (*name) {
		weft__line_text(line, "\"");
		weft__line_text(line, name);
		weft__line_text(line, "\" (#");
	} else {
		weft__line_text(line, "#");
	}
	weft__line_number(line, id);
	if (*name)
		weft__line_text(line, ")");
}

void weft__line_bytes(struct weft__line *line, size_t bytes)
{
	static const char *const units[] = {" B", " KiB", " MiB", " GiB"};
	int unit = 0;

	while (unit < 3 && bytes && bytes % 1024 == 0) {
		bytes /= 1024;
		unit++;
	}
	weft__line_number(line, bytes);
	weft__line_text(line, units[unit]);
}

void weft__line_write(struct weft__line *line)
{
	int saved = errno;

	line->text[line->length++] = '\n';
	/* The system call is made directly: a dying process must not wait for other threads, as write in
	 * libweft-posix.so may. */
	while (syscall(SYS_write, STDERR_FILENO, line->text, line->length) < 0 && errno == EINTR)
		;
	errno = saved;
}

void weft__line_ignored(struct weft__line *line, const char *variable, const char *value)
{
	weft__line_begin(line);
	weft__line_text(line, variable);
	weft__line_text(line, "=");
	weft__line_text(line, value);
	weft__line_text(line, " is ignored: ");
}

void weft__say_ignored(const char *variable, const char *value, const char *what_to_do)
{
	struct weft__line line;

	weft__line_ignored(&line, variable, value);
	weft__line_text(&line, what_to_do);
	weft__line_write(&line);
}

WEFT__LEAVES_STACK void weft__line_die(struct weft__line *line)
{
	weft__line_write(line);
	abort();
}

WEFT__LAST_WORDS(, weft__die_in_handler, (void), 0)
{
	struct weft__line line;

	weft__line_begin(&line);
	weft__line_text(&line,
			"coroutines cannot be made, ended or counted in a signal handler: let the handler set a flag, "
			"and do it where the program looks at the flag");
	weft__line_die(&line);
}
