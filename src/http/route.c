/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Routes: a list, tried in order. A route without parameters is one comparison of memory, so that a list of some dozens
 * costs less than the rest of a request.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/exchange.h"

/* ---- the list ---------------------------------------------------------------------------------------------------- */

int weft__http_method_of(const char *name, size_t length)
{
	if (length == 1 && *name == '*')
		return ANY_METHOD;
#define METHOD(number, id, text)                                                                                       \
	if (length == sizeof #text - 1 && !memcmp(name, #text, length))                                                \
		return number;
	HTTP_METHOD_MAP(METHOD)
#undef METHOD
	return -EINVAL;
}

/* Checks that there are names behind ':' and '*', and that '*' is only in the last part. @return the number of
 * parameters, or -EINVAL */
static int check_path(const char *path)
{
	int params = 0;

	while (*path == '/') {
		size_t length = strcspn(path + 1, "/");
		const char *part = path + 1;

		path = part + length;
		if (*part != ':' && *part != '*')
			continue;
		if (length == 1 || (*part == '*' && *path) || ++params > PARAMS_MOST)
			return -EINVAL;
	}
	return *path ? -EINVAL : params;
}

int weft__http_add_route(weft_http_server_t *server, const char *pattern, weft_http_handler_t *handler, void *context,
			 void (*release)(void *))
{
	const char *space = pattern && handler ? strchr(pattern, ' ') : NULL;
	int params, method = space ? weft__http_method_of(pattern, (size_t)(space - pattern)) : -EINVAL;
	struct route *r;

	params = space && space[1] == '/' ? check_path(space + 1) : -EINVAL;
	if (params < 0 || (method < 0 && method != ANY_METHOD))
		return -EINVAL;
	r = malloc(sizeof *r + strlen(pattern) + 1);
	if (!r)
		return -ENOMEM;
	*r = (struct route){.handler = handler, .release = release, .context = context, .method = method};
	strcpy(r->pattern, pattern);
	r->path = strchr(r->pattern, ' ') + 1;
	r->plain = params ? 0 : strlen(r->path);
	*server->last = r;
	server->last = &r->next;
	return 0;
}

int weft_http_route(weft_http_server_t *server, const char *pattern, weft_http_handler_t *handler, void *context)
{
	return weft__http_add_route(server, pattern, handler, context, NULL);
}

void weft__http_free_routes(weft_http_server_t *server)
{
	struct route *r, *next;

	for (r = server->routes; r; r = next) {
		next = r->next;
		if (r->release)
			r->release(r->context);
		free(r);
	}
}

/* ---- matching ---------------------------------------------------------------------------------------------------- */

/* The end of the part that begins at `at`. */
static const char *part_end(const char *at, const char *end)
{
	const char *stop = memchr(at, '/', (size_t)(end - at));

	return stop ? stop : end;
}

static void set_param(weft_http_t *x, const char *name, const char *value, const char *end)
{
	x->e->params[x->e->param_count++] = (struct param){name, {value, (size_t)(end - value)}};
}

static bool match_parts(const char *pattern, weft_http_t *x)
{
	const char *at = x->e->path.data, *end = at + x->e->path.length, *stop;
	size_t length;

	x->e->param_count = 0;
	for (; *pattern == '/' && at < end && *at == '/'; pattern += length, at = stop) {
		pattern++;
		at++;
		length = strcspn(pattern, "/");
		stop = part_end(at, end);
		if (*pattern == '*') {
			set_param(x, pattern + 1, at, end);
			return true;
		}
		if (*pattern == ':' && stop > at)
			set_param(x, pattern + 1, at, stop);
		else if ((size_t)(stop - at) != length || memcmp(pattern, at, length) != 0)
			return false;
	}
	return !*pattern && at == end;
}

static bool fits_path(const struct route *r, weft_http_t *x)
{
	if (r->plain)
		return r->plain == x->e->path.length && !memcmp(r->path, x->e->path.data, r->plain);
	return match_parts(r->path, x);
}

static bool fits_method(const struct route *r, const weft_http_t *x)
{
	return r->method == x->e->parser.method || r->method == ANY_METHOD ||
	       (r->method == HTTP_GET && x->e->parser.method == HTTP_HEAD);
}

weft_http_text_t weft_http_param(const weft_http_t *x, const char *name)
{
	unsigned i;
	size_t length = strlen(name);

	for (i = 0; i < x->e->param_count; i++)
		if (strcspn(x->e->params[i].name, "/") == length && !memcmp(x->e->params[i].name, name, length))
			return x->e->params[i].value;
	return (weft_http_text_t){0};
}

/* ---- answers without a route ------------------------------------------------------------------------------------- */

static void add_method(uint64_t *seen, char *text, size_t size, int method)
{
	size_t length = strlen(text);

	if (method == ANY_METHOD || *seen & 1ull << method)
		return;
	*seen |= 1ull << method;
	snprintf(text + length, size - length, "%s%s", length ? ", " : "", llhttp_method_name((llhttp_method_t)method));
}

/* Lists the methods of a path's routes. False: the path has no route. */
static bool allowed(weft_http_t *x, char *text, size_t size)
{
	bool all = x->e->path.length == 1 && *x->e->path.data == '*', any = false;
	const struct route *r;
	uint64_t seen = 0;

	*text = 0;
	for (r = x->server->routes; r; r = r->next) {
		if (!all && !fits_path(r, x))
			continue;
		any = true;
		add_method(&seen, text, size, r->method);
		if (r->method == HTTP_GET)
			add_method(&seen, text, size, HTTP_HEAD);
	}
	if (any)
		add_method(&seen, text, size, HTTP_OPTIONS);
	return any || all;
}

static void answer_without_route(weft_http_t *x)
{
	char methods[256];

	if (!allowed(x, methods, sizeof methods)) {
		weft__http_answer(x, 404);
		return;
	}
	weft_http_add_header(x, "Allow", methods);
	if (x->e->parser.method == HTTP_OPTIONS)
		(void)weft_http_reply(x, 204, NULL, NULL, 0);
	else
		weft__http_answer(x, 405);
}

void weft__http_dispatch(weft_http_t *x)
{
	const struct route *r;

	for (r = x->server->routes; r; r = r->next)
		if (fits_method(r, x) && fits_path(r, x)) {
			r->handler(x, r->context);
			return;
		}
	answer_without_route(x);
}

/* ---- the target -------------------------------------------------------------------------------------------------- */

static int hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes "%41". @return the new length, or -EINVAL */
static ssize_t decode(const char *from, size_t length, char *to, bool form)
{
	size_t i, n = 0;

	for (i = 0; i < length; i++) {
		int c = (unsigned char)from[i];

		if (c == '%') {
			int high = i + 2 < length ? hex_digit((unsigned char)from[i + 1]) : -1;
			int low = high >= 0 ? hex_digit((unsigned char)from[i + 2]) : -1;

			if (low < 0 || !(high | low))
				return -EINVAL;
			c = high * 16 + low;
			i += 2;
		} else if (form && c == '+') {
			c = ' ';
		}
		to[n++] = (char)c;
	}
	return (ssize_t)n;
}

/* Removes "." and ".." parts in place. @return the new length, or -EINVAL if the path leaves the root */
static ssize_t remove_dots(char *path, size_t length)
{
	char *at = path, *to = path, *end = path + length;

	while (at < end) {
		const char *part = at + 1, *stop = part_end(part, end);
		size_t n = (size_t)(stop - part);
		bool last = stop == end;

		at = path + (stop - path);
		if (n == 1 && part[0] == '.') {
			if (last)
				*to++ = '/';
		} else if (n == 2 && part[0] == '.' && part[1] == '.') {
			if (to == path && WEFT_NO_CANARY(http_leaves_root))
				return -EINVAL;
			while (*--to != '/')
				;
			if (last)
				*to++ = '/';
		} else {
			memmove(to, part - 1, n + 1);
			to += n + 1;
		}
	}
	return to - path;
}

static int decode_path(weft_http_t *x)
{
	struct exchange *e = x->e;
	ssize_t n;

	e->decoded = malloc(e->path.length + 1);
	if (!e->decoded)
		return 503;
	n = decode(e->path.data, e->path.length, e->decoded, false);
	if (n > 0)
		n = remove_dots(e->decoded, (size_t)n);
	if (n < 0)
		return 400;
	e->path = (weft_http_text_t){e->decoded, (size_t)n};
	return 0;
}

/* Skips "http://host" of "http://host/path". False: not a valid target of this form. */
static bool skip_authority(weft_http_text_t *target)
{
	const char *end = target->data + target->length, *at = target->data;
	size_t scheme = target->length > 7 && !strncasecmp(at, "http://", 7)	? 7
			: target->length > 8 && !strncasecmp(at, "https://", 8) ? 8
										: 0;

	if (!scheme || memchr("/?", at[scheme], 2))
		return false;
	for (at += scheme; at < end && *at != '/' && *at != '?'; at++)
		if (*at == '@' || *at == '#')
			return false;
	*target = (weft_http_text_t){at, (size_t)(end - at)};
	return true;
}

int weft__http_split_target(weft_http_t *x)
{
	struct exchange *e = x->e;
	weft_http_text_t target = weft_http_target(x);
	const char *at, *end;
	bool coded = false;

	if (!target.length)
		return 400;
	if (target.length == 1 && *target.data == '*') {
		e->path = target;
		return e->parser.method == HTTP_OPTIONS ? 0 : 400;
	}
	if (*target.data != '/' && !skip_authority(&target))
		return 400;
	end = target.data + target.length;
	for (at = target.data; at < end && *at != '?'; at++) {
		if (*at == '#')
			return 400;
		coded |= *at == '%' || (*at == '.' && at > target.data && at[-1] == '/');
	}
	e->path = (weft_http_text_t){target.data, (size_t)(at - target.data)};
	if (at < end) {
		e->query = (weft_http_text_t){at + 1, (size_t)(end - at - 1)};
		if (memchr(at, '#', (size_t)(end - at)))
			return 400;
	}
	if (!e->path.length)
		e->path = (weft_http_text_t){"/", 1};
	return coded ? decode_path(x) : 0;
}

/* ---- accessors --------------------------------------------------------------------------------------------------- */

const char *weft_http_method(const weft_http_t *x)
{
	return llhttp_method_name((llhttp_method_t)x->e->parser.method);
}

weft_http_text_t weft_http_target(const weft_http_t *x)
{
	return (weft_http_text_t){x->e->in + x->e->head + x->e->target.name, x->e->target.name_length};
}

weft_http_text_t weft_http_path(const weft_http_t *x)
{
	return x->e->path;
}

weft_http_text_t weft_http_query(const weft_http_t *x)
{
	return x->e->query;
}

/* Is this the encoded form of `name`? */
static bool is_name(const char *encoded, size_t length, const char *name)
{
	char few[256];
	ssize_t n = length < sizeof few ? decode(encoded, length, few, true) : -EINVAL;

	return n >= 0 && (size_t)n == strlen(name) && !memcmp(few, name, (size_t)n);
}

static ssize_t copy_value(const char *value, size_t length, char *to, size_t size)
{
	ssize_t n;

	if (length < size) {
		n = decode(value, length, to, true);
		if (n >= 0)
			to[n] = 0;
		return n;
	}
	return -ENOSPC;
}

ssize_t weft_http_query_value(const weft_http_t *x, const char *name, char *value, size_t size)
{
	const char *at = x->e->query.data, *end = at ? at + x->e->query.length : at, *stop, *sign;

	for (; at < end; at = stop + 1) {
		stop = memchr(at, '&', (size_t)(end - at));
		if (!stop)
			stop = end;
		sign = memchr(at, '=', (size_t)(stop - at));
		if (!is_name(at, (size_t)((sign ? sign : stop) - at), name))
			continue;
		return sign ? copy_value(sign + 1, (size_t)(stop - sign - 1), value, size)
			    : copy_value(stop, 0, value, size);
	}
	return -ENOENT;
}

weft_http_text_t weft_http_header(const weft_http_t *x, const char *name)
{
	weft_http_text_t its_name, value;
	unsigned i;

	for (i = 0; weft_http_header_at(x, i, &its_name, &value); i++)
		if (weft__text_is(its_name, name))
			return value;
	return (weft_http_text_t){0};
}

bool weft_http_header_at(const weft_http_t *x, unsigned index, weft_http_text_t *name, weft_http_text_t *value)
{
	const struct exchange *e = x->e;
	const char *head = e->in + e->head;

	if (index >= e->trailer_at)
		return false;
	*name = (weft_http_text_t){head + e->fields[index].name, e->fields[index].name_length};
	*value = (weft_http_text_t){head + e->fields[index].value, e->fields[index].value_length};
	return true;
}

weft_http_text_t weft_http_trailer(const weft_http_t *x, const char *name)
{
	const struct exchange *e = x->e;
	unsigned i;

	for (i = e->trailer_at; i < e->count; i++) {
		const struct field *f = &e->fields[i];
		weft_http_text_t its_name = {e->trailer.data + f->name, f->name_length};

		if (weft__text_is(its_name, name))
			return weft__trim((weft_http_text_t){e->trailer.data + f->value, f->value_length});
	}
	return (weft_http_text_t){0};
}

unsigned weft_http_version(const weft_http_t *x)
{
	return x->protocol->version + x->e->parser.http_minor;
}

const weft_address_t *weft_http_peer(const weft_http_t *x)
{
	struct exchange *e = x->e;

	if (!e->peer_known && weft_peer_address(x->stream.fd, &e->peer))
		memset(&e->peer, 0, sizeof e->peer);
	e->peer_known = true;
	return &e->peer;
}

bool weft_http_is_secure(const weft_http_t *x)
{
	return x->stream.kind != NULL;
}
