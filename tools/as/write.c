/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "unit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static const char *both(const char *a, const char *b)
{
	return a ? say("%s%s", a, b) : b;
}

void change_before(struct line *l, const char *text)
{
	l->before = both(l->before, text);
}

void change_after(struct line *l, const char *text)
{
	l->after = both(l->after, text);
}

void change(struct line *l, const char *text)
{
	l->dropped = true;
	l->instead = text;
}

void drop(struct line *l)
{
	l->dropped = true;
	l->instead = NULL;
}

static void write_string(struct buffer *to, const char *text)
{
	if (text)
		append(to, text, strlen(text));
}

void write_text(const struct unit *u, struct buffer *to)
{
	to->at = grow(to->at, &to->room, u->text.n + u->text.n / 4 + 4096, 1);
	for (size_t i = 0; i < u->count; i++) {
		const struct line *l = &u->lines[i];

		write_string(to, l->before);
		if (l->dropped) {
			write_string(to, l->instead);
		} else {
			append(to, l->text.at, l->text.n);
			append(to, "\n", 1);
		}
		write_string(to, l->after);
	}
	append(to, u->end.at ? u->end.at : "", u->end.n);
}

unsigned new_label(struct unit *u)
{
	return ++u->labels;
}

void refuse(const struct unit *u, const struct function *f, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (u->source.n)
		fprintf(stderr, "weft-as: %.*s: ", SHOW(u->source));
	else
		fprintf(stderr, "weft-as: %s: ", u->path);
	if (f)
		fprintf(stderr, "%.*s: ", SHOW(f->symbol->name));
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(1);
}
