/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reading requests. llhttp gets each byte once; its callbacks record where the parts of a head are, and move body data
 * to the front of the space in which they were read, so that chunks become contiguous. The parser stops with HPE_PAUSED
 * behind each message, because the next message must wait until this one is answered. llhttp is stricter than the RFCs
 * with tabs around Content-Length and Transfer-Encoding: such requests are refused.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"

static const llhttp_settings_t settings; /* the parser's callbacks, below */

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* Resets the exchange to its state before a request. */
static void reset(struct exchange *e)
{
	memset(&e->began, 0, offsetof(struct exchange, head) - offsetof(struct exchange, began));
	e->length = WEFT_NEVER;
	e->field_ends = true;
}

void weft__http_init_exchange(struct exchange *e)
{
	memset(e, 0, offsetof(struct exchange, began));
	memset(&e->head, 0, offsetof(struct exchange, few) - offsetof(struct exchange, head));
	reset(e);
	e->fields = e->few;
	e->field_room = FEW_HEADERS;
	e->out = (struct text){e->first_out, e->first_out, 0, OUT_SIZE};
	e->answer = (struct text){e->answer_few, e->answer_few, 0, FIELDS_SIZE};
}

static bool has_more_memory(const struct exchange *e)
{
	return e->fields != e->few || e->out.data != e->first_out || e->answer.data != e->answer_few ||
	       e->trailer.data || e->trailers.data || e->own_body || e->decoded;
}

void weft__http_free_exchange(struct exchange *e)
{
	if (e->fields != e->few)
		free(e->fields);
	weft__text_free(&e->out);
	weft__text_free(&e->answer);
	weft__text_free(&e->trailer);
	weft__text_free(&e->trailers);
	free(e->own_body);
	free(e->decoded);
}

/* Returns the memory of an exchange, except e->in, in the state after weft__http_init_exchange, except for the fields
 * that take_exchange sets. */
static void give_exchange(weft_http_t *x)
{
	struct exchange *e = x->e;

	if (has_more_memory(e)) {
		weft__http_free_exchange(e);
		weft__http_init_exchange(e);
	}
	x->e = NULL;
	if (!weft__http_give_spare(x->server, e))
		free(e);
}

/* Takes the memory of an exchange, with `in`, which has n bytes. */
static bool take_exchange(weft_http_t *x, char *in, size_t n)
{
	struct exchange *e = weft__http_take_spare(x->server);

	if (e) {
		reset(e);
		memset(&e->head, 0, offsetof(struct exchange, filled) - offsetof(struct exchange, head));
		e->peer_known = false;
		e->out.length = e->answer.length = 0;
	} else {
		e = malloc(sizeof *e);
		if (!e)
			return false;
		weft__http_init_exchange(e);
	}
	llhttp_init(&e->parser, HTTP_REQUEST, &settings);
	e->parser.data = x;
	e->in = in;
	e->capacity = IN_SIZE;
	e->filled = n;
	x->e = e;
	return true;
}

/* Keeps only the receive buffer, if there is a buffer. */
static void keep_in(weft_http_t *x)
{
	if (!x->e)
		return;
	if (x->e->capacity == IN_SIZE)
		x->in = x->e->in;
	else
		free(x->e->in);
	give_exchange(x);
}

void weft__http_drop_buffers(weft_http_t *x)
{
	keep_in(x);
	weft__http_give_page(x->server, x->in);
	x->in = NULL;
}

/* Frees a page, or memory of malloc if the buffer has grown. */
static void free_in(weft_http_t *x)
{
	if (x->e->capacity == IN_SIZE)
		weft__http_give_page(x->server, x->e->in);
	else
		free(x->e->in);
}

/* Makes room behind an incomplete head: by moving it to the front, or by more memory. */
static bool make_room(weft_http_t *x, size_t most)
{
	struct exchange *e = x->e;
	size_t capacity = e->capacity * 2;
	char *more;

	if (e->head) {
		memmove(e->in, e->in + e->head, e->filled - e->head);
		e->filled -= e->head;
		e->parsed -= e->head;
		e->head = 0;
		return true;
	}
	if (capacity > most)
		capacity = most;
	if (capacity <= e->capacity)
		return false;
	more = malloc(capacity);
	if (!more)
		return false;
	memcpy(more, e->in, e->filled);
	free_in(x);
	e->in = more;
	e->capacity = capacity;
	return true;
}

