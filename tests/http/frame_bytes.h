/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* HTTP/2 frames as bytes, for tests that send frames which nghttp2 does not send. */
#ifndef WEFT_TESTS_HTTP_FRAME_BYTES_H
#define WEFT_TESTS_HTTP_FRAME_BYTES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	unsigned char *data;
	size_t length, capacity;
};

static void add(struct bytes *b, const void *data, size_t length)
{
	while (b->capacity - b->length < length) {
		b->capacity = b->capacity ? 2 * b->capacity : 4096;
		b->data = realloc(b->data, b->capacity);
		CHECK(b->data);
	}
	if (length)
		memcpy(b->data + b->length, data, length);
	b->length += length;
}

static void add_number(struct bytes *b, uint64_t number, int bytes)
{
	while (bytes--)
		add(b, &(unsigned char){(unsigned char)(number >> 8 * bytes)}, 1);
}

static void add_frame(struct bytes *b, unsigned type, unsigned flags, uint32_t id, const struct bytes *payload)
{
	add_number(b, payload ? payload->length : 0, 3);
	add_number(b, type, 1);
	add_number(b, flags, 1);
	add_number(b, id, 4);
	if (payload)
		add(b, payload->data, payload->length);
}

static unsigned hex_digit(char c)
{
	return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

static void add_hex(struct bytes *b, const char *at)
{
	for (; at[0] && at[1]; at += 2)
		add_number(b, hex_digit(at[0]) * 16 + hex_digit(at[1]), 1);
}

/* RFC 7541 §5.1, with a prefix of seven bits. */
static void add_string(struct bytes *b, const char *text, size_t length)
{
	size_t rest = length;

	if (rest < 127) {
		add_number(b, rest, 1);
	} else {
		add_number(b, 127, 1);
		for (rest -= 127; rest >= 128; rest /= 128)
			add_number(b, rest % 128 + 128, 1);
		add_number(b, rest, 1);
	}
	add(b, text, length);
}

/* Decodes "%20" in place. */
static size_t decode(char *text)
{
	char *to = text, *at = text;

	for (; *at; at++)
		if (*at == '%' && at[1] && at[2]) {
			*to++ = (char)(hex_digit(at[1]) * 16 + hex_digit(at[2]));
			at += 2;
		} else {
			*to++ = *at;
		}
	return (size_t)(to - text);
}

/* Adds "name=value" as a literal field that is not indexed. */
static void add_field(struct bytes *b, char *field)
{
	char *equals = strchr(field + 1, '=');

	CHECK(equals);
	*equals = 0;
	add_number(b, 0, 1);
	add_string(b, field, decode(field));
	add_string(b, equals + 1, decode(equals + 1));
}

/* Replaces "%{9}", "%[9]" and "%<be:9>". The caller frees the result. */
static char *expand(const char *script)
{
	struct bytes out = {0};
	const char *at;

	for (at = script; *at; at++) {
		char what[8] = "", kind = at[0] == '%' ? at[1] : 0;
		int times = 0, n = 0;

		if (kind == '<')
			CHECK(sscanf(at + 2, "%7[^:]:%d>%n", what, &times, &n) == 2 && n);
		else if (kind == '{' || kind == '[')
			CHECK(sscanf(at + 2, "%d%*1[]}]%n", &times, &n) == 1 && n);
		else
			add(&out, at, 1);
		for (int i = 0; i < times; i++)
			add(&out,
			    kind == '{'	  ? "a"
			    : kind == '[' ? "f=1 "
					  : what,
			    kind == '{'	  ? 1
			    : kind == '[' ? 4
					  : strlen(what));
		at += n ? n + 1 : 0;
	}
	add(&out, "", 1);
	return (char *)out.data;
}

#endif
