/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * URLs: RFC 3986, but only URLs that a request can have. The parser is strict, because the target and the authority
 * become lines of a request: a space or a control character there could begin an additional line. A host must not begin
 * with '.' or '/' or '@', because weft_dial takes these names for Unix sockets.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http_client.h>

#include "http/exchange.h"
#include "http/url.h"

/* The components of a URL or a reference; `data` is NULL if there is no such component. The fragment is dropped. */
struct parts {
	weft_http_text_t scheme, authority, path, query;
};

static bool is_in(char c, char first, char last)
{
	return c >= first && c <= last;
}

static bool is_alnum(char c)
{
	return is_in(c, '0', '9') || is_in(c, 'a', 'z') || is_in(c, 'A', 'Z');
}

static char lower(char c)
{
	return is_in(c, 'A', 'Z') ? (char)(c + 'a' - 'A') : c;
}

/* Moves `*rest` to the first of these characters, or to its end, and returns the text before that. */
static weft_http_text_t cut(weft_http_text_t *rest, const char *stops)
{
	weft_http_text_t first = {rest->data, 0};

	while (first.length < rest->length && !strchr(stops, rest->data[first.length]))
		first.length++;
	rest->data += first.length;
	rest->length -= first.length;
	return first;
}

static void skip(weft_http_text_t *rest, size_t n)
{
	rest->data += n;
	rest->length -= n;
}

static void split_scheme(struct parts *p, weft_http_text_t *rest)
{
	weft_http_text_t at = *rest, scheme = cut(&at, ":/?#");
	size_t i;

	if (!at.length || *at.data != ':' || !scheme.length || is_in(*scheme.data, '0', '9'))
		return;
	for (i = 0; i < scheme.length; i++)
		if (!is_alnum(scheme.data[i]) && !strchr("+-.", scheme.data[i]))
			return;
	p->scheme = scheme;
	skip(&at, 1);
	*rest = at;
}

/* False: the text has bytes that no URL may have. */
static bool split(struct parts *p, weft_http_text_t text)
{
	size_t i;

	for (i = 0; i < text.length; i++)
		if (!is_in(text.data[i], '!', '~'))
			return false;
	*p = (struct parts){0};
	split_scheme(p, &text);
	if (text.length >= 2 && text.data[0] == '/' && text.data[1] == '/') {
		skip(&text, 2);
		p->authority = cut(&text, "/?#");
	}
	p->path = cut(&text, "?#");
	if (text.length && *text.data == '?') {
		skip(&text, 1);
		p->query = cut(&text, "#");
	}
	return true;
}

/* ---- authority --------------------------------------------------------------------------------------------------- */

static bool is_address(weft_http_text_t t)
{
	size_t i;

	for (i = 0; i < t.length; i++)
		if (!is_in(lower(t.data[i]), 'a', 'f') && !is_in(t.data[i], '0', ':') && t.data[i] != '.')
			return false;
	return t.length && memchr(t.data, ':', t.length);
}

static bool is_name(weft_http_text_t t)
{
	return t.length && (is_alnum(*t.data) || *t.data == '_') &&
	       weft__span(t.data, t.length, WEFT__HOST) == t.length && !memchr(t.data, '%', t.length);
}

/* Takes the host in weft_dial's form; `*rest` becomes the text behind it. */
static bool take_host(struct url *url, weft_http_text_t *rest)
{
	bool brackets = rest->length && *rest->data == '[';
	weft_http_text_t host;
	size_t i;

	if (brackets)
		skip(rest, 1);
	host = cut(rest, brackets ? "]" : ":");
	if (brackets ? !rest->length || !is_address(host) : !is_name(host))
		return false;
	if (brackets)
		skip(rest, 1);
	if (host.length >= sizeof url->name)
		return false;
	for (i = 0; i < host.length; i++)
		url->name[i] = lower(host.data[i]);
	url->name[i] = '\0';
	return true;
}

/* ":8080"; without a number the scheme's default applies. */
static bool take_port(struct url *url, weft_http_text_t text)
{
	unsigned long port = 0;
	size_t i;

	if (text.length && *text.data != ':')
		return false;
	for (i = 1; i < text.length; i++) {
		if (!is_in(text.data[i], '0', '9'))
			return false;
		port = port * 10 + (unsigned long)(text.data[i] - '0');
		if (port > 65535)
			return false;
	}
	if (text.length > 1 && !port)
		return false;
	snprintf(url->port, sizeof url->port, "%lu", text.length > 1 ? port : url->secure ? 443ul : 80ul);
	return true;
}

/* ---- parsing ----------------------------------------------------------------------------------------------------- */

