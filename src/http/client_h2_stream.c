/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A request by HTTP/2: its stream is made when its head is composed, and ends when the request releases it. The
 * callbacks in client_h2.c put heads and data into the stream, under the connection's lock; the request's own task
 * takes them out, so that only this task uses the fields of the request.
 *
 * A piece of a body is in the caller's memory until nghttp2 has copied it into a frame, which it does as far as the
 * windows and the socket allow. The rest of the piece is withdrawn when the call ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#include "http/client_h2.h"

enum { FEW_FIELDS = 24, OWN_FIELDS = 4 };

static void enter(struct mux_stream *s)
{
	weft__mux_lock(s->mux);
}

/* Runs even if the request's task is cancelled in a wait. */
static void leave(void *stream)
{
	struct mux_stream *s = stream;
	struct mux *m = s->mux;

	s->waits = false;
	s->part = (struct iovec){0};
	weft__mux_hand_on(m);
	weft_mutex_unlock(&m->lock);
}

/* The error that has ended the stream, or 0. */
static int failure(weft_http_request_t *r)
{
	const struct mux_stream *s = r->stream;

	if (!s->error)
		return 0;
	r->refused = s->refused;
	r->wants_1 = s->wants_1;
	r->started |= s->closed && !s->refused && !s->wants_1; /* the server has reset it */
	return s->error;
}

static int progress(weft_http_request_t *r, uint64_t deadline)
{
	int error = failure(r);

	return error ? error : weft__mux_await(r->stream, deadline);
}

/* ---- the head ---------------------------------------------------------------------------------------------------- */

static nghttp2_nv field(const char *name, weft_http_text_t value)
{
	return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value.data, strlen(name), value.length,
			    NGHTTP2_NV_FLAG_NONE};
}

static weft_http_text_t text(const char *string)
{
	return (weft_http_text_t){string, strlen(string)};
}

/* Moves a Host field that the caller added into the authority. Returns the new end. */
static nghttp2_nv *move_host(nghttp2_nv *from, nghttp2_nv *end, nghttp2_nv *authority)
{
	nghttp2_nv *to = from;

	for (; from < end; from++)
		if (from->namelen == 4 && !memcmp(from->name, "host", 4)) {
			authority->value = from->value;
			authority->valuelen = from->valuelen;
		} else {
			*to++ = *from;
		}
	return to;
}

static size_t put_fields(weft_http_request_t *r, nghttp2_nv *fields)
{
	nghttp2_nv *to = fields;

	*to++ = field(":method", text(r->method));
	*to++ = field(":scheme", text(r->url.secure ? "https" : "http"));
	*to++ = field(":authority", weft__url_authority(&r->url));
	*to++ = field(":path", weft__url_target(&r->url));
	weft__h2_add_lines(&to, &r->out, NGHTTP2_NV_FLAG_NONE);
	return (size_t)(move_host(fields + OWN_FIELDS, to, fields + 2) - fields);
}

static bool has_body(const weft_http_request_t *r)
{
	return r->kind == IN_CHUNKS || r->length;
}

/* nghttp2 calls this for the next DATA frame. */
static ssize_t give_body(nghttp2_session *session, int32_t id, uint8_t *to, size_t length, uint32_t *flags,
			 nghttp2_data_source *source, void *user)
{
	struct mux_stream *s = NG(session_get_stream_user_data)(session, id);
	size_t n;

	(void)source;
	(void)user;
	if (!s)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	n = s->part.iov_len < length ? s->part.iov_len : length;
	s->defers = !n && !s->last;
	if (s->defers)
		return NGHTTP2_ERR_DEFERRED;
	if (n)
		memcpy(to, s->part.iov_base, n);
	s->part = (struct iovec){(char *)s->part.iov_base + n, s->part.iov_len - n};
	if (s->left != WEFT_NEVER)
		s->last = !(s->left -= n);
	if (s->last && !s->part.iov_len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)n;
}

static int submit(weft_http_request_t *r, struct mux_stream *s)
{
	const nghttp2_data_provider body = {.read_callback = give_body};
	nghttp2_nv few[FEW_FIELDS], *fields = few;
	size_t n = weft__h2_count_lines(&r->out) + OWN_FIELDS;

	if (n > FEW_FIELDS)
		fields = malloc(n * sizeof *fields);
	if (!fields)
		return -ENOMEM;
	n = put_fields(r, fields);
	s->id = NG(submit_request)(s->mux->session, NULL, fields, n, has_body(r) ? &body : NULL, s);
	if (fields != few)
		free(fields);
	return s->id > 0 ? 0 : -ENOMEM;
}

