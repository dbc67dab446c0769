/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writing responses. A response begins in `out` with its head, in which SLOT_LENGTH bytes are reserved for the field
 * that frames the body; the body follows. Whether the body fits is known at the end of the handler, or when `out` is
 * full: then the slot is filled with one of
 *
 *   Content-Length: nnnnnnnnnnnn        (digits, behind them spaces)
 *   Transfer-Encoding: chunked
 *   Connection: close                   (HTTP/1.0)
 *
 * Spaces behind a field's value are not part of it (RFC 9110 §5.5); all clients accept them behind numbers.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

void weft__text_free(struct text *t)
{
	if (t->data != t->first)
		free(t->data);
}

static __attribute__((noinline)) bool grow(struct text *t, size_t more)
{
	size_t capacity = t->capacity ? t->capacity : 256;
	char *data;

	while (capacity - t->length < more)
		capacity *= 2;
	data = malloc(capacity);
	if (!data)
		return false;
	if (t->length)
		memcpy(data, t->data, t->length);
	weft__text_free(t);
	t->data = data;
	t->capacity = capacity;
	return true;
}

static inline bool reserve(struct text *t, size_t more)
{
	return t->capacity - t->length >= more || grow(t, more);
}

bool weft__text_reserve(struct text *t, size_t more)
{
	return reserve(t, more);
}

bool weft__text_add(struct text *t, const char *data, size_t length)
{
	if (!reserve(t, length))
		return false;
	if (length)
		memcpy(t->data + t->length, data, length);
	t->length += length;
	return true;
}

static char *put(char *to, const char *data, size_t length)
{
	memcpy(to, data, length);
	return to + length;
}

static char *put_string(char *to, const char *string)
{
	return put(to, string, strlen(string));
}

char *weft__http_put_number(char *to, uint64_t number)
{
	char digits[20];
	int n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while (number /= 10);
	while (n)
		*to++ = digits[--n];
	return to;
}

/* ---- statuses ---------------------------------------------------------------------------------------------------- */

/* The registered names, grouped by hundreds. */
static const char *const names[6][52] = {
    [1] = {[0] = "Continue", [1] = "Switching Protocols", [2] = "Processing", [3] = "Early Hints"},
    [2] = {[0] = "OK",
	   [1] = "Created",
	   [2] = "Accepted",
	   [3] = "Non-Authoritative Information",
	   [4] = "No Content",
	   [5] = "Reset Content",
	   [6] = "Partial Content",
	   [7] = "Multi-Status",
	   [8] = "Already Reported",
	   [26] = "IM Used"},
    [3] = {[0] = "Multiple Choices",
	   [1] = "Moved Permanently",
	   [2] = "Found",
	   [3] = "See Other",
	   [4] = "Not Modified",
	   [5] = "Use Proxy",
	   [7] = "Temporary Redirect",
	   [8] = "Permanent Redirect"},
    [4] = {[0] = "Bad Request",
	   [1] = "Unauthorized",
	   [2] = "Payment Required",
	   [3] = "Forbidden",
	   [4] = "Not Found",
	   [5] = "Method Not Allowed",
	   [6] = "Not Acceptable",
	   [7] = "Proxy Authentication Required",
	   [8] = "Request Timeout",
	   [9] = "Conflict",
	   [10] = "Gone",
	   [11] = "Length Required",
	   [12] = "Precondition Failed",
	   [13] = "Content Too Large",
	   [14] = "URI Too Long",
	   [15] = "Unsupported Media Type",
	   [16] = "Range Not Satisfiable",
	   [17] = "Expectation Failed",
	   [21] = "Misdirected Request",
	   [22] = "Unprocessable Content",
	   [23] = "Locked",
	   [24] = "Failed Dependency",
	   [25] = "Too Early",
	   [26] = "Upgrade Required",
	   [28] = "Precondition Required",
	   [29] = "Too Many Requests",
	   [31] = "Request Header Fields Too Large",
	   [51] = "Unavailable For Legal Reasons"},
    [5] = {[0] = "Internal Server Error",
	   [1] = "Not Implemented",
	   [2] = "Bad Gateway",
	   [3] = "Service Unavailable",
	   [4] = "Gateway Timeout",
	   [5] = "HTTP Version Not Supported",
	   [6] = "Variant Also Negotiates",
	   [7] = "Insufficient Storage",
	   [8] = "Loop Detected",
	   [11] = "Network Authentication Required"},
};