/* ---- the parser's callbacks -------------------------------------------------------------------------------------- */

static weft_http_t *connection_of(llhttp_t *parser)
{
	return parser->data;
}

_Static_assert(!offsetof(struct exchange, parser), "exchange_of converts its address");

static struct exchange *exchange_of(llhttp_t *parser)
{
	return (struct exchange *)parser;
}

/* Refuses the request. @return stops the parser */
static int refuse(weft_http_t *x, int status)
{
	if (!x->e->failed)
		x->e->failed = status;
	return -1;
}

/* Records a part of the head, or its next piece: llhttp refuses folded lines, so pieces are contiguous. */
static void note(const struct exchange *e, uint32_t *offset, uint32_t *length, const char *at, size_t n)
{
	if (!*length)
		*offset = (uint32_t)((size_t)(at - e->in) - e->head);
	*length += (uint32_t)n;
}

static int on_begin(llhttp_t *parser)
{
	exchange_of(parser)->began = true;
	return 0;
}

static int on_url(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_t *x = connection_of(parser);
	struct exchange *e = exchange_of(parser);

	if (e->target.name_length + length > x->server->config.request_line)
		return refuse(x, 414);
	note(e, &e->target.name, &e->target.name_length, at, length);
	return 0;
}

static __attribute__((noinline)) bool add_room(struct exchange *e)
{
	struct field *more = malloc(2 * e->field_room * sizeof *more);

	if (!more)
		return false;
	memcpy(more, e->fields, e->count * sizeof *more);
	if (e->fields != e->few)
		free(e->fields);
	e->fields = more;
	e->field_room *= 2;
	return true;
}

static inline struct field *add_field(const weft_http_t *x, struct exchange *e)
{
	struct field *f;

	if (e->count - e->trailer_at >= x->server->config.headers || (e->count == e->field_room && !add_room(e)))
		return NULL;
	e->field_ends = false;
	f = &e->fields[e->count++];
	*f = (struct field){0};
	return f;
}

struct field *weft__http_add_field(weft_http_t *x)
{
	return add_field(x, x->e);
}

/* Copies trailer fields, because body data are read over them. */
static int note_trailer(weft_http_t *x, struct field *f, bool value, const char *at, size_t length)
{
	struct text *t = &x->e->trailer;
	uint32_t *offset = value ? &f->value : &f->name, *sum = value ? &f->value_length : &f->name_length;

	if (t->length + length > TRAILER_MOST || !weft__text_add(t, at, length))
		return refuse(x, 431);
	if (!*sum)
		*offset = (uint32_t)(t->length - length);
	*sum += (uint32_t)length;
	return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length)
{
	struct exchange *e = exchange_of(parser);
	struct field *f = e->field_ends ? add_field(connection_of(parser), e) : &e->fields[e->count - 1];

	if (!f)
		return refuse(connection_of(parser), 431);
	if (e->head_done)
		return note_trailer(connection_of(parser), f, false, at, length);
	note(e, &f->name, &f->name_length, at, length);
	return 0;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	struct exchange *e = exchange_of(parser);
	struct field *f = &e->fields[e->count - 1];

	if (!length)
		return 0;
	if (e->head_done)
		return note_trailer(connection_of(parser), f, true, at, length);
	note(e, &f->value, &f->value_length, at, length);
	return 0;
}

static int on_value_complete(llhttp_t *parser)
{
	exchange_of(parser)->field_ends = true;
	return 0;
}