static struct mux_stream *make_stream(weft_http_request_t *r)
{
	struct mux_stream *s = calloc(1, sizeof *s);

	if (!s)
		return NULL;
	s->mux = r->connection->mux;
	s->last_head = &s->heads;
	s->left = r->kind == IN_CHUNKS ? WEFT_NEVER : r->length;
	return s;
}

static int compose(weft_http_request_t *r)
{
	struct mux_stream *s = make_stream(r);
	int error = -ENOMEM;

	if (!s)
		return error;
	r->stream = s;
	enter(s);
	weft__mux_add(s);
	if (s->mux->error) /* the connection was lost meanwhile */
		weft__mux_fail(s, s->mux->error);
	if (weft__client_add_fields(r, &r->out))
		error = submit(r, s);
	leave(s);
	r->out.length = 0;
	return error;
}

/* ---- the body ---------------------------------------------------------------------------------------------------- */

static ssize_t begin_piece(weft_http_request_t *r, size_t length)
{
	(void)r;
	return (ssize_t)length;
}

static void resume(struct mux_stream *s)
{
	if (s->defers)
		NG(session_resume_data)(s->mux->session, s->id);
	s->defers = false;
	weft__mux_flush(s->mux);
}

static bool is_pushed(const struct mux_stream *s)
{
	return s->begun && !s->part.iov_len && (s->sent || !s->last);
}

/* Has the response data for the request to take? */
static bool is_answered(const weft_http_request_t *r)
{
	const struct mux_stream *s = r->stream;

	if (r->final)
		return r->complete || s->ended || s->body.length || r->area->at < r->area->end;
	return s->final;
}

/* Sends a piece that the server must accept in config.write_time. Returns the number of unsent bytes. */
static ssize_t push_piece(weft_http_request_t *r, const char *data, size_t length)
{
	struct mux_stream *s = r->stream;
	uint64_t deadline = weft__client_until(r, r->client->config.write_time);
	int error = 0;

	enter(s);
	weft_defer(leave, s);
	s->part = (struct iovec){(void *)(uintptr_t)data, length};
	s->last |= !s->left;
	resume(s);
	while (!error && !is_pushed(s) && !is_answered(r))
		error = progress(r, deadline);
	return error ? error : (ssize_t)s->part.iov_len;
}

static struct mux_head *take_head(struct mux_stream *s)
{
	struct mux_head *h = s->heads;

	if (h)
		s->heads = h->next;
	if (!s->heads)
		s->last_head = &s->heads;
	return h;
}

static int note_heads(weft_http_request_t *r);

static ssize_t push(weft_http_request_t *r, const char *data, size_t length)
{
	size_t done = 0, piece;
	ssize_t left;
	int error = 0;

	do {
		piece = length - done < WRITE_PIECE ? length - done : WRITE_PIECE;
		left = push_piece(r, data + done, piece);
		if (left < 0)
			return left;
		done += piece - (size_t)left;
		r->written += piece - (size_t)left;
	} while (!left && done < length);
	if (!r->final)
		error = note_heads(r);
	return error < 0 ? error : (ssize_t)done;
}

static bool is_sent(const weft_http_request_t *r)
{
	bool sent;

	enter(r->stream);
	sent = r->stream->sent;
	leave(r->stream);
	return sent;
}

static int end(weft_http_request_t *r)
{
	enter(r->stream);
	r->stream->last = true;
	leave(r->stream);
	return 0;
}

/* ---- the response ------------------------------------------------------------------------------------------------ */

/* The request takes ownership of the head. */
static void use_head(weft_http_request_t *r, struct mux_head *h)
{
	free(r->head.data);
	free(r->fields_at);
	r->head = (struct area){.data = h->text.data, .capacity = h->text.capacity};
	r->fields_at = h->fields;
	r->count = r->trailer_at = h->count;
	r->field_room = h->room;
	r->status = h->status;
	free(h);
}

/* nghttp2 has checked that the length is a number. */
static uint64_t announced_length(const weft_http_request_t *r)
{
	weft_http_text_t value = weft_http_response_header(r, "content-length");
	uint64_t length = 0;

	if (!value.data)
		return WEFT_NEVER;
	for (; value.length; value.data++, value.length--)
		length = length * 10 + (uint64_t)(*value.data - '0');
	return length;
}