const char *weft_http_status_text(int status)
{
	const char *name =
	    status >= 100 && status < 600 && status % 100 < 52 ? names[status / 100][status % 100] : NULL;

	return name ? name : "";
}

/* ---- sending ----------------------------------------------------------------------------------------------------- */

int weft__http_lose(weft_http_t *x, ssize_t error)
{
	x->lost = true;
	x->keep = false;
	return error < 0 ? (int)error : -EPIPE;
}

/* Counts the result of a write of `length` bytes. */
static int account(weft_http_t *x, ssize_t n, size_t length)
{
	if (n > 0)
		weft__http_sent(x->server, (size_t)n);
	return n == (ssize_t)length ? 0 : weft__http_lose(x, n);
}

static uint64_t write_deadline(const weft_http_t *x)
{
	return weft__http_after(x, x->server->config.write_time);
}

/* Sends the data in parts. Each part must be accepted in config.write_time. */
static int send_all(weft_http_t *x, const char *data, size_t length)
{
	int error = x->lost ? -EPIPE : 0;

	while (length && !error) {
		size_t part = length < PART_MOST ? length : PART_MOST;

		error = account(x, weft__stream_write(&x->stream, data, part, write_deadline(x)), part);
		data += part;
		length -= part;
	}
	return error;
}

