/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stream of HTTP/2: an exchange whose request is in the stream's own memory, and whose response goes through nghttp2.
 * A response's fields are collected as text, as for HTTP/1.1, and nghttp2 gets pointers into that text.
 *
 * Body data are copied once: from the handler's data, or from the 4 KiB in which small pieces were collected, to the
 * buffer of the writer (on_send_data). A handler waits for that copy, so a piece may be on its stack. The last pieces
 * stay in the stream's memory, and the handler's task ends without waiting for their copy.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#include "http/h2.h"

enum { FEW_FIELDS = 24, OWN_FIELDS = 5, FILE_PIECE = 16384 };

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static void enlist(struct h2_stream *s)
{
	s->next = s->h2->streams;
	if (s->next)
		s->next->previous = s;
	s->h2->streams = s;
	s->h2->open++;
}

struct h2_stream *weft__h2_open_stream(struct h2 *h2, int32_t id)
{
	struct h2_stream *s = h2->spare;
	const weft_http_t *connection = h2->connection;
	struct exchange *e;

	if (s) {
		h2->spare = s->next;
		h2->spares--;
	} else {
		s = malloc(sizeof *s);
	}
	if (!s)
		return NULL;
	memset(s, 0, offsetof(struct h2_stream, status));
	e = &s->exchange;
	weft__http_init_exchange(e);
	s->x.server = connection->server;
	s->x.protocol = &weft__http2;
	s->x.stream = connection->stream;
	s->x.simulated = connection->simulated;
	s->x.keep = true;
	s->x.e = e;
	s->h2 = h2;
	s->id = id;
	s->head = (struct text){s->first_head, s->first_head, 0, H2_HEAD};
	enlist(s);
	return s;
}

static void delist(struct h2_stream *s)
{
	if (s->previous)
		s->previous->next = s->next;
	else
		s->h2->streams = s->next;
	if (s->next)
		s->next->previous = s->previous;
}

void weft__h2_free_stream(struct h2_stream *s)
{
	struct h2 *h2 = s->h2;

	delist(s);
	weft__http_free_exchange(&s->exchange);
	weft__text_free(&s->head);
	weft__text_free(&s->body);
	weft__text_free(&s->trailer);
	if (h2->spares == H2_SPARES) {
		free(s);
		return;
	}
	s->next = h2->spare;
	h2->spare = s;
	h2->spares++;
}

void weft__h2_free_spares(struct h2 *h2)
{
	struct h2_stream *s, *next;

	for (s = h2->spare; s; s = next) {
		next = s->next;
		free(s);
	}
	h2->spare = NULL;
	h2->spares = 0;
}

void weft__h2_reset(struct h2_stream *s, uint32_t code)
{
	NG(submit_rst_stream)(s->h2->session, NGHTTP2_FLAG_NONE, s->id, code);
	weft__h2_note_reset(s->h2, s->id);
}

/* ---- the request's body ------------------------------------------------------------------------------------------ */

weft_event_t *weft__h2_gone(weft_http_t *x)
{
	return x->protocol == &weft__http2 ? &weft__h2_stream_of(x)->gone : NULL;
}

static bool is_gone(const struct h2_stream *s)
{
	return s->closed || s->h2->ended || s->h2->lost;
}

/* Gives the handler the data that have arrived, and reuses the memory of the data that it has read. */
static void take_body(struct h2_stream *s)
{
	struct exchange *e = &s->exchange;
	struct text t = s->body;

	if (WEFT_NO_CANARY(h2_body_has_two_owners))
		s->body = (struct text){e->own_body, NULL, 0, e->capacity};
	e->own_body = t.data;
	e->capacity = t.capacity;
	e->body = 0;
	e->body_end = s->taken = t.length;
	s->x.e->received += t.length;
}

/* Returns to the windows the data that the handler has read. */
static void return_window(struct h2_stream *s)
{
	if (!s->taken)
		return;
	NG(session_consume)(s->h2->session, s->id, s->taken);
	s->taken = 0;
	weft__h2_wake_writer(s->h2);
}

