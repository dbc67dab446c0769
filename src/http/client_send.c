/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sending requests. `out` has the bytes before the next piece of a body: the head, the line of a chunk. A write to a
 * plain socket does not wait; if the socket is full the task waits until it is writable or readable. So a response that
 * comes before the body was sent completely ends the call, and two sides that both write first cannot block each other.
 * A TLS stream is written to in small pieces, each when the socket is writable.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "http/client.h"

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static bool add(struct text *t, const char *string)
{
	return weft__text_add(t, string, strlen(string));
}

static bool add_piece(struct text *t, weft_http_text_t piece)
{
	return weft__text_add(t, piece.data, piece.length);
}

/* Does `fields` have a line of this field? Its lines end with CRLF. */
static bool has_field(const struct text *fields, const char *name)
{
	size_t length = strlen(name), at = 0;

	while (at < fields->length) {
		const char *line = fields->data + at, *end = memchr(line, '\n', fields->length - at);

		if (!strncasecmp(line, name, length) && line[length] == ':')
			return true;
		at += (size_t)(end + 1 - line);
	}
	return false;
}

static bool add_host(weft_http_request_t *r, struct text *t)
{
	return has_field(&r->fields, "host") ||
	       (add(t, "Host: ") && add_piece(t, weft__url_authority(&r->url)) && add(t, "\r\n"));
}

static bool add_agent(weft_http_request_t *r, struct text *t)
{
	const char *agent = r->client->config.user_agent;

	return !agent || has_field(&r->fields, "user-agent") ||
	       (add(t, "User-Agent: ") && add(t, agent) && add(t, "\r\n"));
}

/* Does the method usually have a body? Then servers expect a length even without a body (RFC 9110, 8.6). */
static bool usually_has_body(const char *method)
{
	return !strcmp(method, "POST") || !strcmp(method, "PUT") || !strcmp(method, "PATCH");
}

static bool add_length(weft_http_request_t *r, struct text *t)
{
	char line[64];

	if (r->kind == IN_CHUNKS || (r->kind == NO_BODY && !usually_has_body(r->method)))
		return true;
	snprintf(line, sizeof line, "Content-Length: %llu\r\n", (unsigned long long)r->length);
	return add(t, line);
}

bool weft__client_add_fields(weft_http_request_t *r, struct text *t)
{
	r->expects = r->flags & WEFT_HTTP_EXPECT && (r->kind == IN_CHUNKS || r->length);
	return add_agent(r, t) && weft__text_add(t, r->fields.data, r->fields.length) && add_length(r, t) &&
	       (!r->expects || add(t, "Expect: 100-continue\r\n"));
}

static int compose(weft_http_request_t *r)
{
	struct text *t = &r->out;

	if (add(t, r->method) && add(t, " ") && add_piece(t, weft__url_target(&r->url)) && add(t, " HTTP/1.1\r\n") &&
	    add_host(r, t) && weft__client_add_fields(r, t) &&
	    (r->kind != IN_CHUNKS || add(t, "Transfer-Encoding: chunked\r\n")) && add(t, "\r\n"))
		return 0;
	return -ENOMEM;
}

/* ---- pieces ------------------------------------------------------------------------------------------------------ */

/* Nothing can be written now: waits. 1: try again; 0: the server has answered; or a negative errno. */
static int await_room(weft_http_request_t *r)
{
	struct area *area = r->area;
	int events, error;

	for (;;) {
		bool unread = r->final && (r->complete || area->at < area->end || area->parsed < area->filled);

		events = weft_poll_until(r->connection->stream.fd, unread ? POLLOUT : POLLIN | POLLOUT,
					 unread ? 0 : weft__client_until(r, r->client->config.write_time));
		if (events == -ETIMEDOUT && unread)
			return 0;
		if (events < 0)
			return events;
		if (events & (POLLOUT | POLLERR | POLLHUP)) /* the write returns the error */
			return 1;
		if (r->final)
			return 0;
		error = weft__client_receive_more(r, 0);
		if (error && error != -ETIMEDOUT)
			return error > 0 ? 0 : error;
	}
}