int weft__http_send(weft_http_t *x)
{
	struct exchange *e = x->e;
	size_t length = e ? e->out.length : 0;

	if (x->lost)
		return -EPIPE;
	if (!length)
		return 0;
	e->out.length = 0;
	return send_all(x, e->out.data, length);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static char *put_status(char *to, int status)
{
	if (status == 200)
		return put(to, "HTTP/1.1 200 OK\r\n", 17);
	to = put(to, "HTTP/1.1 ", 9);
	to = weft__http_put_number(to, (uint64_t)status);
	*to++ = ' ';
	to = put_string(to, weft_http_status_text(status));
	return put(to, "\r\n", 2);
}

static char *put_date(char *to, const weft_http_t *x)
{
	char date[HTTP_DATE + 1];

	weft__http_date(x->simulated, date);
	to = put(to, "Date: ", 6);
	to = put(to, date, HTTP_DATE);
	return put(to, "\r\n", 2);
}

char *weft__http_put_timing(char *to, const weft_http_t *x)
{
	uint64_t spent = weft_now() - x->e->begun;

	to = put_string(to, "total;dur=");
	to = weft__http_put_number(to, spent / 1000000);
	*to++ = '.';
	*to++ = (char)('0' + spent / 100000 % 10);
	*to++ = (char)('0' + spent / 10000 % 10);
	return to;
}

static char *put_fields(char *to, const weft_http_t *x)
{
	const weft_http_config_t *config = &x->server->config;

	to = put_date(to, x);
	if (config->name) {
		to = put_string(to, "Server: ");
		to = put_string(to, config->name);
		to = put(to, "\r\n", 2);
	}
	if (config->flags & WEFT_HTTP_TIMING) {
		to = weft__http_put_timing(put_string(to, "Server-Timing: "), x);
		to = put(to, "\r\n", 2);
	}
	if (!x->keep)
		to = put_string(to, "Connection: close\r\n");
	return put(to, x->e->answer.data, x->e->answer.length);
}

enum { HEAD_MOST = 320 }; /* bytes without the added fields and the server's name */

/* A client that waits for "100 Continue" may or may not send its body after the final response. */
static bool may_keep(const weft_http_t *x)
{
	return !atomic_load_explicit(&x->server->stopping, memory_order_relaxed) && !x->e->expects;
}

/* Adds a head, with a free slot if the response may have a body. */
static int begin(weft_http_t *x)
{
	struct exchange *e = x->e;
	size_t name = x->server->config.name ? strlen(x->server->config.name) : 0, most = HEAD_MOST + name;
	char *to;

	if (x->lost)
		return -EPIPE;
	if (!x->e->status)
		x->e->status = 200;
	if (!may_keep(x))
		x->keep = false;
	most += e->answer.length;
	if (e->out.capacity - e->out.length < most + OUT_SIZE / 8 && weft__http_send(x))
		return -EPIPE;
	if (!reserve(&e->out, most))
		return weft__http_lose(x, -ENOMEM);
	to = put_status(e->out.data + e->out.length, x->e->status);
	to = put_fields(to, x);
	x->e->slot = (size_t)(to - e->out.data);
	if (weft__http_has_body(x->e->status)) {
		memset(to, ' ', SLOT_LENGTH);
		to = put(to + SLOT_LENGTH, "\r\n", 2);
	}
	to = put(to, "\r\n", 2);
	e->out.length = x->e->body_at = (size_t)(to - e->out.data);
	return 0;
}

/* Fills the slot with a shorter field, and moves the text behind it: some clients reject "chunked" with spaces. */
static void fill_slot_exactly(weft_http_t *x, const char *field)
{
	struct text *out = &x->e->out;
	char *slot = out->data + x->e->slot, *end = put_string(slot, field);
	size_t left = SLOT_LENGTH - (size_t)(end - slot);

	memmove(end, end + left, out->length - x->e->slot - SLOT_LENGTH);
	out->length -= left;
	x->e->body_at -= left;
}

static void fill_slot(weft_http_t *x, enum framing framing)
{
	x->e->framing = framing;
	if (!weft__http_has_body(x->e->status))
		return;
	if (framing == BY_LENGTH)
		weft__http_put_number(put_string(x->e->out.data + x->e->slot, "Content-Length: "), x->e->length);
	else
		fill_slot_exactly(x, framing == BY_CHUNKS ? "Transfer-Encoding: chunked" : "Connection: close");
}

/* Inserts a field before the slot, while the head is in `out`. False: no memory. */
static bool insert(weft_http_t *x, const char *field)
{
	struct text *out = &x->e->out;
	size_t length = strlen(field);

	if (!reserve(out, length))
		return false;
	memmove(out->data + x->e->slot + length, out->data + x->e->slot, out->length - x->e->slot);
	memcpy(out->data + x->e->slot, field, length);
	out->length += length;
	x->e->slot += length;
	x->e->body_at += length;
	return true;
}

/* Decides the framing of the body. */
static void frame(weft_http_t *x)
{
	/* HTTP/1.0 keeps a connection only if both sides say so, and the body has a length. */
	if (x->keep && !x->e->parser.http_minor && (x->e->length != WEFT_NEVER || !weft__http_has_body(x->e->status)))
		x->keep = insert(x, "Connection: keep-alive\r\n");
	if (x->e->length != WEFT_NEVER)
		fill_slot(x, BY_LENGTH);
	else
		fill_slot(x, x->e->parser.http_minor ? BY_CHUNKS : BY_CLOSE);
	if (x->e->framing == BY_CLOSE && weft__http_has_body(x->e->status))
		x->keep = false;
	x->e->streaming = true;
}

static void add_part(struct iovec *parts, int *count, const void *data, size_t length)
{
	if (length)
		parts[(*count)++] = (struct iovec){(void *)(uintptr_t)data, length};
}

static int send_parts(weft_http_t *x, struct iovec *parts, int count)
{
	size_t sum = 0;
	int i;

	for (i = 0; i < count; i++)
		sum += parts[i].iov_len;
	if (!sum)
		return 0;
	return account(x, weft__stream_writev(&x->stream, parts, count, write_deadline(x)), sum);
}

/* Sends the content of `out` (earlier responses, the head unless it was sent, a piece of the body), and the data at
 * `data`, which are not in `out`. Both pieces of the body are one chunk. */
static int push(weft_http_t *x, const char *data, size_t length)
{
	struct exchange *e = x->e;
	size_t body = e->out.length - x->e->body_at, first = length < PART_MOST ? length : PART_MOST;
	bool chunk;
	char head[20];
	struct iovec parts[5];
	int count = 0, error;

	if (!x->e->streaming)
		frame(x);
	chunk = x->e->framing == BY_CHUNKS && body + length;
	add_part(parts, &count, e->out.data, x->e->body_at);
	if (chunk) {
		snprintf(head, sizeof head, "%08zx\r\n", body + length);
		add_part(parts, &count, head, CHUNK_HEAD);
	}
	add_part(parts, &count, e->out.data + x->e->body_at, body);
	add_part(parts, &count, data, first);
	if (chunk && first == length)
		add_part(parts, &count, "\r\n", 2);
	e->out.length = x->e->body_at = 0;
	error = x->lost ? -EPIPE : send_parts(x, parts, count);
	if (error || first == length)
		return error;
	error = send_all(x, data + first, length - first);
	return error || !chunk ? error : send_all(x, "\r\n", 2);
}

static int push_file(weft_http_t *x, int fd, uint64_t offset, uint64_t length)
{
	int64_t at = (int64_t)offset;
	int error = push(x, NULL, 0);

	while (!error && length) {
		size_t part = length < PART_MOST ? (size_t)length : PART_MOST;
		ssize_t n = weft__stream_send_file(&x->stream, fd, &at, part, write_deadline(x));

		x->e->sent += n > 0 ? (uint64_t)n : 0;
		length -= part;
		error = account(x, n, part);
		if (error == -EPIPE && n >= 0)
			error = -EIO; /* the file is shorter than announced */
	}
	return error;
}

static int inform(weft_http_t *x, int status)
{
	struct exchange *e = x->e;
	char line[80];

	if (x->e->parser.http_minor) {
		size_t length = (size_t)(put_status(line, status) - line);

		if (!reserve(&e->out, length + e->answer.length + 2))
			return -ENOMEM;
		weft__text_add(&e->out, line, length);
		weft__text_add(&e->out, e->answer.data, e->answer.length);
		weft__text_add(&e->out, "\r\n", 2);
		weft__http_answered(x->server, status);
	}
	e->answer.length = 0;
	return weft__http_send(x);
}

int weft__http_flush_all(weft_http_t *x)
{
	return weft__http_has_begun(x) && !x->e->finished ? push(x, NULL, 0) : weft__http_send(x);
}

/* ---- for handlers ------------------------------------------------------------------------------------------------ */

/* Puts the head into `out`, where it may stay unsent. */
static int begin_once(weft_http_t *x)
{
	int error;

	if (x->lost)
		return -EPIPE;
	if (weft__http_has_begun(x))
		return 0;
	error = x->protocol->begin(x);
	if (!error)
		x->e->framing = x->e->length != WEFT_NEVER ? BY_LENGTH : BY_CHUNKS;
	return error;
}

int weft_http_set_status(weft_http_t *x, int status)
{
	if (weft__http_has_begun(x))
		return -EALREADY;
	if (status < 200 || status > 599)
		return -EINVAL;
	x->e->status = status;
	return 0;
}

static bool is_ours(const char *name, size_t length)
{
	weft_http_text_t text = {name, length};

	return weft__text_is(text, "content-length") || weft__text_is(text, "transfer-encoding") ||
	       weft__text_is(text, "connection") || weft__text_is(text, "date");
}

/* Adds a field whose name has been checked. */
static int add_value(struct text *t, const char *name, size_t name_length, const char *value)
{
	size_t value_length = value ? strlen(value) : 0;
	char *to;

	if (!value || !weft__is_field_value(value, value_length))
		return -EINVAL;
	if (!reserve(t, name_length + value_length + 4))
		return -ENOMEM;
	to = put(t->data + t->length, name, name_length);
	to = put(to, ": ", 2);
	to = put(to, value, value_length);
	to = put(to, "\r\n", 2);
	t->length = (size_t)(to - t->data);
	return 0;
}

static int add(struct text *t, const char *name, const char *value)
{
	size_t length = name ? strlen(name) : 0;

	if (!weft__is_token(name, length) || is_ours(name, length))
		return -EINVAL;
	return add_value(t, name, length, value);
}

int weft_http_add_header(weft_http_t *x, const char *name, const char *value)
{
	return weft__http_has_begun(x) ? -EALREADY : add(&x->e->answer, name, value);
}

int weft_http_add_trailer(weft_http_t *x, const char *name, const char *value)
{
	return add(&x->e->trailers, name, value);
}

int weft_http_set_length(weft_http_t *x, uint64_t length)
{
	if (weft__http_has_begun(x))
		return -EALREADY;
	if (length >= 1000000000000) /* more digits than the slot has room for */
		return -EINVAL;
	x->e->length = length;
	return 0;
}

void weft_http_set_close(weft_http_t *x)
{
	x->keep = false;
}

/* Writes at most as many bytes as a chunk's length can express. */
static ssize_t write_piece(weft_http_t *x, const char *data, size_t length)
{
	struct text *out = &x->e->out;
	int error = begin_once(x);

	if (error)
		return error;
	if (x->e->length != WEFT_NEVER && length > x->e->length - x->e->written)
		return -EMSGSIZE;
	x->e->written += length;
	if (weft__http_is_silent(x))
		return (ssize_t)length;
	x->e->sent += length;
	if (out->capacity - out->length >= length + CHUNK_HEAD + 2) {
		if (length)
			memcpy(out->data + out->length, data, length);
		out->length += length;
		return (ssize_t)length;
	}
	if (length >= OUT_SIZE / 2)
		error = x->protocol->push(x, data, length);
	else if (!(error = x->protocol->push(x, NULL, 0)))
		weft__text_add(out, data, length);
	return error ? error : (ssize_t)length;
}

ssize_t weft_http_write(weft_http_t *x, const void *data, size_t length)
{
	const char *at = data;
	size_t left = length;
	ssize_t n;

	for (;;) {
		n = write_piece(x, at, left < PIECE_MOST ? left : PIECE_MOST);
		if (n < 0)
			return n;
		left -= (size_t)n;
		if (!left)
			return (ssize_t)length;
		at += n;
	}
}

ssize_t weft_http_printf(weft_http_t *x, const char *format, ...)
{
	char few[256], *text = few;
	va_list arguments;
	ssize_t result;
	int n;

	va_start(arguments, format);
	n = vsnprintf(few, sizeof few, format, arguments);
	va_end(arguments);
	if (n < 0)
		return -EINVAL;
	if ((size_t)n >= sizeof few) {
		text = malloc((size_t)n + 1);
		if (!text)
			return -ENOMEM;
		va_start(arguments, format);
		vsnprintf(text, (size_t)n + 1, format, arguments);
		va_end(arguments);
	}
	result = weft_http_write(x, text, (size_t)n);
	if (text != few)
		free(text);
	return result;
}

int weft_http_flush(weft_http_t *x)
{
	int error = begin_once(x);

	return error ? error : x->protocol->push(x, NULL, 0);
}

int weft_http_reply(weft_http_t *x, int status, const char *type, const void *data, size_t length)
{
	size_t fields = x->e->answer.length;
	ssize_t n;
	int error = weft_http_set_status(x, status);

	if (!error && type)
		error = add_value(&x->e->answer, "Content-Type", 12, type);
	if (!error)
		error = weft_http_set_length(x, length);
	if (error == -EALREADY)
		return error;
	if (error) {
		x->e->status = 0;
		x->e->answer.length = fields;
		return error;
	}
	n = weft_http_write(x, data, length);
	return n < 0 ? (int)n : 0;
}

int weft_http_send_file(weft_http_t *x, int fd, uint64_t offset, uint64_t length)
{
	int error;

	if (!weft__http_has_begun(x) && x->e->length == WEFT_NEVER)
		x->e->length = length;
	error = begin_once(x);
	if (error)
		return error;
	if (x->e->length == WEFT_NEVER)
		return -EALREADY;
	if (length > x->e->length - x->e->written)
		return -EMSGSIZE;
	x->e->written += length;
	return weft__http_is_silent(x) ? 0 : x->protocol->push_file(x, fd, offset, length);
}

int weft_http_inform(weft_http_t *x, int status)
{
	if (weft__http_has_begun(x))
		return -EALREADY;
	if (status < 102 || status > 199)
		return -EINVAL;
	return x->protocol->inform(x, status);
}

static bool has_line_break(const char *text)
{
	return text && strpbrk(text, "\r\n");
}

static int write_lines(weft_http_t *x, const char *data)
{
	size_t length;
	ssize_t n;

	do {
		length = strcspn(data, "\r\n");
		n = weft_http_printf(x, "data: %.*s\n", (int)length, data);
		if (n < 0)
			return (int)n;
		data += length;
		if (!*data)
			break;
		data += data[0] == '\r' && data[1] == '\n' ? 2 : 1;
	} while (true);
	return 0;
}

int weft_http_event(weft_http_t *x, const char *event, const char *id, const char *data)
{
	ssize_t n = 0;
	int error = 0;

	if (has_line_break(event) || has_line_break(id))
		return -EINVAL;
	if (!weft__http_has_begun(x)) {
		error = weft_http_add_header(x, "Content-Type", "text/event-stream");
		if (!error)
			error = weft_http_add_header(x, "Cache-Control", "no-cache");
	}
	if (!error && event)
		n = weft_http_printf(x, "event: %s\n", event);
	if (!error && n >= 0 && id)
		n = weft_http_printf(x, "id: %s\n", id);
	if (!error && n >= 0)
		n = write_lines(x, data ? data : "");
	if (!error && n >= 0)
		n = weft_http_write(x, "\n", 1);
	return error ? error : n < 0 ? (int)n : weft_http_flush(x);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

void weft__http_answer(weft_http_t *x, int status)
{
	const char *text = weft_http_status_text(status);
	char body[80];
	int n = snprintf(body, sizeof body, "%d %s\n", status, text);

	(void)weft_http_reply(x, status, "text/plain", body, (size_t)n);
}

/* The status if the handler did not answer: after an error of the body the fault is the client's. */
static int missing_status(const weft_http_t *x)
{
	switch (x->e->body_error) {
	case -EFBIG:
		return 413;
	case -EBADMSG:
		return 400;
	case -ETIMEDOUT:
		return 408;
	default:
		return 500;
	}
}

static void end_chunks(weft_http_t *x)
{
	struct exchange *e = x->e;

	if (!weft__text_add(&e->out, "0\r\n", 3) || !weft__text_add(&e->out, e->trailers.data, e->trailers.length) ||
	    !weft__text_add(&e->out, "\r\n", 2))
		weft__http_lose(x, -ENOMEM);
}

static bool leaves_too_much(const weft_http_t *x)
{
	return x->keep && !x->e->chunked && x->e->body_length > x->e->received + DRAIN_MOST;
}

static void complete(weft_http_t *x)
{
	if (!x->e->streaming && leaves_too_much(x))
		x->keep = !insert(x, "Connection: close\r\n");
	if (!x->e->streaming && x->e->length == WEFT_NEVER && (!x->e->trailers.length || weft__http_is_silent(x)))
		x->e->length = x->e->written;
	if (!x->e->streaming && x->e->length != WEFT_NEVER)
		frame(x);
	if (x->e->framing == BY_CHUNKS && !weft__http_is_silent(x)) {
		if ((!x->e->streaming || x->e->out.length > x->e->body_at) && push(x, NULL, 0))
			return;
		if (x->e->framing == BY_CHUNKS || WEFT_CANARY(http_chunks_for_all)) /* not HTTP/1.0 */
			end_chunks(x);
	}
	x->e->finished = true;
	/* A body that is shorter than announced cannot be completed, and the client must see that. */
	if (x->e->framing == BY_LENGTH && x->e->written < x->e->length && !weft__http_is_silent(x)) {
		(void)weft__http_send(x);
		weft__http_lose(x, -EPIPE);
	}
}

const struct protocol weft__http1 = {10, weft__http_more_body, begin, push, push_file, inform, complete};

void weft__http_finish(weft_http_t *x)
{
	if (x->e->body_error == -ECONNRESET)
		x->lost = true;
	if (!weft__http_has_begun(x) && !x->e->status) {
		x->e->answer.length = 0;
		weft__http_answer(x, missing_status(x));
	}
	if (!begin_once(x))
		x->protocol->complete(x);
}
