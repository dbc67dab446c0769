/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pieces of text as RFC 9110 defines them: tokens, field values, lists. */
#include <string.h>
#include <strings.h>

#include "http/exchange.h"

bool weft__text_is(weft_http_text_t text, const char *word)
{
	return text.data && text.length == strlen(word) && !strncasecmp(text.data, word, text.length);
}

static bool is_token_char(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

bool weft__is_token(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (!is_token_char((unsigned char)text[i]))
			return false;
	return length > 0;
}

bool weft__is_field_value(const char *text, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return false;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

weft_http_text_t weft__trim(const char *text, size_t length)
{
	while (length && is_space(text[length - 1]))
		length--;
	return (weft_http_text_t){text, length};
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
	while (is_space(stop[-1]))
		stop--;
	*element = (weft_http_text_t){at, (size_t)(stop - at)};
	return true;
}

int weft__hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