/* Writing has failed, but the server may have sent the reason. */
static ssize_t write_fails(weft_http_request_t *r, ssize_t error)
{
	r->write_error = (int)error;
	if (error != -EPIPE && error != -ECONNRESET)
		return error;
	if (r->final || !weft__client_receive_head(r, weft__client_until(r, r->client->config.header_time)))
		return 0;
	return error;
}

/* Removes n sent bytes from `out`, then from the data, then from the CRLF that ends a chunk. Returns the number of
 * bytes of the data. */
static size_t account(weft_http_request_t *r, size_t n, size_t length, bool ends)
{
	struct text *out = &r->out;
	size_t first = n < out->length ? n : out->length, data;

	if (first < out->length)
		memmove(out->data, out->data + first, out->length - first);
	out->length -= first;
	n -= first;
	data = n < length ? n : length;
	r->written += data;
	if (r->kind == IN_CHUNKS)
		r->chunk -= data;
	if (ends && data == length)
		(void)weft__text_add(out, &"\r\n"[n - data], 2 - (n - data)); /* the chunk's line leaves room for it */
	return data;
}

static ssize_t write_parts(weft_http_request_t *r, struct iovec *parts, int count)
{
	struct stream *s = &r->connection->stream;

	return s->kind ? weft__stream_writev(s, parts, count, weft__client_until(r, r->client->config.write_time))
		       : weft_pwritev_until(s->fd, parts, count, -1, 0);
}

/* One write. `*sent`: bytes of data. */
static ssize_t write_once(weft_http_request_t *r, const char *data, size_t length, size_t *sent)
{
	bool ends = r->chunk && r->chunk == length;
	struct iovec parts[3];
	int count = 0;
	ssize_t n;

	if (r->out.length)
		parts[count++] = (struct iovec){r->out.data, r->out.length};
	if (length)
		parts[count++] = (struct iovec){(void *)(uintptr_t)data, length};
	if (ends)
		parts[count++] = (struct iovec){(void *)(uintptr_t) "\r\n", 2};
	n = write_parts(r, parts, count);
	*sent = n > 0 ? account(r, (size_t)n, length, ends) : 0;
	return n;
}

/* 1: there may be more to send; 0: the server has answered; or a negative errno. `*sent`: bytes of data. */
static ssize_t push_once(weft_http_request_t *r, const char *data, size_t length, size_t *sent)
{
	bool encrypts = r->connection->stream.kind;
	size_t most = encrypts ? RECORD : WRITE_PIECE;
	ssize_t n = encrypts ? await_room(r) : 1;

	*sent = 0;
	if (n <= 0)
		return n;
	n = r->write_error ? r->write_error : write_once(r, data, length < most ? length : most, sent);
	if (n == -ETIMEDOUT && !encrypts)
		return await_room(r);
	return n > 0 ? 1 : write_fails(r, n ? n : -EPIPE);
}

static ssize_t push(weft_http_request_t *r, const char *data, size_t length)
{
	size_t done = 0, sent;
	ssize_t n;

	while (r->out.length || done < length) {
		n = push_once(r, done ? data + done : data, length - done, &sent);
		if (n <= 0)
			return n ? n : (ssize_t)done;
		done += sent;
	}
	return (ssize_t)done;
}

static bool is_sent(const weft_http_request_t *r)
{
	return !r->out.length;
}

/* Begins a chunk unless the preceding chunk is incomplete. */
static ssize_t begin_chunk(weft_http_request_t *r, size_t length)
{
	char line[20];

	if (!r->chunk) {
		r->chunk = length < CHUNK_MOST ? length : CHUNK_MOST;
		snprintf(line, sizeof line, "%zx\r\n", r->chunk);
		if (!add(&r->out, line))
			return -ENOMEM;
	}
	return (ssize_t)(r->chunk < length ? r->chunk : length);
}

static int end_chunks(weft_http_request_t *r)
{
	return add(&r->out, "0\r\n\r\n") ? 0 : -ENOMEM;
}

