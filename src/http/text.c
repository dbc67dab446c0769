/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces of text as RFC 9110 defines them: tokens, field values, lists. */
#include <string.h>

#include "http/exchange.h"

/* The classes of a byte. A table: these tests run over each byte of a field that a handler adds. */
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
    [1 ... 8] = WEFT__CONTROL,
    [0] = WEFT__CONTROL,
    [10 ... 31] = WEFT__CONTROL,
    [127] = WEFT__CONTROL,
};

bool weft__all_are(const char *text, size_t length, int class)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (!(classes[(unsigned char)text[i]] & class))
			return false;
	return true;
}

bool weft__is_token(const char *text, size_t length)
{
	return length && weft__all_are(text, length, WEFT__TOKEN);
}

bool weft__is_field_value(const char *text, size_t length)
{
	unsigned char all = 0;
	size_t i;

	for (i = 0; i < length; i++)
		all |= classes[(unsigned char)text[i]];
	return !(all & WEFT__CONTROL);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

weft_http_text_t weft__trim(weft_http_text_t text)
{
	while (text.length && is_space(text.data[text.length - 1]))
		text.length--;
	return text;
}

bool weft__next_element(weft_http_text_t *list, weft_http_text_t *element)
{
	const char *at = list->data, *end = at + list->length, *stop;

	while (at < end && (is_space(*at) || *at == ','))
		at++;
	if (at == end)
		return false;
	for (stop = at; stop < end && *stop != ','; stop++)
		;
	*list = (weft_http_text_t){stop, (size_t)(end - stop)};
	*element = weft__trim((weft_http_text_t){at, (size_t)(stop - at)});
	return true;
}