static const char *end_of(const struct text *t)
{
	return t->data ? t->data + t->length : NULL;
}

/* Takes the next of the lines "name: value". False: there is none. */
static bool next_line(const char **at, const char *end, weft_http_text_t *name, weft_http_text_t *value)
{
	const char *colon, *stop;

	if (*at == end)
		return false;
	colon = memchr(*at, ':', (size_t)(end - *at));
	stop = memchr(colon, '\r', (size_t)(end - colon));
	*name = (weft_http_text_t){*at, (size_t)(colon - *at)};
	*value = (weft_http_text_t){colon + 2, (size_t)(stop - colon - 2)};
	*at = stop + 2;
	return true;
}

/* @return 0; -EBADMSG: too many fields */
static int take_trailer(struct h2_stream *s)
{
	struct exchange *e = &s->exchange;
	const char *at = s->trailer.data, *end = end_of(&s->trailer);
	weft_http_text_t name, value;
	struct field *f;

	while (next_line(&at, end, &name, &value)) {
		f = weft__http_add_field(&s->x);
		if (!f)
			return -EBADMSG;
		*f = (struct field){(uint32_t)(name.data - s->trailer.data), (uint32_t)name.length,
				    (uint32_t)(value.data - s->trailer.data), (uint32_t)value.length};
	}
	e->trailer = s->trailer;
	s->trailer = (struct text){0};
	return 0;
}

/* With the lock held. */
static int await_body(struct h2_stream *s)
{
	uint64_t deadline = weft__after(s->x.server->config.body_time);
	int error = 0;

	return_window(s);
	while (!s->body.length && !s->ended && !is_gone(s) && !error)
		error = weft_cond_wait_until(&s->changed, &s->h2->lock, deadline);
	if (s->body.length) {
		take_body(s);
		return 0;
	}
	if (!s->ended)
		return error ? error : -ECONNRESET;
	s->x.e->complete = true;
	return take_trailer(s);
}

static int continue_if_expected(weft_http_t *x)
{
	bool expects = x->e->expects && !weft__http_has_begun(x);

	x->e->expects = false;
	return expects ? x->protocol->inform(x, 100) : 0;
}

static int more_body(weft_http_t *x)
{
	struct h2_stream *s = weft__h2_stream_of(x);
	int error = continue_if_expected(x);

	if (!error && weft__http_has_begun(x) && x->e->out.length)
		error = x->protocol->push(x, NULL, 0);
	if (!error) {
		weft__h2_lock(s->h2);
		weft_defer(weft__h2_unlock, s->h2);
		error = await_body(s);
	}
	if (!error && x->e->received > x->server->config.body)
		error = -EFBIG;
	return x->e->body_error = error;
}

/* ---- the response's head ----------------------------------------------------------------------------------------- */

/* `flags`: does the text stay in place until the frame has been sent? */
static void add(nghttp2_nv **to, const char *name, size_t name_length, const char *value, size_t length, uint8_t flags)
{
	*(*to)++ = (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, name_length, length, flags};
}
#define ADD(to, name, value, length, flags) add(to, name, sizeof(name) - 1, value, length, flags)

/* A client would treat these fields as errors. */
static bool is_for_one_connection(weft_http_text_t name)
{
	return weft__text_is(name, "keep-alive") || weft__text_is(name, "proxy-connection") ||
	       weft__text_is(name, "upgrade");
}

static void make_lower(const char *text, size_t length)
{
	char *at = (char *)(uintptr_t)text, *end = at + length;

	for (; at < end; at++)
		if (*at >= 'A' && *at <= 'Z')
			*at |= 0x20;
}

static weft_http_text_t trim_front(weft_http_text_t t)
{
	while (t.length && (*t.data == ' ' || *t.data == '\t'))
		t = (weft_http_text_t){t.data + 1, t.length - 1};
	return t;
}

