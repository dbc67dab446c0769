/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Received frames: nghttp2's callbacks. They run in the connection's task, with the lock held. nghttp2 checks frames,
 * pseudo fields and lengths of bodies by RFC 9113. A stream whose head exceeds a limit still gets a task, which
 * answers it.
 */
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#include "http/h2.h"

#define SECOND 1000000000ull

/* ---- patience ---------------------------------------------------------------------------------------------------- */

bool weft__h2_spend_patience(struct h2_patience *p)
{
	uint64_t now, earned;

	if (!p->left) {
		now = weft_now();
		earned = (now - p->since) / (SECOND / H2_PATIENCE_RATE);
		p->left = earned < H2_PATIENCE ? (unsigned)earned : H2_PATIENCE;
		p->since = now;
	}
	if (!p->left && !WEFT_CANARY(h2_is_patient))
		return false;
	p->left--;
	return true;
}

/* Stops these attacks: streams that are reset at once (CVE-2023-44487), streams that the client makes the server reset
 * (CVE-2025-8671), floods of PING, SETTINGS, PRIORITY and empty DATA. */
void weft__h2_lose_patience(struct h2 *h2)
{
	if (!weft__h2_spend_patience(&h2->patience))
		weft__h2_terminate(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* ---- frames that nghttp2 would accept ---------------------------------------------------------------------------- */

static void note_id(struct h2 *h2, int32_t id)
{
	int32_t skipped = (id - h2->last_id) / 2;

	h2->used = (skipped < 64 ? h2->used << skipped : 0) | 1;
	h2->last_id = id;
}

/* Checks a frame of a stream that nghttp2 has forgotten, or never knew: RFC 9113 §5.1 and §5.1.1. Frames that the
 * client may have sent before it saw the reset of their stream are allowed, and nghttp2 ignores them. */
static void check_closed(struct h2 *h2, int32_t id)
{
	int32_t age = (h2->last_id - id) / 2;
	bool skipped = age < 64 && !(h2->used >> age & 1);

	if (WEFT_CANARY(h2_forgets_closed) || id <= h2->reset_id || id % 2 == 0 ||
	    NG(session_get_stream_user_data)(h2->session, id))
		return;
	weft__h2_terminate(h2, skipped ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_STREAM_CLOSED);
}

static void note_continuation(struct h2 *h2)
{
	if (++h2->continuations > H2_CONTINUATIONS)
		weft__h2_terminate(h2, NGHTTP2_ENHANCE_YOUR_CALM);
}

/* Called after nghttp2 has processed everything before the frame, unless the frame begins a new request. */
static void check_frame(struct h2 *h2, unsigned type, unsigned flags, int32_t id)
{
	bool is_old = id <= h2->last_id;

	switch (type) {
	case NGHTTP2_HEADERS:
		h2->continuations = 0;
		if (is_old)
			check_closed(h2, id);
		else
			note_id(h2, id);
		break;
	case NGHTTP2_CONTINUATION:
		note_continuation(h2);
		break;
	case NGHTTP2_DATA:
		if (!h2->frames.payload && !(flags & NGHTTP2_FLAG_END_STREAM))
			weft__h2_lose_patience(h2);
		if (is_old)
			check_closed(h2, id);
		break;
	case NGHTTP2_WINDOW_UPDATE:
		break;
	default:
		weft__h2_lose_patience(h2);
	}
}

const char *weft__h2_next_frame(struct h2_frames *f, const char *at, const char *end)
{
	size_t left = (size_t)(end - at), n;

	if (f->payload >= left) {
		f->payload -= left;
		return NULL;
	}
	at += f->payload;
	f->payload = 0;
	n = (size_t)(end - at) < H2_FRAME_HEAD - f->filled ? (size_t)(end - at) : H2_FRAME_HEAD - f->filled;
	memcpy(f->head + f->filled, at, n);
	f->filled += (unsigned)n;
	if (f->filled < H2_FRAME_HEAD)
		return NULL;
	f->filled = 0;
	f->payload = (size_t)f->head[0] << 16 | (size_t)f->head[1] << 8 | f->head[2];
	return at + n;
}

static bool give(struct h2 *h2, const char *data, size_t length)
{
	ssize_t n = h2->hostile ? 0 : NG(session_mem_recv)(h2->session, (const uint8_t *)data, length);

	if (n < 0)
		weft__h2_terminate(h2, n == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM
				       : n == NGHTTP2_ERR_NOMEM ? NGHTTP2_INTERNAL_ERROR
								: NGHTTP2_PROTOCOL_ERROR);
	return !h2->hostile;
}

/* Must the frame be checked with the streams' states before it? */
static bool needs_states(const struct h2 *h2)
{
	return h2->frames.head[3] <= NGHTTP2_HEADERS && weft__h2_frame_id(h2->frames.head) <= h2->last_id;
}

bool weft__h2_feed(struct h2 *h2, const char *data, size_t length)
{
	const char *end = data + length, *at = data, *next, *head;
	const uint8_t *f = h2->frames.head;

	while (!h2->hostile && (next = weft__h2_next_frame(&h2->frames, at, end))) {
		head = next - at > H2_FRAME_HEAD ? next - H2_FRAME_HEAD : at;
		if (needs_states(h2) && head > data) {
			give(h2, data, (size_t)(head - data));
			data = head;
		}
		at = next;
		check_frame(h2, f[3], f[4], weft__h2_frame_id(f));
	}
	return give(h2, data, (size_t)(end - data)) && NG(session_want_read)(h2->session);
}

/* ---- heads ------------------------------------------------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h2 = user;
	struct h2_stream *s;
	int32_t id = frame->hd.stream_id;

	if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) {
		s = NG(session_get_stream_user_data)(session, id);
		if (s)
			s->in_trailer = true;
		h2->opening = s;
		return 0;
	}
	h2->opening = s = weft__h2_open_stream(h2, id);
	if (s && !NG(session_set_stream_user_data)(session, id, s))
		return 0;
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static void refuse(struct h2_stream *s, int status)
{
	if (!s->x.e->failed)
		s->x.e->failed = status;
}

static bool add_text(struct h2_stream *s, const char *text, size_t length, uint32_t *offset, uint32_t *its_length)
{
	*offset = (uint32_t)s->head.length;
	*its_length = (uint32_t)length;
	return weft__text_add(&s->head, text, length);
}

static void add_field(struct h2_stream *s, const char *name, size_t length, const char *value, size_t value_length)
{
	size_t bytes = s->head.length + length + value_length - s->x.e->target.name_length;
	struct field *f = bytes <= s->x.server->config.header_bytes ? weft__http_add_field(&s->x) : NULL;

	if (!f || !add_text(s, name, length, &f->name, &f->name_length) ||
	    !add_text(s, value, value_length, &f->value, &f->value_length))
		refuse(s, 431);
}

/* The authority comes first, as a field of its own; a Host field beside it must be equal. */
static void add_host(struct h2_stream *s, weft_http_text_t value)
{
	weft_http_text_t first;

	if (s->has_host) {
		first = (weft_http_text_t){s->head.data + s->exchange.fields->value, s->exchange.fields->value_length};
		if (first.length != value.length || strncasecmp(first.data, value.data, value.length) != 0)
			refuse(s, 400);
		return;
	}
	s->has_host = true;
	if (weft__is_host(value))
		add_field(s, "host", 4, value.data, value.length);
	else
		refuse(s, 400);
}

static void set_target(struct h2_stream *s, weft_http_text_t value)
{
	struct field *target = &s->x.e->target;

	if (value.length > s->x.server->config.request_line)
		refuse(s, 414);
	else if (!add_text(s, value.data, value.length, &target->name, &target->name_length))
		refuse(s, 503);
}

static void set_method(struct h2_stream *s, weft_http_text_t value)
{
	int method = weft__http_method_of(value.data, value.length);

	s->x.e->head_done = method >= 0 && method != HTTP_CONNECT;
	s->x.e->parser.method = s->x.e->head_done ? (uint8_t)method : 0;
	s->x.e->head_only = method == HTTP_HEAD;
	if (!s->x.e->head_done)
		refuse(s, 501);
}

/* nghttp2 accepts only known pseudo fields, each once. */
static void add_pseudo(struct h2_stream *s, const char *name, weft_http_text_t value)
{
	if (name[1] == 'm')
		set_method(s, value);
	else if (name[1] == 'p')
		set_target(s, value);
	else if (name[1] == 'a')
		add_host(s, value);
}

static void set_expectation(struct h2_stream *s, weft_http_text_t value)
{
	s->x.e->expects = weft__text_is(value, "100-continue");
	if (!s->x.e->expects)
		refuse(s, 417);
}

/* nghttp2 has checked that the value consists of digits. */
static void set_length(struct h2_stream *s, weft_http_text_t value)
{
	size_t i;

	for (i = 0; i < value.length && s->x.e->body_length < UINT64_MAX / 10 - 1; i++)
		s->x.e->body_length = s->x.e->body_length * 10 + (uint64_t)(value.data[i] - '0');
}

static void add_regular(struct h2_stream *s, const char *name, size_t length, weft_http_text_t value)
{
	if (length == 4 && !memcmp(name, "host", 4)) {
		add_host(s, value);
		return;
	}
	if (length == 6 && !memcmp(name, "expect", 6))
		set_expectation(s, value);
	else if (length == 6 && !memcmp(name, "cookie", 6))
		s->cookies++;
	else if (length == 14 && !memcmp(name, "content-length", 14))
		set_length(s, value);
	add_field(s, name, length, value.data, value.length);
}

static void add_trailer(struct h2_stream *s, const char *name, size_t length, weft_http_text_t value)
{
	struct text *t = &s->trailer;

	if (t->length + length + value.length + 4 > TRAILER_MOST || !weft__text_add(t, name, length) ||
	    !weft__text_add(t, ": ", 2) || !weft__text_add(t, value.data, value.length) ||
	    !weft__text_add(t, "\r\n", 2))
		weft__h2_reset(s, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t length,
		     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
	struct h2_stream *s = ((struct h2 *)user)->opening;
	weft_http_text_t text = {(const char *)value, value_length};

	(void)session;
	(void)frame;
	(void)flags;
	if (!s || s->x.e->failed == 431) /* the rest of the head is dropped */
		return 0;
	if (s->in_trailer)
		add_trailer(s, (const char *)name, length, text);
	else if (*name == ':')
		add_pseudo(s, (const char *)name, text);
	else
		add_regular(s, (const char *)name, length, text);
	return 0;
}

/* nghttp2 would only ignore the field. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t length,
			     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
	(void)name;
	(void)length;
	(void)value;
	(void)value_length;
	(void)flags;
	weft__h2_note_reset(user, frame->hd.stream_id);
	NG(submit_rst_stream)(session, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_PROTOCOL_ERROR);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	(void)session;
	(void)error;
	weft__h2_note_reset(user, frame->hd.stream_id);
	return 0;
}

/* ---- frames ------------------------------------------------------------------------------------------------------ */

/* A request's head is complete. Running handlers of streams that were reset count towards the limit. */
static void launch(struct h2 *h2, struct h2_stream *s)
{
	if (h2->running >= s->x.server->config.streams) {
		weft__h2_reset(s, NGHTTP2_REFUSED_STREAM);
		return;
	}
	s->running = true;
	h2->running++;
	*h2->last = s;
	h2->last = &s->next_arrived;
}

static void end_request(struct h2_stream *s)
{
	s->ended = true;
	weft_cond_broadcast(&s->changed);
}

static void on_headers(struct h2 *h2, const nghttp2_frame *frame)
{
	struct h2_stream *s = h2->opening;

	h2->opening = NULL;
	if (!s || s->closed)
		return;
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		end_request(s);
	if (!s->in_trailer)
		launch(h2, s);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct h2 *h2 = user;
	struct h2_stream *s;

	switch (frame->hd.type) {
	case NGHTTP2_HEADERS:
		on_headers(h2, frame);
		break;
	case NGHTTP2_DATA:
		if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
			break;
		s = NG(session_get_stream_user_data)(session, frame->hd.stream_id);
		if (s)
			end_request(s);
		break;
	case NGHTTP2_SETTINGS:
		h2->settled = true;
		break;
	case NGHTTP2_PING:
		if (frame->hd.flags & NGHTTP2_FLAG_ACK) {
			h2->answered = true;
			weft_cond_broadcast(&h2->changed);
		}
		break;
	}
	return 0;
}

/* ---- bodies ------------------------------------------------------------------------------------------------------ */

/* The windows are replenished when the handler has read the data. */
static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
	struct h2_stream *s = NG(session_get_stream_user_data)(session, id);

	(void)flags;
	(void)user;
	if (!s || !s->running) {
		NG(session_consume)(session, id, length);
		return 0;
	}
	if (!weft__text_add(&s->body, (const char *)data, length)) {
		NG(session_consume)(session, id, length);
		weft__h2_reset(s, NGHTTP2_INTERNAL_ERROR);
	}
	weft_cond_broadcast(&s->changed);
	return 0;
}

/* ---- the end of a stream ----------------------------------------------------------------------------------------- */

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct h2 *h2 = user;
	struct h2_stream *s = NG(session_get_stream_user_data)(session, id);

	(void)code;
	if (!s)
		return 0;
	if (h2->opening == s)
		h2->opening = NULL;
	s->closed = true;
	if (!--h2->open)
		h2->idle_from = weft_now();
	if (s->running)
		weft__h2_tell_gone(s);
	else
		weft__h2_free_stream(s);
	return 0;
}

void weft__h2_set_receive_callbacks(nghttp2_session_callbacks *c)
{
	H2_SET_RECEIVE_CALLBACKS(c);
}

#endif
