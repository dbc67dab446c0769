/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Redirects: RFC 9110, 15.4. The request becomes the redirected request: its URL, and possibly its method, body and
 * fields. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"

static bool is_redirect(int status)
{
	return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* Does the method become GET? After 303 it does, except for HEAD; after 301 and 302 a POST does, because all browsers
 * do that. */
static bool becomes_get(const weft_http_request_t *r)
{
	if (r->status == 303)
		return strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0;
	return (r->status == 301 || r->status == 302) && !strcmp(r->method, "POST");
}

static bool can_be_sent_again(const weft_http_request_t *r)
{
	return r->kind == NO_BODY || r->kind == IN_MEMORY;
}

/* Fields that must not leave their origin, and fields of a body that is not sent again. */
static bool is_dropped(weft_http_text_t name, bool other_origin, bool no_body)
{
	static const char *const of_origin[] = {"authorization", "cookie",  "host",
						"origin",	 "referer", "proxy-authorization"};
	static const char *const of_body[] = {"digest", "last-modified"};
	size_t i;

	for (i = 0; other_origin && i < sizeof of_origin / sizeof *of_origin; i++)
		if (weft__text_is(name, of_origin[i]))
			return true;
	for (i = 0; no_body && i < sizeof of_body / sizeof *of_body; i++)
		if (weft__text_is(name, of_body[i]))
			return true;
	return no_body && name.length > 8 && !strncasecmp(name.data, "content-", 8);
}

static void drop_fields(struct text *fields, bool other_origin, bool no_body)
{
	size_t at, length, kept = 0;

	for (at = 0; at < fields->length; at += length) {
		const char *line = fields->data + at, *end = memchr(line, '\n', fields->length - at);
		weft_http_text_t name = {line, (size_t)((const char *)memchr(line, ':', fields->length - at) - line)};

		length = (size_t)(end + 1 - line);
		if (is_dropped(name, other_origin, no_body) && !WEFT_CANARY(http_client_keeps_fields))
			continue;
		memmove(fields->data + kept, line, length);
		kept += length;
	}
	fields->length = kept;
}

static bool is_same_origin(const struct url *a, const struct url *b)
{
	return a->path == b->path && !memcmp(a->text, b->text, a->path);
}

/* Reads the rest of the body, if it is short, so that the connection can be reused. */
static void pass_over(weft_http_request_t *r)
{
	char data[1024];

	r->answered = true;
	while (!r->complete && !r->error && r->received < PASS_OVER &&
	       (r->announced == WEFT_NEVER || r->announced < PASS_OVER) &&
	       weft_http_response_read(r, data, sizeof data) > 0)
		;
	r->answered = false;
}

static void become_next(weft_http_request_t *r, bool get)
{
	drop_fields(&r->fields, !is_same_origin(&r->url, &r->next), get);
	free(r->url.text);
	r->url = r->next;
	r->next.text = NULL;
	if (get) {
		memcpy(r->method, "GET", 4);
		r->kind = NO_BODY;
		r->data = NULL;
		r->length = 0;
	}
	r->repeated = r->only_1 = false;
}

int weft__client_redirect(weft_http_request_t *r)
{
	weft_http_text_t location = weft_http_response_header(r, "location");
	bool get = becomes_get(r);
	int error;

	if (r->flags & WEFT_HTTP_NO_REDIRECTS || !is_redirect(r->status) || !location.data)
		return 0;
	if (!get && !can_be_sent_again(r))
		return 0;
	error = weft__url_resolve(&r->next, &r->url, location);
	if (error)
		return error == -ENOMEM ? error : 0;
	if (r->redirects++ == r->client->config.redirects)
		return -ELOOP;
	pass_over(r);
	weft__client_let_go(r);
	r->error = 0; /* an error in a body that is discarded */
	become_next(r, get);
	return 1;
}