static int on_head(llhttp_t *parser)
{
	weft_http_t *x = connection_of(parser);
	struct exchange *e = exchange_of(parser);

	e->head_done = e->first_piece = true;
	if (parser->method != HTTP_CONNECT)
		parser->upgrade = 0; /* an Upgrade field is ignored */
	e->chunked = parser->flags & F_CHUNKED;
	e->body_length = parser->flags & F_CONTENT_LENGTH ? parser->content_length : 0;
	e->trailer_at = e->count;
	x->keep = llhttp_should_keep_alive(parser);
	return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	struct exchange *e = exchange_of(parser);
	char *to = e->own_body ? e->own_body : e->in;

	if (e->first_piece) { /* it came with the head */
		e->head_end = e->body = e->body_end = (size_t)(at - e->in);
		e->first_piece = false;
	}
	memmove(to + e->body_end, at, length);
	e->body_end += length;
	e->received += length;
	return 0;
}

/* Extensions have no meaning here, and no limit of their own: a body that consists of extensions would never end. */
static int on_extension(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_t *x = connection_of(parser);

	(void)at;
	x->e->extensions += length;
	return x->e->extensions > x->server->config.header_bytes ? refuse(x, 400) : 0;
}

/* A chunk that is too long is refused before its data arrive. */
static int on_chunk(llhttp_t *parser)
{
	weft_http_t *x = connection_of(parser);
	uint64_t most = x->server->config.body;

	return x->e->received > most || parser->content_length > most - x->e->received ? refuse(x, 413) : 0;
}