void weft__h2_add_lines(nghttp2_nv **to, const struct text *lines, uint8_t flags)
{
	const char *at = lines->data, *end = end_of(lines);
	weft_http_text_t name, value;

	while (next_line(&at, end, &name, &value)) {
		if (is_for_one_connection(name))
			continue;
		make_lower(name.data, name.length);
		value = weft__trim(trim_front(value));
		add(to, name.data, name.length, value.data, value.length, flags);
	}
}

size_t weft__h2_count_lines(const struct text *lines)
{
	const char *at = lines->data, *end = end_of(lines);
	size_t n = 0;

	for (; at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++)
		n++;
	return n;
}

static void add_status(nghttp2_nv **to, struct h2_stream *s, int status, uint8_t flags)
{
	weft__http_put_number(s->status, (uint64_t)status);
	ADD(to, ":status", s->status, 3, flags);
}

static void add_own_fields(nghttp2_nv **to, struct h2_stream *s, uint8_t flags)
{
	const weft_http_t *x = &s->x;
	const weft_http_config_t *config = &x->server->config;
	char *end;

	weft__http_date(x->simulated, s->date);
	ADD(to, "date", s->date, HTTP_DATE, flags);
	if (config->name)
		ADD(to, "server", config->name, strlen(config->name), flags);
	if (config->flags & WEFT_HTTP_TIMING) {
		end = weft__http_put_timing(s->timing, x);
		ADD(to, "server-timing", s->timing, (size_t)(end - s->timing), flags);
	}
	if (x->e->length != WEFT_NEVER && weft__http_has_body(x->e->status)) {
		end = weft__http_put_number(s->length, x->e->length);
		ADD(to, "content-length", s->length, (size_t)(end - s->length), flags);
	}
}

/* NULL: no memory. The caller frees the result if it is not `few`. */
static nghttp2_nv *room_for(const struct text *lines, nghttp2_nv *few)
{
	size_t n = weft__h2_count_lines(lines) + OWN_FIELDS;

	return n <= FEW_FIELDS ? few : malloc(n * sizeof *few);
}

static void free_room(nghttp2_nv *fields, nghttp2_nv *few)
{
	if (fields != few)
		free(fields);
}

static ssize_t on_read_data(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length, uint32_t *flags,
			    nghttp2_data_source *source, void *user);

/* With the lock held. */
static int submit_head(struct h2_stream *s)
{
	enum { FLAGS = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE };
	const nghttp2_data_provider provider = {{.ptr = s}, on_read_data};
	bool ends = weft__http_is_silent(&s->x) || (!s->x.e->length && !s->exchange.trailers.length);
	nghttp2_nv few[FEW_FIELDS], *fields = room_for(&s->exchange.answer, few), *to = fields;
	int error = -1;

	s->x.e->streaming = true;
	if (fields) {
		add_status(&to, s, s->x.e->status, FLAGS);
		add_own_fields(&to, s, FLAGS);
		weft__h2_add_lines(&to, &s->exchange.answer, FLAGS);
		error =
		    NG(submit_response)(s->h2->session, s->id, fields, (size_t)(to - fields), ends ? NULL : &provider);
	}
	free_room(fields, few);
	return error ? weft__http_lose(&s->x, -ENOMEM) : 0;
}

static int begin(weft_http_t *x)
{
	if (!x->e->status)
		x->e->status = 200;
	return 0;
}

