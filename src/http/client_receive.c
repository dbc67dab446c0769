/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Receiving responses. llhttp gets each byte once, as in request.c; each message has a parser of its own, because
 * llhttp treats the bytes behind a 1xx response with "Connection: close" as garbage.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"

/* ---- the parser's callbacks -------------------------------------------------------------------------------------- */

static weft_http_request_t *request_of(llhttp_t *parser)
{
	return parser->data;
}

/* Fails the request. @return stops the parser */
static int refuse(weft_http_request_t *r, int error)
{
	if (!r->error)
		r->error = error;
	return -1;
}

struct field *weft__client_add_field(weft_http_request_t *r)
{
	unsigned room = r->field_room ? 2 * r->field_room : 16;
	struct field *more;

	if (r->count - r->trailer_at >= r->client->config.headers) {
		refuse(r, -EMSGSIZE);
		return NULL;
	}
	if (r->count == r->field_room && !(r->count && WEFT_CANARY(http_client_has_room))) {
		more = realloc(r->fields_at, room * sizeof *more);
		if (!more) {
			refuse(r, -ENOMEM);
			return NULL;
		}
		r->fields_at = more;
		r->field_room = room;
	}
	r->in_value = false;
	r->fields_at[r->count] = (struct field){0};
	return &r->fields_at[r->count++];
}

/* Records a piece of a name or a value. The head stays in place; a trailer is copied, because body data are received
 * over it. */
static int note(weft_http_request_t *r, uint32_t *offset, uint32_t *length, const char *at, size_t n)
{
	r->head_bytes += n;
	if (r->head_bytes > r->client->config.header_bytes)
		return refuse(r, -EMSGSIZE);
	if (r->head_done && !weft__text_add(&r->trailer, at, n))
		return refuse(r, -ENOMEM);
	if (!*length)
		*offset = (uint32_t)(r->head_done ? r->trailer.length - n : (size_t)(at - r->head.data));
	*length += (uint32_t)n;
	return 0;
}

static int on_field(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_request_t *r = request_of(parser);
	bool begins = r->in_value || r->count == (r->head_done ? r->trailer_at : 0);
	struct field *f = begins ? weft__client_add_field(r) : &r->fields_at[r->count - 1];

	return f ? note(r, &f->name, &f->name_length, at, length) : -1;
}

static int on_value(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_request_t *r = request_of(parser);
	struct field *f = &r->fields_at[r->count - 1];

	r->in_value = true;
	return length ? note(r, &f->value, &f->value_length, at, length) : 0;
}

static int on_value_complete(llhttp_t *parser)
{
	request_of(parser)->in_value = true;
	return 0;
}

static weft_http_text_t text_of(const weft_http_request_t *r, unsigned index, bool value)
{
	const struct field *f = &r->fields_at[index];
	const char *from = index < r->trailer_at ? r->head.data : r->trailer.data;

	if (value)
		return weft__trim((weft_http_text_t){from + f->value, f->value_length});
	return (weft_http_text_t){from + f->name, f->name_length};
}

/* Checks that "chunked" is the only transfer coding, because this client decodes no other. Returns 1 if the head has
 * it, else 0; or a negative errno. */
static int check_codings(const weft_http_request_t *r)
{
	weft_http_text_t value, element;
	int count = 0;
	unsigned i;

	for (i = 0; i < r->count; i++) {
		if (!weft__text_is(text_of(r, i, false), "transfer-encoding"))
			continue;
		value = text_of(r, i, true);
		if (!value.length)
			return -EBADMSG;
		while (weft__next_element(&value, &element))
			if (++count > 1 || !weft__text_is(element, "chunked"))
				return -EBADMSG;
	}
	return count;
}

/* Has the response a body? If it has none, it ends with its head, whatever length the head announces. */
static bool has_body(const weft_http_request_t *r, int status)
{
	return status >= 200 && status != 204 && status != 304 && strcmp(r->method, "HEAD") != 0;
}

static void note_head(weft_http_request_t *r, llhttp_t *parser, bool coded)
{
	bool none = r->status == 204 && (coded || parser->content_length);

	r->final = true;
	r->version = 10 + parser->http_minor;
	r->keep = llhttp_should_keep_alive(parser) && !none; /* a server that adds a length may add a body */
	r->announced = parser->flags & F_CONTENT_LENGTH ? parser->content_length : WEFT_NEVER;
}

static int on_head(llhttp_t *parser)
{
	weft_http_request_t *r = request_of(parser);
	bool body = has_body(r, parser->status_code);
	int coded;

	r->status = parser->status_code;
	r->trailer_at = r->count;
	coded = check_codings(r);
	if (parser->http_major != 1 || r->status < 100 || r->status == 101 || coded < 0 ||
	    (coded && !parser->http_minor))
		return refuse(r, -EBADMSG);
	if (!body)
		parser->flags |= F_SKIPBODY; /* llhttp_should_keep_alive checks it */
	if (r->status >= 200)
		note_head(r, parser, coded);
	parser->upgrade = 0;
	r->head_done = true;
	r->head_bytes = 0;
	return body ? 0 : 1;
}

