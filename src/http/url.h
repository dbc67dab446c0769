/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * URLs of requests, in one form: "http://host[:port]/path[?query]", where scheme and host are in lower case, the port
 * is not the scheme's own, and the path is not empty. So two URLs have the same origin if they are equal up to `path`.
 */
#ifndef HTTP_URL_H
#define HTTP_URL_H

#include <stdbool.h>
#include <stddef.h>
#include <weft/http.h>

struct url {
	char *text; /* allocated, with a zero at its end */
	size_t length;
	size_t host, path; /* the offsets of the authority, and of the path */
	char name[256];	   /* the host in weft_dial's form: without brackets */
	char port[6];
	bool secure;
};

/* 0; -EINVAL: not an http or https URL, or bytes that no URL may have; -ENOMEM. After an error there is nothing to
 * free. */
int weft__url_parse(struct url *url, weft_http_text_t text);
/* Resolves a reference by RFC 3986, 5.2. Returns like weft__url_parse. */
int weft__url_resolve(struct url *url, const struct url *base, weft_http_text_t reference);

static inline weft_http_text_t weft__url_origin(const struct url *url)
{
	return (weft_http_text_t){url->text, url->path};
}

static inline weft_http_text_t weft__url_authority(const struct url *url)
{
	return (weft_http_text_t){url->text + url->host, url->path - url->host};
}

static inline weft_http_text_t weft__url_target(const struct url *url)
{
	return (weft_http_text_t){url->text + url->path, url->length - url->path};
}

#endif