static int inform(weft_http_t *x, int status)
{
	struct h2_stream *s = weft__h2_stream_of(x);
	const struct text none = {0}, *lines = status == 100 ? &none : &x->e->answer;
	nghttp2_nv few[FEW_FIELDS], *fields = room_for(lines, few), *to = fields;
	int32_t error = fields ? 0 : -ENOMEM;

	if (fields) {
		add_status(&to, s, status, NGHTTP2_NV_FLAG_NONE);
		weft__h2_add_lines(&to, lines, NGHTTP2_NV_FLAG_NONE);
		weft__h2_lock(s->h2);
		if (is_gone(s))
			error = weft__http_lose(x, -ECONNRESET);
		else if (NG(submit_headers)(s->h2->session, NGHTTP2_FLAG_NONE, s->id, NULL, fields,
					    (size_t)(to - fields), NULL))
			error = -ENOMEM;
		weft__h2_wake_writer(s->h2);
		weft__h2_unlock(s->h2);
	}
	free_room(fields, few);
	if (status != 100)
		x->e->answer.length = 0;
	if (!error)
		weft__http_answered(x->server, status);
	return error;
}

/* ---- the response's body ----------------------------------------------------------------------------------------- */

static size_t queued(const struct h2_stream *s)
{
	return s->parts[0].iov_len + s->parts[1].iov_len;
}

static void submit_trailer(struct h2_stream *s)
{
	const struct text *lines = &s->exchange.trailers;
	nghttp2_nv few[FEW_FIELDS], *fields = room_for(lines, few), *to = fields;

	if (!fields) {
		weft__h2_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	weft__h2_add_lines(&to, lines, NGHTTP2_NV_FLAG_NONE);
	NG(submit_trailer)(s->h2->session, s->id, fields, (size_t)(to - fields));
	free_room(fields, few);
}

/* nghttp2 calls this for the length of the next DATA frame. */
static ssize_t on_read_data(nghttp2_session *session, int32_t id, uint8_t *buffer, size_t length, uint32_t *flags,
			    nghttp2_data_source *source, void *user)
{
	struct h2_stream *s = source->ptr;
	size_t n = queued(s);

	(void)session;
	(void)id;
	(void)buffer;
	(void)user;
	s->waits = !n && !s->last;
	if (s->waits)
		return NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (n > length)
		return (ssize_t)length;
	if (s->last) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (s->exchange.trailers.length) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			submit_trailer(s);
		}
	}
	return (ssize_t)n;
}

static void take_part(struct h2_stream *s, struct iovec *part, size_t *length)
{
	size_t n = part->iov_len < *length ? part->iov_len : *length;

	if (!n)
		return;
	weft__h2_put(&s->h2->out, part->iov_base, n);
	part->iov_base = (char *)part->iov_base + n;
	part->iov_len -= n;
	*length -= n;
}

/* nghttp2 calls this to copy the frame's data. There are fewer parts if the handler has stopped waiting: then the
 * stream has been reset. */
static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t length,
			nghttp2_data_source *source, void *user)
{
	struct h2 *h2 = user;
	struct h2_stream *s = source->ptr;

	(void)session;
	(void)frame;
	if (queued(s) < length)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	if (h2->out.room - h2->out.length < H2_FRAME_HEAD + length)
		return NGHTTP2_ERR_WOULDBLOCK;
	weft__h2_put(&h2->out, head, H2_FRAME_HEAD);
	take_part(s, &s->parts[0], &length);
	take_part(s, &s->parts[1], &length);
	if (s->running && !queued(s))
		weft_cond_broadcast(&s->changed);
	return 0;
}

/* With the lock held. */
static void resume(struct h2_stream *s)
{
	if (s->waits)
		NG(session_resume_data)(s->h2->session, s->id);
	s->waits = false;
	weft__h2_wake_writer(s->h2);
}

static void end_push(void *stream)
{
	struct h2_stream *s = stream;

	if (queued(s)) {
		memset(s->parts, 0, sizeof s->parts);
		if (!is_gone(s))
			weft__h2_reset(s, NGHTTP2_INTERNAL_ERROR);
		weft__h2_wake_writer(s->h2);
	}
	s->exchange.out.length = 0;
	weft__h2_unlock(s->h2);
}