static int on_complete(llhttp_t *parser)
{
	exchange_of(parser)->complete = true;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_begin,
    .on_url = on_url,
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_head,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_chunk_header = on_chunk,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- errors of the parser ---------------------------------------------------------------------------------------- */

/* The status for a method that llhttp does not know: RFC 9110 allows any token. */
static int status_of_method(const weft_http_t *x)
{
	const char *at = x->e->in + x->e->head, *end = x->e->in + x->e->filled, *stop;

	while (at < end && (*at == '\r' || *at == '\n'))
		at++;
	stop = at;
	while (stop < end && weft__is_token(stop, 1))
		stop++;
	return stop > at && (stop == end || *stop == ' ') ? 501 : 400;
}

/* The received bytes of the protocol behind the target. */
static weft_http_text_t protocol(const struct exchange *e)
{
	const char *at = e->in + e->head + e->target.name + e->target.name_length, *end = e->in + e->filled;

	while (at < end && *at == ' ')
		at++;
	return (weft_http_text_t){at, (size_t)(end - at)};
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* 505 for an existing or future version; llhttp also reports a line that does not end with CRLF. */
static int status_of_version(const weft_http_t *x)
{
	weft_http_text_t p = protocol(x->e);

	if (p.length < 8 || memcmp(p.data, "HTTP/", 5) != 0 || !is_digit(p.data[5]) || p.data[6] != '.' ||
	    !is_digit(p.data[7]) || (p.length > 8 && p.data[8] != '\r'))
		return 400;
	return p.data[5] == '1' && p.data[7] <= '1' ? 400 : 505;
}

static int status_of_error(const weft_http_t *x, llhttp_errno_t error)
{
	if (x->e->failed)
		return x->e->failed;
	if (error == HPE_INVALID_METHOD)
		return status_of_method(x);
	return error == HPE_INVALID_VERSION ? status_of_version(x) : 400;
}

/* ---- feeding the parser ------------------------------------------------------------------------------------------ */

/* Passes the bytes from `parsed` to `filled` to the parser. False: the request is refused. */
static bool feed(weft_http_t *x, char *data)
{
	struct exchange *e = x->e;
	llhttp_errno_t error = llhttp_execute(&e->parser, data + e->parsed, e->filled - e->parsed);

	if (error == HPE_OK) {
		e->parsed = e->filled;
		return true;
	}
	if (error == HPE_PAUSED_H2_UPGRADE && !x->served && weft__h2_is_available()) {
		x->preface = true;
		return false;
	}
	if (error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE) {
		refuse(x, status_of_error(x, error));
		return false;
	}
	e->parsed = (size_t)(llhttp_get_error_pos(&e->parser) - data);
	if (error == HPE_PAUSED)
		llhttp_resume(&e->parser);
	else
		llhttp_resume_after_upgrade(&e->parser);
	return true;
}

static bool is_nothing_buffered(const weft_http_t *x)
{
	return !x->e || x->e->filled == x->e->head;
}

int weft__http_send_last(weft_http_t *x)
{
	return is_nothing_buffered(x) ? weft__http_send(x) : 0;
}

static inline __attribute__((always_inline)) ssize_t receive(weft_http_t *x, char *data, size_t length,
							     uint64_t deadline)
{
	ssize_t n = weft__stream_read(&x->stream, data, length, deadline);

	if (n > 0)
		weft__http_received(x->server, (size_t)n);
	return n;
}

/* Receives the first bytes of a request. A silent connection returns its buffer, and waits without it. */
static ssize_t receive_first(weft_http_t *x)
{
	uint64_t idle = x->server->config.idle_time, now = weft__http_after(x, 0), deadline = weft__from(now, idle);
	ssize_t n = -ETIMEDOUT;

	if (x->in)
		n = receive(x, x->in, IN_SIZE, idle < HOLD_TIME ? deadline : now + HOLD_TIME);
	if (n != -ETIMEDOUT || (x->in && idle < HOLD_TIME))
		return n;
	weft__http_give_page(x->server, x->in);
	x->in = NULL;
	if (weft_current())
		(void)weft_trim(weft_current()); /* handlers and TLS use deeper stacks than this wait */
	if (weft__stream_wait(&x->stream, deadline) <= 0)
		return 0;
	x->in = weft__http_take_page(x->server);
	return x->in ? receive(x, x->in, IN_SIZE, deadline) : 0;
}

static ssize_t await_request(weft_http_t *x)
{
	ssize_t n;

	keep_in(x);
	atomic_store(&x->idle, true);
	if (atomic_load(&x->server->stopping)) /* weft_http_stop may have passed before `idle` was set */
		return 0;
	n = receive_first(x);
	atomic_store_explicit(&x->idle, false, memory_order_relaxed); /* may be seen late: see end_idle */
	if (n > 0 && !take_exchange(x, x->in, (size_t)n))
		return -ENOMEM;
	if (n > 0)
		x->in = NULL;
	return n;
}

static ssize_t read_more(weft_http_t *x, uint64_t *deadline)
{
	const weft_http_config_t *config = &x->server->config;
	struct exchange *e = x->e;
	ssize_t n;

	if (is_nothing_buffered(x))
		return await_request(x);
	if (*deadline == 0)
		*deadline = weft__http_after(x, config->header_time);
	if (e->filled == e->capacity && !make_room(x, config->request_line + config->header_bytes + IN_SIZE))
		return -EMSGSIZE;
	n = receive(x, e->in + e->filled, e->capacity - e->filled, *deadline);
	if (n > 0)
		e->filled += (size_t)n;
	return n;
}

static void refuse_unfinished(weft_http_t *x, ssize_t error)
{
	if (error == -EMSGSIZE)
		refuse(x, 431);
	else if (error == -ETIMEDOUT)
		refuse(x, 408);
	else if (!error && x->e->began)
		refuse(x, 400);
	else
		x->lost = true;
}

int weft__http_read_head(weft_http_t *x)
{
	struct exchange *e;
	uint64_t deadline = 0;
	ssize_t n;

	for (;;) {
		e = x->e;
		if (e && e->parsed < e->filled) {
			if (!feed(x, e->in))
				return 0;
			if (e->head_done) {
				if (e->first_piece)
					e->head_end = e->body = e->body_end = e->parsed;
				e->first_piece = false;
				return 1;
			}
			if (e->filled - e->head > x->server->config.request_line + x->server->config.header_bytes) {
				refuse(x, 431);
				return 0;
			}
		}
		if (weft__http_send(x))
			return 0;
		n = read_more(x, &deadline);
		if (n <= 0) {
			if (!is_nothing_buffered(x))
				refuse_unfinished(x, n);
			return 0;
		}
	}
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static bool is_literal(const char *at, const char *end)
{
	while (at < end && (*at == ':' || weft__span(at, 1, WEFT__HOST)))
		at++;
	return at == end;
}

bool weft__is_host(weft_http_text_t host)
{
	const char *at = host.data, *end = at + host.length;

	if (at < end && *at == '[') {
		at = memchr(at, ']', host.length);
		if (!at || !is_literal(host.data + 1, at))
			return false;
		at++;
	} else {
		at += weft__span(at, host.length, WEFT__HOST);
	}
	if (at < end && *at++ != ':')
		return false;
	while (at < end && is_digit(*at))
		at++;
	return at == end;
}

/* Only "chunked" is implemented; other codings are allowed before it. */
static int check_coding(const weft_http_t *x, weft_http_text_t value, unsigned *count)
{
	weft_http_text_t element = {0};
	bool unknown = false;

	while (weft__next_element(&value, &element)) {
		++*count;
		unknown |= !weft__text_is(element, "chunked");
	}
	if (x->e->parser.http_minor == 0 || !weft__text_is(element, "chunked") || (!unknown && *count > 1))
		return 400;
	return unknown ? 501 : 0;
}

/* The four bytes at `text`, with letters in lower case. Setting that bit turns no other byte into a letter. */
static uint32_t four_letters(const char *text)
{
	uint32_t four;

	memcpy(&four, text, sizeof four);
	return four | 0x20202020;
}

static int check_expect(weft_http_t *x, weft_http_text_t value)
{
	if (x->e->parser.http_minor == 0)
		return 0;
	x->e->expects = weft__text_is(value, "100-continue");
	return x->e->expects ? 0 : 417;
}

/* Most fields are none of these three: their length and their first bytes show that. */
static int check_field(weft_http_t *x, weft_http_text_t name, weft_http_text_t value, unsigned *hosts,
		       unsigned *codings)
{
	switch (name.length) {
	case 4:
		if (four_letters(name.data) == four_letters("host") && (++*hosts > 1 || !weft__is_host(value)))
			return 400;
		return 0;
	case 6:
		return four_letters(name.data) == four_letters("expe") && weft__text_is(name, "expect")
			   ? check_expect(x, value)
			   : 0;
	case 17:
		return weft__text_is(name, "transfer-encoding") ? check_coding(x, value, codings) : 0;
	default:
		return 0;
	}
}

static int check_fields(weft_http_t *x)
{
	const struct exchange *e = x->e;
	const char *head = e->in + e->head;
	struct field *f = e->fields, *end = f + e->trailer_at;
	unsigned hosts = 0, codings = 0;
	size_t bytes = 0;
	int status = 0;

	for (; f < end && !status; f++) {
		weft_http_text_t value = weft__trim((weft_http_text_t){head + f->value, f->value_length});

		f->value_length = (uint32_t)value.length;
		bytes += f->name_length + value.length;
		status = check_field(x, (weft_http_text_t){head + f->name, f->name_length}, value, &hosts, &codings);
	}
	if (bytes > x->server->config.header_bytes)
		return 431;
	return status ? status : e->parser.http_minor && !hosts ? 400 : codings && !e->chunked ? 400 : 0;
}

int weft__http_check_head(weft_http_t *x)
{
	struct exchange *e = x->e;
	const llhttp_t *p = &e->parser;
	weft_http_text_t name = protocol(e);
	int status;

	if (name.length < 5 || memcmp(name.data, "HTTP/", 5) != 0)
		return 400; /* llhttp knows other protocols, with methods of their own */
	if (p->http_major != 1)
		return 505;
	status = check_fields(x);
	if (!status && p->method == HTTP_CONNECT)
		status = 501;
	if (!status)
		status = weft__http_split_target(x);
	if (!status && e->body_length > x->server->config.body)
		status = 413;
	if (e->complete || e->body < e->body_end)
		e->expects = false; /* the client does not wait */
	return status;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static int body_fails(weft_http_t *x, int error)
{
	x->keep = false;
	return x->e->body_error = error;
}

/* Prepares the space for body data. NULL: no memory. */
static char *body_space(struct exchange *e)
{
	if (!e->own_body && e->capacity - e->head_end < MIN_ROOM) {
		e->own_body = malloc(e->capacity);
		if (!e->own_body)
			return NULL;
	}
	e->parsed = e->filled = e->body = e->body_end = e->own_body ? 0 : e->head_end;
	return e->own_body ? e->own_body : e->in;
}

static int continue_if_expected(weft_http_t *x)
{
	static const char line[] = "HTTP/1.1 100 Continue\r\n\r\n";
	struct exchange *e = x->e;

	if (!x->e->expects || weft__http_has_begun(x) ||
	    (x->e->status && WEFT_CANARY(http_status_ends_waiting))) /* too late once the response has begun */
		return 0;
	x->e->expects = false;
	return weft__text_add(&e->out, line, sizeof line - 1) ? 0 : -ENOMEM;
}

static bool is_too_long(const weft_http_t *x)
{
	return x->e->received > x->server->config.body;
}

/* Parses, and receives if all bytes are parsed. */
int weft__http_more_body(weft_http_t *x)
{
	struct exchange *e = x->e;
	char *data = e->own_body ? e->own_body : e->in;
	ssize_t n;

	if (e->parsed == e->filled) {
		int error = continue_if_expected(x);

		data = body_space(e);
		if (!data || error)
			return body_fails(x, -ENOMEM);
		if (weft__http_flush_all(x))
			return body_fails(x, -ECONNRESET);
		n = receive(x, data + e->filled, e->capacity - e->filled,
			    weft__http_after(x, x->server->config.body_time));
		if (n <= 0)
			return body_fails(x, n ? (int)n : -ECONNRESET);
		e->filled += (size_t)n;
	}
	e->body = e->body_end = e->parsed;
	if (!feed(x, data))
		return body_fails(x, x->e->failed == 413 ? -EFBIG : -EBADMSG);
	return is_too_long(x) ? body_fails(x, -EFBIG) : 0;
}

ssize_t weft_http_read(weft_http_t *x, void *data, size_t length)
{
	struct exchange *e = x->e;
	size_t n;
	int error;

	if (e->body_error)
		return e->body_error;
	if (!length)
		return 0;
	while (e->body == e->body_end) {
		if (e->complete)
			return 0;
		error = x->protocol->more_body(x);
		if (error)
			return error;
	}
	n = e->body_end - e->body < length ? e->body_end - e->body : length;
	memcpy(data, (e->own_body ? e->own_body : e->in) + e->body, n);
	e->body += n;
	return (ssize_t)n;
}

ssize_t weft_http_read_all(weft_http_t *x, void *data, size_t length)
{
	size_t sum = 0;
	ssize_t n;
	char one;

	while (sum < length) {
		n = weft_http_read(x, (char *)data + sum, length - sum);
		if (n <= 0)
			return n ? n : (ssize_t)sum;
		sum += (size_t)n;
	}
	n = weft_http_read(x, &one, 1);
	return n > 0 ? -EMSGSIZE : n ? n : (ssize_t)sum;
}

bool weft__http_drain(weft_http_t *x)
{
	struct exchange *e = x->e;
	uint64_t limit = e->received + DRAIN_MOST;

	/* A client that waits for "100 Continue" has not sent a body, and may never do so. */
	while (!e->complete && !e->expects && !e->body_error && e->received < limit)
		(void)weft__http_more_body(x);
	e->body = e->body_end;
	return e->complete;
}

/* ---- the next request -------------------------------------------------------------------------------------------- */

void weft__http_next(weft_http_t *x)
{
	struct exchange *e = x->e;

	if (e->own_body) {
		memcpy(e->in, e->own_body + e->parsed, e->filled - e->parsed);
		e->filled -= e->parsed;
		e->parsed = 0;
		free(e->own_body);
		e->own_body = NULL;
	}
	free(e->decoded);
	e->decoded = NULL;
	e->head = e->parsed;
	e->trailer.length = e->answer.length = e->trailers.length = 0;
	x->served = true;
	if (!is_nothing_buffered(x)) /* the next request has come with this one */
		reset(e);
}