/* @return 1: it is the final head */
static int note_head(weft_http_request_t *r, struct mux_head *h)
{
	use_head(r, h);
	r->started = true;
	r->version = 20;
	if (r->status >= 200) {
		r->final = r->head_done = true;
		r->area = &r->body;
		r->announced = announced_length(r);
		return 1;
	}
	if (r->status == 100)
		r->expects = false;
	if (r->inform)
		r->inform(r, r->status, r->inform_context);
	r->count = r->trailer_at = 0;
	return 0;
}

/* Waits for a head, and takes it. */
static int await_head(weft_http_request_t *r, uint64_t deadline, struct mux_head **h)
{
	int error = 0;

	enter(r->stream);
	weft_defer(leave, r->stream);
	while (!(*h = take_head(r->stream)) && !error)
		error = progress(r, deadline);
	return *h ? 0 : error;
}

static int receive(weft_http_request_t *r, uint64_t deadline)
{
	struct mux_head *h;
	int error = r->final ? 0 : await_head(r, deadline, &h);

	return error ? error : r->final ? 1 : note_head(r, h);
}

/* Takes the heads that have arrived. */
static int note_heads(weft_http_request_t *r)
{
	struct mux_head *h;
	int final;

	do {
		enter(r->stream);
		h = take_head(r->stream);
		leave(r->stream);
		final = h ? note_head(r, h) : 0;
	} while (h && !final);
	return final;
}

/* The request gets the received data, and the stream gets the memory of the preceding data. */
static void take_body(weft_http_request_t *r, struct mux_stream *s)
{
	struct text t = s->body;

	s->body = (struct text){.data = r->body.data, .capacity = r->body.capacity};
	r->body = (struct area){.data = t.data, .end = t.length, .capacity = t.capacity};
	r->received += t.length;
	s->taken = t.length;
}

static int take_trailer(weft_http_request_t *r, const struct mux_head *h)
{
	uint32_t base = (uint32_t)r->trailer.length;
	struct field *f;
	unsigned i;

	if (!weft__text_add(&r->trailer, h->text.data, h->text.length))
		return -ENOMEM;
	for (i = 0; i < h->count; i++) {
		f = weft__client_add_field(r);
		if (!f)
			return r->error;
		*f = h->fields[i];
		f->name += base;
		f->value += base;
	}
	return 0;
}

/* Returns to the window the data that the caller has read. */
static void return_window(struct mux_stream *s)
{
	if (!s->taken || s->closed || s->mux->error)
		return;
	NG(session_consume_stream)(s->mux->session, s->id, s->taken);
	s->taken = 0;
	weft__mux_flush(s->mux);
}

static int await_body(weft_http_request_t *r, uint64_t deadline)
{
	struct mux_stream *s = r->stream;
	int error = 0;

	return_window(s);
	while (!s->body.length && !s->ended && !error)
		error = progress(r, deadline);
	if (s->body.length)
		take_body(r, s);
	else if (!s->ended)
		return error;
	if (!s->ended)
		return 0;
	r->complete = true;
	return s->trailer ? take_trailer(r, s->trailer) : 0;
}

static int more_body(weft_http_request_t *r)
{
	uint64_t deadline = weft__client_until(r, r->client->config.read_time);

	enter(r->stream);
	weft_defer(leave, r->stream);
	return await_body(r, deadline);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void free_stream(struct mux_stream *s)
{
	struct mux_head *h;

	while ((h = take_head(s)))
		weft__mux_free_head(h);
	weft__mux_free_head(s->incoming);
	weft__mux_free_head(s->trailer);
	weft__text_free(&s->body);
	free(s);
}

/* Resets a stream that is not closed in both directions. */
static void end_stream(struct mux_stream *s)
{
	struct mux *m = s->mux;

	weft__mux_lock(m);
	if (s->id > 0 && !s->closed && !m->error) {
		NG(session_set_stream_user_data)(m->session, s->id, NULL);
		if (!s->ended || !s->sent)
			NG(submit_rst_stream)(m->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
		weft__mux_flush(m);
	}
	weft__mux_remove(s);
	weft__mux_hand_on(m);
	if (!m->streams && m->blocked) /* no request would send the rest */
		weft__client_set_closing(m->connection, m->client, false);
	weft_mutex_unlock(&m->lock);
	free_stream(s);
}

static void let_go(weft_http_request_t *r)
{
	if (r->stream)
		end_stream(r->stream);
	r->stream = NULL;
	weft__client_release(r, true);
}

const struct client_protocol weft__client_http2 = {
    .compose = compose,
    .begin_piece = begin_piece,
    .push = push,
    .is_sent = is_sent,
    .end = end,
    .receive = receive,
    .more_body = more_body,
    .let_go = let_go,
};

#endif