const struct client_protocol weft__client_http1 = {
    .compose = compose,
    .begin_piece = begin_chunk,
    .push = push,
    .is_sent = is_sent,
    .end = end_chunks,
    .receive = weft__client_receive_more,
    .more_body = weft__client_more_body,
    .let_go = weft__client_give_back,
};

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

static int compose_head(weft_http_request_t *r)
{
	r->out.length = 0;
	weft__client_count(&r->client->stats.requests, r->client);
	return r->protocol->compose(r);
}

/* Sends the head alone, and waits until the server asks for the body, or for config.continue_time. */
static int await_continue(weft_http_request_t *r)
{
	uint64_t until = weft__client_until(r, r->client->config.continue_time);
	ssize_t n = r->protocol->push(r, NULL, 0);
	int got = n < 0 ? (int)n : 0;

	while (r->expects && !r->final && got >= 0)
		got = r->protocol->receive(r, until);
	r->expects = false;
	return got == -ETIMEDOUT && until < r->deadline ? 0 : got < 0 ? got : 0;
}

int weft__client_send(weft_http_request_t *r)
{
	int error = compose_head(r);
	ssize_t n;

	if (!error && r->expects)
		error = await_continue(r);
	if (error || r->final)
		return error;
	n = r->protocol->push(r, r->data, r->length);
	r->sent = r->written == r->length && r->protocol->is_sent(r);
	return n < 0 ? (int)n : 0;
}

/* Connects, and composes the head of a request whose body the caller sends. */
static int begin(weft_http_request_t *r)
{
	int error;

	if (r->kind == NO_BODY)
		r->kind = IN_CHUNKS;
	r->begun = true;
	error = weft__client_connect(r, false);
	if (!error)
		error = compose_head(r);
	return error;
}

static ssize_t write_piece(weft_http_request_t *r, const char *data, size_t length)
{
	ssize_t n = r->kind == IN_CHUNKS ? r->protocol->begin_piece(r, length) : (ssize_t)length;

	return n < 0 ? n : r->protocol->push(r, data, (size_t)n);
}

static int check_write(const weft_http_request_t *r, size_t length)
{
	if (r->error)
		return r->error;
	if (r->kind == IN_MEMORY)
		return -EINVAL;
	if (r->kind == WITH_LENGTH && length > r->length - r->written)
		return -EMSGSIZE;
	return r->sent || r->last ? -EALREADY : 0;
}

/* The result of a call that sends: an error ends the request. */
static ssize_t result(weft_http_request_t *r, ssize_t n)
{
	if (n < 0)
		r->error = (int)n;
	return n;
}

ssize_t weft_http_request_write(weft_http_request_t *r, const void *data, size_t length)
{
	size_t done = 0;
	ssize_t n = check_write(r, length);

	if (n)
		return n;
	if (!r->begun)
		n = begin(r);
	if (!n && r->expects) {
		n = await_continue(r);
		if (!n && r->final)
			return 0;
	}
	while (n >= 0 && done < length) {
		n = write_piece(r, (const char *)data + done, length - done);
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (n >= 0 && r->kind == WITH_LENGTH && r->written == r->length && r->protocol->is_sent(r))
		r->sent = true;
	return n < 0 ? result(r, n) : (ssize_t)done;
}

int weft_http_request_finish(weft_http_request_t *r)
{
	ssize_t n;
	int error;

	if (r->error)
		return r->error;
	if (r->sent || !r->begun)
		return r->kind == WITH_LENGTH && r->length > r->written ? -EINPROGRESS : 0;
	if (r->kind == WITH_LENGTH || r->chunk)
		return -EINPROGRESS;
	error = r->last ? 0 : r->protocol->end(r);
	if (error)
		return error;
	r->last = true;
	n = r->protocol->push(r, NULL, 0);
	r->sent = !n && r->protocol->is_sent(r);
	return n < 0 ? (int)result(r, n) : r->sent ? 0 : -EINPROGRESS;
}
