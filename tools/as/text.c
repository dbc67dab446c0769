/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct view trim(struct view a)
{
	while (a.n && is_blank(a.at[0]))
		a = skip(a, 1);
	while (a.n && is_blank(a.at[a.n - 1]))
		a.n--;
	return a;
}

struct view cut(struct view *a, char stop)
{
	const char *end = memchr(a->at, stop, a->n);
	struct view first = *a;

	if (!end) {
		*a = (struct view){a->at + a->n, 0};
		return first;
	}
	first.n = (size_t)(end - a->at);
	*a = skip(*a, first.n + 1);
	return first;
}

bool number(struct view a, int64_t *value)
{
	char digits[32], *end;

	if (!a.n || a.n >= sizeof digits)
		return false;
	memcpy(digits, a.at, a.n);
	digits[a.n] = '\0';
	*value = (int64_t)(digits[0] == '-' ? (uint64_t)strtoll(digits, &end, 0) : strtoull(digits, &end, 0));
	return *end == '\0';
}

static void no_memory(void)
{
	fputs("weft-as: out of memory\n", stderr);
	exit(1);
}

void *keep(size_t bytes)
{
	static char *at;
	static size_t left;
	size_t block = 1 << 20;

	bytes = (bytes + 15) & ~(size_t)15;
	if (bytes > left) {
		left = bytes > block ? bytes : block;
		at = calloc(1, left);
		if (!at)
			no_memory();
	}
	left -= bytes;
	at += bytes;
	return at - bytes;
}

void *grow(void *array, size_t *room, size_t count, size_t element)
{
	size_t more = *room;

	if (count <= *room)
		return array;
	while (more < count)
		more = more ? more * 2 : 16;
	array = realloc(array, more * element);
	if (!array)
		no_memory();
	memset((char *)array + *room * element, 0, (more - *room) * element);
	*room = more;
	return array;
}

char *say(const char *format, ...)
{
	char *text;
	va_list args, again;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	text = keep((size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, format, again);
	va_end(again);
	va_end(args);
	return text;
}

void append(struct buffer *to, const char *at, size_t n)
{
	to->at = grow(to->at, &to->room, to->n + n + 1, 1);
	memcpy(to->at + to->n, at, n);
	to->n += n;
}

void print(struct buffer *to, const char *format, ...)
{
	va_list args, again;
	int n;

	va_start(args, format);
	va_copy(again, args);
	n = vsnprintf(NULL, 0, format, args);
	to->at = grow(to->at, &to->room, to->n + (size_t)n + 1, 1);
	vsnprintf(to->at + to->n, (size_t)n + 1, format, again);
	to->n += (size_t)n;
	va_end(again);
	va_end(args);
}