/* Sends a part that the client must accept in config.write_time. */
static int push_part(struct h2_stream *s, const char *data, size_t length)
{
	weft_http_t *x = &s->x;
	struct text *out = &x->e->out;
	uint64_t deadline = weft__after(x->server->config.write_time);
	int error = 0;

	weft__h2_lock(s->h2);
	weft_defer(end_push, s);
	if (is_gone(s))
		return weft__http_lose(x, -ECONNRESET);
	if (!x->e->streaming)
		error = submit_head(s);
	if (error || weft__http_is_silent(x)) {
		weft__h2_wake_writer(s->h2);
		return error;
	}
	s->parts[0] = (struct iovec){out->data, out->length};
	s->parts[1] = (struct iovec){(void *)(uintptr_t)data, length};
	resume(s);
	while (queued(s) && !is_gone(s) && !error)
		error = weft_cond_wait_until(&s->changed, &s->h2->lock, deadline);
	if (!queued(s))
		return 0;
	return weft__http_lose(x, error ? error : -ECONNRESET);
}

static int push(weft_http_t *x, const char *data, size_t length)
{
	struct h2_stream *s = weft__h2_stream_of(x);
	int error = x->lost ? -EPIPE : 0;

	for (; !error && length > PART_MOST; data += PART_MOST, length -= PART_MOST)
		error = push_part(s, data, PART_MOST);
	return error ? error : push_part(s, data, length);
}

static int push_pieces(weft_http_t *x, int fd, uint64_t offset, uint64_t length, char *data)
{
	int error = 0;

	while (length && !error) {
		size_t part = length < FILE_PIECE ? (size_t)length : FILE_PIECE;
		ssize_t n = weft_pread(fd, data, part, (int64_t)offset);

		if (n <= 0)
			return weft__http_lose(x, n ? n : -EIO); /* the file is shorter than announced */
		error = push(x, data, (size_t)n);
		x->e->sent += error ? 0 : (uint64_t)n;
		offset += (uint64_t)n;
		length -= (uint64_t)n;
	}
	return error;
}

static int push_file(weft_http_t *x, int fd, uint64_t offset, uint64_t length)
{
	char *data = malloc(FILE_PIECE);
	int error = data ? 0 : -ENOMEM;

	weft_defer(free, data);
	return error ? weft__http_lose(x, error) : push_pieces(x, fd, offset, length, data);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* Asks a client that has not sent its whole request to stop, after the response (RFC 9113 §8.1). */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2_stream *s;
	uint32_t code;

	if (frame->hd.type == NGHTTP2_RST_STREAM) {
		weft__h2_note_reset(user, frame->hd.stream_id);
		code = frame->rst_stream.error_code;
		if (code != NGHTTP2_NO_ERROR && code != NGHTTP2_INTERNAL_ERROR)
			weft__h2_lose_patience(user);
		return 0;
	}
	if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || frame->hd.type > NGHTTP2_HEADERS)
		return 0;
	s = NG(session_get_stream_user_data)(session, frame->hd.stream_id);
	if (s && !s->ended)
		weft__h2_reset(s, NGHTTP2_NO_ERROR);
	return 0;
}

static bool is_short(const weft_http_t *x)
{
	return x->e->length != WEFT_NEVER && x->e->written < x->e->length && !weft__http_is_silent(x);
}

/* Only records that the response is complete: nghttp2 gets it when the task ends. */
static void complete(weft_http_t *x)
{
	if (!x->e->streaming && x->e->length == WEFT_NEVER && (!x->e->trailers.length || weft__http_is_silent(x)))
		x->e->length = x->e->written;
	if (is_short(x))
		weft__http_lose(x, -EPIPE);
	x->e->finished = !x->lost;
}

const struct protocol weft__http2 = {20, more_body, begin, push, push_file, inform, complete};

