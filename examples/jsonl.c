/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * jsonl.c: a streaming parser that is plain recursive descent. It reads JSON values, one after the other, from stdin and
 * prints each scalar with its path. The parser is a coroutine that asks for bytes when it has none, so it can be fed
 * chunks cut anywhere; the handler reads 1, 2, 3, … bytes at a time to prove it. A malformed line is reported, and the
 * parser starts over on the next.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

/* doc: begin effects */
typedef struct chunk {
	const char *bytes;
	size_t size; /* 0 at the end of the input */
} chunk_t;

WEFT_EFFECT(chunk_t, need_input);
WEFT_EFFECT(void, found, const char *, path, const char *, text);
WEFT_EXCEPTION(malformed, const char *, why);
/* doc: end */

enum { LIMIT = 256 }; /* of a path or a scalar, in bytes */

struct parser {
	chunk_t input;
	long line, values;
	char path[LIMIT], text[LIMIT];
	size_t path_size, text_size;
};

/* doc: begin next */
/* The next byte without taking it; -1 at the end. */
static int peek(struct parser *p)
{
	if (!p->input.size)
		p->input = need_input();
	return p->input.size ? (unsigned char)*p->input.bytes : -1;
}

static int next(struct parser *p)
{
	int c = peek(p);

	if (c >= 0) {
		p->input.bytes++;
		p->input.size--;
		p->line += c == '\n';
	}
	return c;
}
/* doc: end */

/* Skips blanks, looks at what follows. */
static int look(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\r')
		next(p);
	return peek(p);
}

static bool take(struct parser *p, int c)
{
	return look(p) == c && next(p) == c;
}

static void put(char *to, size_t *size, int c)
{
	if (*size == LIMIT - 1)
		malformed("too long");
	to[(*size)++] = (char)c;
	to[*size] = '\0';
}

static int next_of_string(struct parser *p)
{
	if (peek(p) < ' ')
		malformed("a string does not end");
	return next(p);
}

static void parse_string(struct parser *p, char *to, size_t *size)
{
	int c;

	if (!take(p, '"'))
		malformed("a string was expected");
	while ((c = next_of_string(p)) != '"') {
		put(to, size, c);
		if (c == '\\')
			put(to, size, next_of_string(p));
	}
}

/* true, false, null or a number. */
static void parse_word(struct parser *p)
{
	char *end;

	while (peek(p) >= 0 && (isalnum(peek(p)) || strchr("+-.", peek(p))))
		put(p->text, &p->text_size, next(p));
	if (!strcmp(p->text, "true") || !strcmp(p->text, "false") || !strcmp(p->text, "null"))
		return;
	(void)strtod(p->text, &end);
	if (*end || !p->text_size || !strchr("-0123456789", *p->text))
		malformed("a value was expected");
}

/* doc: begin value */
static void parse_value(struct parser *p);

/* What is between [ and ], or { and }: each value's path is the path so far and its index, or its name. */
static void parse_members(struct parser *p, int end)
{
	size_t outer = p->path_size;
	char index[16];
	int count = 0;

	if (take(p, end))
		return;
	do {
		p->path_size = outer;
		put(p->path, &p->path_size, '.');
		if (end == ']') {
			sprintf(index, "%d", count++);
			for (const char *digit = index; *digit; digit++)
				put(p->path, &p->path_size, *digit);
		} else {
			parse_string(p, p->path, &p->path_size);
			if (!take(p, ':'))
				malformed("a colon was expected");
		}
		parse_value(p);
	} while (take(p, ','));
	if (!take(p, end))
		malformed("a comma or the end of the list was expected");
	p->path[p->path_size = outer] = '\0';
}

static void parse_value(struct parser *p)
{
	if (take(p, '{')) {
		parse_members(p, '}');
	} else if (take(p, '[')) {
		parse_members(p, ']');
	} else {
		p->text[p->text_size = 0] = '\0';
		if (look(p) == '"')
			parse_string(p, p->text, &p->text_size);
		else
			parse_word(p);
		found(p->path, p->text);
	}
}

static void *parse_lines(void *arg)
{
	struct parser *p = arg;

	for (; look(p) >= 0; take(p, '\n')) {
		if (look(p) == '\n')
			continue;
		p->path[p->path_size = 0] = '\0';
		parse_value(p);
		if (look(p) >= 0 && look(p) != '\n')
			malformed("the end of the line was expected");
		p->values++;
	}
	return NULL;
}
/* doc: end */

static void *skip_line(void *arg)
{
	struct parser *p = arg;

	while (peek(p) >= 0 && peek(p) != '\n')
		next(p);
	return parse_lines(p);
}

int main(void)
{
	struct parser p = {.line = 1};
	weft_coro_t *k = weft_create(parse_lines, &p);
	char buffer[64];
	weft_request_t r;
	size_t size = 0;

	/* doc: begin feed */
	weft_handle (r, k, need_input, found, malformed) {
		if (weft_is(need_input, r)) {
			ssize_t got = read(STDIN_FILENO, buffer, size++ % sizeof(buffer) + 1);

			weft_reply(need_input, r, ((chunk_t){buffer, got > 0 ? (size_t)got : 0}));
		} else if (weft_is(found, r)) {
			printf("%ld%s = %s\n", p.line, weft_args(found, r)->path, weft_args(found, r)->text);
		} else {
			printf("%ld: malformed: %s\n", p.line, weft_args(malformed, r)->why);
			weft_reset(k, skip_line, &p);
		}
	}
	/* doc: end */
	printf("%ld values\n", p.values);
	weft_delete(k);
}