/* Moves body data to the front of the area, so that pieces of chunks become contiguous. */
static int on_body(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_request_t *r = request_of(parser);
	struct area *area = r->area;

	if (WEFT_CANARY(http_client_loses_bytes) && r->received > 10000)
		return 0;
	if (area->at == area->end)
		area->at = area->end = (size_t)(at - area->data);
	memmove(area->data + area->end, at, length);
	area->end += length;
	r->received += length;
	return 0;
}

/* Extensions have no meaning here, and no limit of their own: a body that consists of extensions would never end. */
static int on_extension(llhttp_t *parser, const char *at, size_t length)
{
	weft_http_request_t *r = request_of(parser);

	(void)at;
	r->extensions += length;
	return r->extensions > r->client->config.header_bytes ? refuse(r, -EMSGSIZE) : 0;
}

static int on_complete(llhttp_t *parser)
{
	request_of(parser)->complete = true;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_header_value_complete = on_value_complete,
    .on_headers_complete = on_head,
    .on_chunk_extension_name = on_extension,
    .on_chunk_extension_value = on_extension,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

/* ---- messages ---------------------------------------------------------------------------------------------------- */

static void begin_message(weft_http_request_t *r)
{
	llhttp_init(&r->parser, HTTP_RESPONSE, &settings);
	r->parser.data = r;
	r->head_done = r->complete = r->in_value = false;
	r->count = r->trailer_at = 0;
	r->head_bytes = 0;
}

void weft__client_reset_response(weft_http_request_t *r)
{
	begin_message(r);
	r->status = 0;
	r->started = r->final = r->keep = false;
	r->body_error = 0;
	r->informed = 0;
	r->area = &r->head;
	r->head.at = r->head.end = r->head.parsed = r->head.filled = 0;
	r->body.at = r->body.end = r->body.parsed = r->body.filled = 0;
	r->trailer.length = 0;
	r->received = r->extensions = 0;
	r->announced = WEFT_NEVER;
}

/* Passes the unparsed bytes to the parser. 0, or a negative errno. */
static int feed(weft_http_request_t *r)
{
	struct area *area = r->area;
	llhttp_errno_t error = llhttp_execute(&r->parser, area->data + area->parsed, area->filled - area->parsed);

	if (error == HPE_OK) {
		area->parsed = area->filled;
		return 0;
	}
	if (error != HPE_PAUSED)
		return refuse(r, -EBADMSG), r->error;
	area->parsed = (size_t)(llhttp_get_error_pos(&r->parser) - area->data);
	return 0;
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

/* Prepares for the message after a 1xx response: moves the bytes behind that response to the front. */
static int next_message(weft_http_request_t *r)
{
	struct area *area = &r->head;

	if (++r->informed > INFORM_MOST)
		return refuse(r, -EBADMSG), r->error;
	if (r->status == 100)
		r->expects = false;
	if (r->inform)
		r->inform(r, r->status, r->inform_context);
	memmove(area->data, area->data + area->parsed, area->filled - area->parsed);
	area->filled -= area->parsed;
	area->parsed = 0;
	r->status = 0;
	begin_message(r);
	return 0;
}

/* 1: the final head is complete; 0: bytes are missing; or a negative errno. */
static int parse_head(weft_http_request_t *r)
{
	int error = 0;

	while (!error && !r->final && r->head.parsed < r->head.filled) {
		error = feed(r);
		if (!error && r->complete && !r->final)
			error = next_message(r);
	}
	if (error && r->final) { /* the body is malformed: reported to the reader of the body */
		r->body_error = error;
		r->error = error = 0;
	}
	return error ? error : r->final;
}

static int make_room(weft_http_request_t *r)
{
	struct area *area = &r->head;
	size_t most = r->client->config.header_bytes + HEAD_SIZE,
	       capacity = area->capacity ? 2 * area->capacity : HEAD_SIZE;
	char *more;

	if (area->filled < area->capacity)
		return 0;
	if (capacity > most)
		capacity = most;
	if (capacity <= area->capacity)
		return -EMSGSIZE;
	more = realloc(area->data, capacity);
	if (!more)
		return -ENOMEM;
	area->data = more;
	area->capacity = capacity;
	return 0;
}

static ssize_t receive(weft_http_request_t *r, struct area *area, uint64_t deadline)
{
	ssize_t n = weft__stream_read(&r->connection->stream, area->data + area->filled, area->capacity - area->filled,
				      deadline);

	if (n <= 0)
		return n;
	area->filled += (size_t)n;
	r->started = true;
	return n;
}

int weft__client_receive_more(weft_http_request_t *r, uint64_t deadline)
{
	int got = parse_head(r);
	ssize_t n;

	if (got)
		return got;
	got = make_room(r);
	if (got)
		return got;
	n = receive(r, &r->head, deadline);
	return n > 0 ? parse_head(r) : n ? (int)n : -ECONNRESET;
}

int weft__client_receive_head(weft_http_request_t *r, uint64_t deadline)
{
	int got;

	do
		got = r->protocol->receive(r, deadline);
	while (!got);
	return got < 0 ? got : 0;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

/* The server has closed the connection: this is the end only for a body without framing. */
static int end_of_input(weft_http_request_t *r)
{
	(void)llhttp_finish(&r->parser);
	if (WEFT_CANARY(http_client_trusts_ends))
		r->complete = true;
	return r->complete ? 0 : -ECONNRESET;
}

static int prepare_body_area(weft_http_request_t *r)
{
	r->area = &r->body;
	r->body.at = r->body.end = r->body.parsed = r->body.filled = 0;
	if (r->body.capacity >= BODY_SIZE)
		return 0;
	free(r->body.data); /* a body of a redirect by HTTP/2 */
	r->body.data = malloc(BODY_SIZE);
	r->body.capacity = r->body.data ? BODY_SIZE : 0;
	return r->body.data ? 0 : -ENOMEM;
}

static int check_length(const weft_http_request_t *r)
{
	uint64_t most = r->client->config.body;
	bool too_long = r->received > most || (!r->complete && r->announced != WEFT_NEVER && r->announced > most);

	return too_long ? -EFBIG : 0;
}

/* Called when the caller has all data decoded before. */
int weft__client_more_body(weft_http_request_t *r)
{
	ssize_t n;
	int error;

	if (r->body_error)
		return r->body_error;
	if (r->area->parsed == r->area->filled) {
		error = prepare_body_area(r);
		if (error)
			return error;
		n = receive(r, &r->body, weft__client_until(r, r->client->config.read_time));
		if (n <= 0)
			return n ? (int)n : end_of_input(r);
	}
	return feed(r);
}

/* Returns the connection to the pool, or closes it if it cannot be reused. */
void weft__client_give_back(weft_http_request_t *r)
{
	struct area *area = r->area;

	if (r->final && !r->complete && !r->error && area->parsed < area->filled) /* the end may have been received */
		(void)feed(r);
	weft__client_release(r, r->keep && r->complete && r->sent && area->parsed == area->filled);
}

void weft__client_let_go(weft_http_request_t *r)
{
	if (r->connection)
		r->protocol->let_go(r);
	else
		weft__client_release(r, false);
}

/* Releases the connection of a completed request. */
static void settle(weft_http_request_t *r)
{
	if (r->complete && r->sent)
		weft__client_let_go(r);
}

ssize_t weft_http_response_read(weft_http_request_t *r, void *data, size_t length)
{
	struct area *area;
	size_t n;
	int error = 0;

	if (r->error)
		return r->error;
	if (!r->answered)
		return -EINPROGRESS;
	if (!length)
		return 0;
	while (!error && r->area->at == r->area->end && !r->complete)
		error = r->protocol->more_body(r);
	if (!error)
		error = check_length(r);
	if (error)
		return r->error = error;
	area = r->area;
	n = area->end - area->at < length ? area->end - area->at : length;
	if (n)
		memcpy(data, area->data + area->at, n);
	area->at += n;
	settle(r);
	return (ssize_t)n;
}

ssize_t weft_http_response_read_all(weft_http_request_t *r, void *data, size_t length)
{
	size_t sum = 0;
	ssize_t n;
	char one;

	while (sum < length) {
		n = weft_http_response_read(r, (char *)data + sum, length - sum);
		if (n <= 0)
			return n ? n : (ssize_t)sum;
		sum += (size_t)n;
	}
	n = weft_http_response_read(r, &one, 1);
	return n > 0 ? -EFBIG : n ? n : (ssize_t)sum;
}

/* ---- accessors --------------------------------------------------------------------------------------------------- */

static weft_http_text_t find(const weft_http_request_t *r, unsigned from, unsigned to, const char *name)
{
	for (; from < to; from++)
		if (weft__text_is(text_of(r, from, false), name))
			return text_of(r, from, true);
	return (weft_http_text_t){0};
}

static bool at(const weft_http_request_t *r, unsigned index, unsigned end, weft_http_text_t *name,
	       weft_http_text_t *value)
{
	if (index >= end)
		return false;
	*name = text_of(r, index, false);
	*value = text_of(r, index, true);
	return true;
}

weft_http_text_t weft_http_response_header(const weft_http_request_t *r, const char *name)
{
	return find(r, 0, r->trailer_at, name);
}

bool weft_http_response_header_at(const weft_http_request_t *r, unsigned index, weft_http_text_t *name,
				  weft_http_text_t *value)
{
	return at(r, index, r->trailer_at, name, value);
}

weft_http_text_t weft_http_response_trailer(const weft_http_request_t *r, const char *name)
{
	return r->complete ? find(r, r->trailer_at, r->count, name) : (weft_http_text_t){0};
}

bool weft_http_response_trailer_at(const weft_http_request_t *r, unsigned index, weft_http_text_t *name,
				   weft_http_text_t *value)
{
	return r->complete && index < r->count && at(r, r->trailer_at + index, r->count, name, value);
}
