/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * jsonl.c: a streaming parser that is plain recursive descent. It reads JSON values, one on each line, from stdin and
 * prints each scalar with its path. The parser is a coroutine that requests bytes when it has none, so the input can be
 * split anywhere; main reads 1, 2, 3, … bytes at a time to prove it. A malformed line is reported, and the parser
 * starts over on the next.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weft/weft.h>

#include "must.h"

/* doc: begin effects */
typedef struct chunk {
	const char *bytes;
	size_t size; /* 0 at the end of the input */
} chunk_t;

WEFT_EFFECT(chunk_t, need_input);
WEFT_EFFECT(void, found, const char *, path, const char *, scalar);
WEFT_EXCEPTION(malformed, const char *, why);
/* doc: end */

struct text {
	size_t size;
	char bytes[256];
};

struct parser {
	chunk_t input;
	long line, values;
	struct text path, scalar;
};

/* doc: begin next */
/* Returns the next byte without consuming it; -1 at the end. All other functions are an ordinary textbook parser. */
static int peek(struct parser *p)
{
	if (!p->input.size)
		p->input = need_input();
	return p->input.size ? (unsigned char)*p->input.bytes : -1;
}
/* doc: end */

static int next(struct parser *p)
{
	int c = peek(p);

	if (c < 0)
		malformed("the input ends too early");
	p->input.bytes++;
	p->input.size--;
	p->line += c == '\n';
	return c;
}

static int peek_past_blanks(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\r')
		next(p);
	return peek(p);
}

static bool take(struct parser *p, int c)
{
	return peek_past_blanks(p) == c && next(p) == c;
}

static void expect(struct parser *p, int c, const char *otherwise)
{
	if (!take(p, c))
		malformed(otherwise);
}

static void cut(struct text *text, size_t size)
{
	text->bytes[text->size = size] = '\0';
}

static void append(struct text *text, int c)
{
	if (text->size == sizeof(text->bytes) - 1)
		malformed("a name or a scalar is too long");
	text->bytes[text->size] = (char)c;
	cut(text, text->size + 1);
}

static void parse_string(struct parser *p, struct text *text)
{
	expect(p, '"', "a string was expected");
	for (int escaped = 0; escaped || peek(p) != '"'; append(text, next(p))) {
		if (peek(p) == '\n')
			malformed("a string does not end");
		escaped = !escaped && peek(p) == '\\';
	}
	next(p);
}

/* Parses true, false, null or a number. */
static void parse_word(struct parser *p, struct text *text)
{
	char *end;

	while (isalnum(peek(p)) || peek(p) == '+' || peek(p) == '-' || peek(p) == '.')
		append(text, next(p));
	if (!strcmp(text->bytes, "true") || !strcmp(text->bytes, "false") || !strcmp(text->bytes, "null"))
		return;
	(void)strtod(text->bytes, &end);
	if (!text->size || *end || (*text->bytes != '-' && !isdigit((unsigned char)*text->bytes)))
		malformed("a value was expected");
}

/* doc: begin value */
static void parse_value(struct parser *p);

/* Parses the text between [ and ], or { and }. A member's path is its container's path, followed by its index or
 * name. */
static void parse_members(struct parser *p, int end)
{
	size_t outer = p->path.size;
	char index[16];
	int count = 0;

	if (take(p, end))
		return;
	do {
		cut(&p->path, outer);
		append(&p->path, '.');
		if (end == '}') {
			parse_string(p, &p->path);
			expect(p, ':', "a colon was expected");
		} else {
			sprintf(index, "%d", count++);
			for (const char *digit = index; *digit; digit++)
				append(&p->path, *digit);
		}
		parse_value(p);
	} while (take(p, ','));
	expect(p, end, "a comma or the end of a list was expected");
	cut(&p->path, outer);
}

static void parse_value(struct parser *p)
{
	cut(&p->scalar, 0);
	if (take(p, '{')) {
		parse_members(p, '}');
	} else if (take(p, '[')) {
		parse_members(p, ']');
	} else {
		(peek(p) == '"' ? parse_string : parse_word)(p, &p->scalar);
		found(p->path.bytes, p->scalar.bytes);
	}
}

static void *parse_lines(void *arg)
{
	struct parser *p = arg;

	for (; peek_past_blanks(p) >= 0; take(p, '\n')) {
		if (peek(p) == '\n')
			continue;
		cut(&p->path, 0);
		parse_value(p);
		if (peek_past_blanks(p) >= 0 && peek(p) != '\n')
			malformed("the end of the line was expected");
		p->values++;
	}
	return NULL;
}
/* doc: end */

static void *skip_line(void *arg)
{
	while (peek(arg) >= 0 && peek(arg) != '\n')
		next(arg);
	return parse_lines(arg);
}

/* doc: begin feed */
int main(void)
{
	struct parser p = {.line = 1};
	weft_coro_t *k = must(weft_create(parse_lines, &p));
	size_t chunks = 0;
	char buffer[64];
	weft_request_t r;

	weft_set_failure_hook(must_not_fail);
	weft_handle (r, k, need_input, found, malformed) {
		if (weft_is(need_input, r)) {
			ssize_t size = read(STDIN_FILENO, buffer, chunks++ % sizeof(buffer) + 1);

			weft_reply(need_input, r, ((chunk_t){buffer, size > 0 ? (size_t)size : 0}));
		} else if (weft_is(found, r)) {
			printf("%ld%s = %s\n", p.line, weft_args(found, r)->path, weft_args(found, r)->scalar);
		} else {
			printf("%ld: malformed: %s\n", p.line, weft_args(malformed, r)->why);
			weft_reset(k, skip_line, &p);
		}
	}
	printf("%ld values\n", p.values);
	weft_delete(k);
}
/* doc: end */