static bool add(struct text *t, const char *string)
{
	return weft__text_add(t, string, strlen(string));
}

static bool add_authority(struct text *t, struct url *url)
{
	bool brackets = strchr(url->name, ':'), usual = !strcmp(url->port, url->secure ? "443" : "80");

	url->host = t->length;
	return (!brackets || add(t, "[")) && add(t, url->name) && (!brackets || add(t, "]")) &&
	       (usual || (add(t, ":") && add(t, url->port)));
}

static bool compose(struct text *t, struct url *url, const struct parts *p)
{
	if (!add(t, url->secure ? "https://" : "http://") || !add_authority(t, url))
		return false;
	url->path = t->length;
	return (p->path.length || add(t, "/")) && weft__text_add(t, p->path.data, p->path.length) &&
	       (!p->query.data || (add(t, "?") && weft__text_add(t, p->query.data, p->query.length))) &&
	       weft__text_add(t, "", 1);
}

static int from_parts(struct url *url, const struct parts *p)
{
	weft_http_text_t rest = p->authority;
	struct text t = {0};

	url->secure = weft__text_is(p->scheme, "https");
	if ((!url->secure && !weft__text_is(p->scheme, "http")) || !p->authority.data)
		return -EINVAL;
	if (!take_host(url, &rest) || !take_port(url, rest))
		return -EINVAL;
	if (!compose(&t, url, p)) {
		weft__text_free(&t);
		return -ENOMEM;
	}
	url->text = t.data;
	url->length = t.length - 1;
	return 0;
}

int weft__url_parse(struct url *url, weft_http_text_t text)
{
	struct parts p;

	return split(&p, text) ? from_parts(url, &p) : -EINVAL;
}

/* ---- resolving --------------------------------------------------------------------------------------------------- */

/* Does the text at `at` begin with this segment, and does the segment end there? */
static bool is_segment(const char *at, const char *end, const char *segment)
{
	size_t length = strlen(segment);

	return (size_t)(end - at) >= length && !memcmp(at, segment, length) &&
	       (at + length == end || at[length] == '/');
}

/* RFC 3986, 5.2.4, for a path that begins with '/'. In place; returns the new length. */
static size_t remove_dots(char *path, size_t length)
{
	const char *at = path, *end = path + length;
	char *to = path;

	while (at < end) {
		bool up = is_segment(at, end, "/.."), here = is_segment(at, end, "/.");

		if (up || here) {
			at += up ? 3 : 2;
			while (up && to > path && *--to != '/')
				;
			if (at == end)
				*to++ = '/';
			continue;
		}
		do
			*to++ = *at++;
		while (at < end && *at != '/');
	}
	return (size_t)(to - path);
}

/* The reference's path: relative paths follow the last '/' of the base's path. */
static bool merge(struct text *t, weft_http_text_t base, weft_http_text_t path)
{
	size_t keep = 0;

	if (!path.length || *path.data != '/')
		for (keep = base.length; keep && base.data[keep - 1] != '/'; keep--)
			;
	if (!weft__text_add(t, base.data, keep) || !weft__text_add(t, path.data, path.length))
		return false;
	t->length = remove_dots(t->data, t->length);
	return true;
}

int weft__url_resolve(struct url *url, const struct url *base, weft_http_text_t reference)
{
	struct parts b, r;
	struct text path = {0};
	int error = -ENOMEM;

	if (!split(&r, reference) || !split(&b, (weft_http_text_t){base->text, base->length}))
		return -EINVAL;
	if (!r.scheme.data && !r.authority.data && !r.path.length) {
		r.path = b.path;
		if (!r.query.data)
			r.query = b.query;
	}
	if (merge(&path, r.scheme.data || r.authority.data ? (weft_http_text_t){0} : b.path, r.path)) {
		r.path = (weft_http_text_t){path.data, path.length};
		if (!r.authority.data && !r.scheme.data)
			r.authority = b.authority;
		if (!r.scheme.data)
			r.scheme = b.scheme;
		error = from_parts(url, &r);
	}
	weft__text_free(&path);
	return error;
}

ssize_t weft_http_resolve_url(const char *base, const char *reference, char *url, size_t size)
{
	struct url from, to;
	ssize_t length;
	int error;

	error = weft__url_parse(&from, (weft_http_text_t){base, strlen(base)});
	if (error)
		return error;
	error = weft__url_resolve(&to, &from, (weft_http_text_t){reference, strlen(reference)});
	free(from.text);
	if (error)
		return error;
	length = to.length < size ? (ssize_t)to.length : -ENOSPC;
	if (length >= 0)
		memcpy(url, to.text, to.length + 1);
	free(to.text);
	return length;
}