/* With the lock held. */
static void send_rest(struct h2_stream *s)
{
	const struct text *out = &s->exchange.out;
	bool streaming = s->x.e->streaming;

	if (!streaming && submit_head(s)) {
		weft__h2_reset(s, NGHTTP2_INTERNAL_ERROR);
		return;
	}
	if (!weft__http_is_silent(&s->x))
		s->parts[0] = (struct iovec){out->data, out->length};
	s->last = true;
	resume(s);
	if (!s->x.keep)
		weft__h2_begin_stop(s->h2);
}

static void end_task(void *stream)
{
	struct h2_stream *s = stream;
	struct h2 *h2 = s->h2;

	weft__h2_lock(h2);
	s->running = false;
	h2->running--;
	atomic_store_explicit(&s->scope, NULL, memory_order_relaxed);
	s->taken += s->body.length;
	return_window(s);
	if (s->closed) {
		weft__h2_free_stream(s);
	} else if (!h2->ended) {
		if (s->x.e->finished)
			send_rest(s);
		else
			weft__h2_reset(s, NGHTTP2_INTERNAL_ERROR);
		weft__h2_wake_writer(h2);
	}
	weft__h2_unlock(h2);
	weft_group_done(&h2->tasks);
}

/* RFC 9113 §8.2.3: joins several cookie fields. */
static int join_cookies(struct h2_stream *s)
{
	struct exchange *e = &s->exchange;
	struct field *f, *first = NULL, *to = e->fields;
	uint32_t offset = (uint32_t)s->head.length;
	bool room = true;

	for (f = e->fields; f < e->fields + e->count; f++) {
		if (f->name_length != 6 || memcmp(s->head.data + f->name, "cookie", 6) != 0) {
			*to++ = *f;
			continue;
		}
		if (first)
			room &= weft__text_add(&s->head, "; ", 2);
		else
			*(first = to++) = *f;
		/* The text must not move while a part of it is appended to it. */
		room &= weft__text_reserve(&s->head, f->value_length) &&
			weft__text_add(&s->head, s->head.data + f->value, f->value_length);
	}
	e->count = (unsigned)(to - e->fields);
	first->value = offset;
	first->value_length = (uint32_t)s->head.length - offset;
	return room ? 0 : 503;
}

/* 0, or the status that refuses the request. */
static int check_head(struct h2_stream *s)
{
	weft_http_t *x = &s->x;
	struct exchange *e = x->e;
	int status = x->e->failed;

	if (!status && s->cookies > 1)
		status = join_cookies(s);
	e->in = s->head.data;
	e->trailer_at = e->count;
	if (!status)
		status = weft__http_split_target(x);
	if (!status && x->e->body_length > x->server->config.body)
		status = 413;
	return status;
}

/* Does the client still want the request? A withdrawn request is not answered. */
static bool is_wanted(struct h2_stream *s)
{
	bool gone;

	weft__h2_lock(s->h2);
	gone = is_gone(s);
	s->x.e->complete = s->ended && !s->body.length && !s->trailer.length;
	weft__h2_unlock(s->h2);
	if (s->x.e->complete)
		s->x.e->expects = false;
	return !gone;
}

void weft__h2_set_send_callbacks(nghttp2_session_callbacks *c)
{
	NG(session_callbacks_set_on_frame_send_callback)(c, on_frame_sent);
	NG(session_callbacks_set_send_data_callback)(c, on_send_data);
}

void *weft__h2_run_stream(void *stream)
{
	struct h2_stream *s = stream;
	weft_http_t *x = &s->x;
	int status;

	weft_defer(end_task, s);
	WEFT_SCOPE(scope);
	x->scope = &scope;
	atomic_store(&s->scope, &scope);
	if (__atomic_load_n(&s->h2->cancelled, __ATOMIC_SEQ_CST) || !is_wanted(s))
		return NULL;
	weft__http_note_begin(x);
	status = check_head(s);
	if (status)
		weft__http_answer(x, status);
	else
		weft__http_dispatch(x);
	weft__http_complete(x);
	return NULL;
}

#else

weft_event_t *weft__h2_gone(weft_http_t *x)
{
	(void)x;
	return NULL;
}

#endif
