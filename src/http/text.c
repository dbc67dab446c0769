/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces of text as RFC 9110 defines them: tokens, field values, lists. */
#include <string.h>

#include "http/exchange.h"

/* The classes of a byte. */
#define ALNUM                                                                                                          \
	['0' ... '9'] = WEFT__TOKEN | WEFT__HOST, ['a' ... 'z'] = WEFT__TOKEN | WEFT__HOST,                            \
		 ['A' ... 'Z'] = WEFT__TOKEN | WEFT__HOST
static const unsigned char classes[256] = {
    ALNUM,
    ['!'] = WEFT__TOKEN | WEFT__HOST,
    ['#'] = WEFT__TOKEN,
    ['$'] = WEFT__TOKEN | WEFT__HOST,
    ['%'] = WEFT__TOKEN | WEFT__HOST,
    ['&'] = WEFT__TOKEN | WEFT__HOST,
    ['\''] = WEFT__TOKEN | WEFT__HOST,
    ['('] = WEFT__HOST,
    [')'] = WEFT__HOST,
    ['*'] = WEFT__TOKEN | WEFT__HOST,
    ['+'] = WEFT__TOKEN | WEFT__HOST,
    [','] = WEFT__HOST,
    ['-'] = WEFT__TOKEN | WEFT__HOST,
    ['.'] = WEFT__TOKEN | WEFT__HOST,
    [';'] = WEFT__HOST,
    ['='] = WEFT__HOST,
    ['^'] = WEFT__TOKEN,
    ['_'] = WEFT__TOKEN | WEFT__HOST,
    ['`'] = WEFT__TOKEN,
    ['|'] = WEFT__TOKEN,
    ['~'] = WEFT__TOKEN | WEFT__HOST,
};

size_t weft__span(const char *text, size_t length, int class)
{
	size_t i;

	for (i = 0; i < length && classes[(unsigned char)text[i]] & class; i++)
		;
	return i;
}

bool weft__is_token(const char *text, size_t length)
{
	return length && weft__span(text, length, WEFT__TOKEN) == length;
}

static bool is_control(unsigned char c)
{
	return c != '\t' && (c < ' ' || c == 127);
}

/* May any of eight bytes be a control character? Tests all eight at once, without a branch. */
static bool may_have_control(const char *text)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t eight, deleted;

	memcpy(&eight, text, sizeof eight);
	deleted = eight ^ each * 127;
	return (((eight - each * ' ') & ~eight) | ((deleted - each) & ~deleted)) & each * 128;
}

bool weft__is_field_value(const char *text, size_t length)
{
	for (; length >= 8 && !may_have_control(text); length -= 8)
		text += 8;
	for (; length && !is_control((unsigned char)*text); length--)
		text++;
	return !length;
}

bool weft__next_element(weft_http_text_t *list, weft_http_text_t *element)
{
	const char *at = list->data, *end = at + list->length, *stop;

	while (at < end && (weft__is_space(*at) || *at == ','))
		at++;
	if (at == end)
		return false;
	for (stop = at; stop < end && *stop != ','; stop++)
		;
	*list = (weft_http_text_t){stop, (size_t)(end - stop)};
	*element = weft__trim((weft_http_text_t){at, (size_t)(stop - at)});
	return true;
}
