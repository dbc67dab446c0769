/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Connections of HTTP/2 that a client's requests share: see client_h2.h. nghttp2 checks frames, windows, pseudo fields
 * and lengths of bodies by RFC 9113; its callbacks are here, and run with the lock held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#include "http/client_h2.h"

/* ---- streams ----------------------------------------------------------------------------------------------------- */

void weft__mux_add(struct mux_stream *s)
{
	struct mux *m = s->mux;

	s->next = m->streams;
	if (s->next)
		s->next->previous = s;
	m->streams = s;
}

/* The last stream's end also frees the buffers. */
void weft__mux_remove(struct mux_stream *s)
{
	struct mux *m = s->mux;

	if (m->opening == s)
		m->opening = NULL;
	*(s->previous ? &s->previous->next : &m->streams) = s->next;
	if (s->next)
		s->next->previous = s->previous;
	if (!m->streams) {
		free(m->in);
		m->in = NULL;
	}
}

void weft__mux_hand_on(struct mux *m)
{
	struct mux_stream *s = m->streams;

	while (s && !s->waits)
		s = s->next;
	if (s && !m->reading && WEFT_NO_CANARY(mux_keeps_role))
		weft_cond_signal(&s->changed);
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

static void lose(struct mux *m, int error)
{
	struct mux_stream *s;

	if (m->error)
		return;
	m->error = error;
	weft__client_set_closing(m->connection, m->client, false);
	for (s = m->streams; s; s = s->next)
		weft__mux_fail(s, error);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* False: there is nothing to send. */
static bool fill(struct mux *m)
{
	if (m->out_at < m->out.length)
		return true;
	m->out_at = m->out.length = 0;
	if (!weft__h2_fill(&m->out, m->session))
		lose(m, -ENOMEM);
	return m->out.length;
}

/* A TLS stream writes a record as a whole, for which a writable socket has room. */
static ssize_t write_now(struct mux *m)
{
	struct stream *stream = &m->connection->stream;
	const char *data = m->out.data + m->out_at;
	size_t length = m->out.length - m->out_at;
	ssize_t n;

	if (!stream->kind)
		return weft_write_until(stream->fd, data, length, 0);
	n = weft_poll_until(stream->fd, POLLOUT, 0);
	if (n < 0)
		return n;
	n = weft__stream_write(stream, data, length, weft__after(m->client->config.write_time));
	return n == -ETIMEDOUT ? -EPIPE : n; /* a part of the record may have been sent */
}

static void send_all(struct mux *m)
{
	ssize_t n;

	while (fill(m)) {
		n = write_now(m);
		if (n == -ETIMEDOUT) {
			m->blocked = true;
			weft_event_set(&m->wake);
			return;
		}
		if (n <= 0) {
			lose(m, n ? (int)n : -EPIPE);
			return;
		}
		m->out_at += (size_t)n;
	}
}

void weft__mux_flush(struct mux *m)
{
	if (m->error)
		return;
	m->blocked = false;
	if (!m->out.data)
		m->out.data = malloc(MUX_WRITE);
	m->out.room = MUX_WRITE;
	if (!m->out.data) {
		lose(m, -ENOMEM);
		return;
	}
	weft_shield_begin();
	send_all(m);
	weft_shield_end();
	if (!m->blocked) {
		free(m->out.data);
		m->out.data = NULL;
	}
}

/* Sends GOAWAY, as far as the socket takes it, and ends the connection. */
static void terminate(struct mux *m, uint32_t code)
{
	NG(session_terminate_session)(m->session, code);
	weft__mux_flush(m);
	lose(m, -EBADMSG);
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

/* Header blocks may have as many frames as their limit needs, and some more. */
static bool is_patient(struct mux *m, unsigned type, unsigned flags, int32_t id)
{
	size_t most = H2_CONTINUATIONS + m->client->config.header_bytes / MUX_BLOCK;

	switch (type) {
	case NGHTTP2_HEADERS:
		m->continuations = 0;
		return true;
	case NGHTTP2_CONTINUATION:
		return ++m->continuations <= most || WEFT_CANARY(mux_is_patient);
	case NGHTTP2_WINDOW_UPDATE:
		return true;
	case NGHTTP2_DATA:
		if (m->frames.payload || flags & NGHTTP2_FLAG_END_STREAM)
			return true;
		break;
	case NGHTTP2_RST_STREAM:
		if (NG(session_get_stream_user_data)(m->session, id))
			return true;
		break;
	}
	return weft__h2_spend_patience(&m->patience);
}

/* Returns the code of the error for which the connection must end, or 0. */
static uint32_t check_frames(struct mux *m, const char *at, const char *end)
{
	const uint8_t *f = m->frames.head;

	while ((at = weft__h2_next_frame(&m->frames, at, end))) {
		if (f[3] == NGHTTP2_PUSH_PROMISE)
			return NGHTTP2_PROTOCOL_ERROR;
		if (!is_patient(m, f[3], f[4], weft__h2_frame_id(f)))
			return NGHTTP2_ENHANCE_YOUR_CALM;
	}
	return NGHTTP2_NO_ERROR;
}

static void feed(struct mux *m, size_t length)
{
	uint32_t code = check_frames(m, m->in, m->in + length);
	ssize_t n = code ? 0 : NG(session_mem_recv)(m->session, (const uint8_t *)m->in, length);

	if (n < 0)
		code = NGHTTP2_ENHANCE_YOUR_CALM; /* more answers than option_set_max_outbound_ack allows */
	if (n == NGHTTP2_ERR_NOMEM && WEFT_NO_CANARY(mux_blames_server))
		lose(m, -ENOMEM);
	else if (code)
		terminate(m, code);
	else
		weft__mux_flush(m);
}

/* Reads without waiting. -ETIMEDOUT: there are no data. Cannot be cancelled, because the data would be lost. */
static ssize_t read_now(struct mux *m)
{
	ssize_t n;

	weft_shield_begin();
	n = weft__stream_read(&m->connection->stream, m->in, MUX_READ, 0);
	weft_shield_end();
	return n;
}

/* 0: the socket is ready, or there is more to write; or a negative errno. */
static int await_socket(struct mux *m, int events, uint64_t deadline)
{
	weft_readiness_t ready = weft_readiness(m->connection->stream.fd, events);
	weft_case_t cases[2] = {{.event = &m->wake}, {.ready = &ready}};
	int done = weft_select_until(cases, 2, deadline);

	return done < 0 ? done : 0;
}

static void end_reading(void *mux)
{
	struct mux *m = mux;

	weft__mux_lock(m);
	m->reading = false;
}

/* Unlocks meanwhile. Reads, and waits if there are no data. *n: the result of the read. 0, or the error that ended the
 * wait. */
static int read_unlocked(struct mux *m, int events, uint64_t deadline, ssize_t *n)
{
	weft_defer(end_reading, m);
	weft_mutex_unlock(&m->lock);
	*n = read_now(m);
	return *n == -ETIMEDOUT ? await_socket(m, events, deadline) : 0;
}

/* Receives once for all streams. With the lock held. */
static int receive(struct mux *m, uint64_t deadline)
{
	int events = POLLIN | (m->blocked ? POLLOUT : 0), error = weft_task_check();
	ssize_t n;

	if (!error && deadline <= weft_now())
		error = -ETIMEDOUT;
	if (!error && !m->in && !(m->in = malloc(MUX_READ)))
		error = -ENOMEM;
	if (error)
		return error;
	m->reading = true;
	weft_event_reset(&m->wake);
	error = read_unlocked(m, events, deadline, &n);
	if (n > 0)
		feed(m, (size_t)n);
	else if (n != -ETIMEDOUT)
		lose(m, n ? (int)n : -ECONNRESET);
	else if (m->blocked)
		weft__mux_flush(m);
	return error;
}

int weft__mux_await(struct mux_stream *s, uint64_t deadline)
{
	struct mux *m = s->mux;
	int error;

	if (!m->reading)
		return receive(m, deadline);
	s->waits = true;
	error = weft_cond_wait_until(&s->changed, &m->lock, deadline);
	s->waits = false;
	return error;
}

static void unlock(void *mux)
{
	weft_mutex_unlock(&((struct mux *)mux)->lock);
}

bool weft__mux_is_usable(struct mux *m)
{
	ssize_t n = m->in || (m->in = malloc(MUX_READ)) ? 1 : -ENOMEM;
	int i;

	weft__mux_lock(m);
	weft_defer(unlock, m);
	weft__mux_flush(m);
	for (i = 0; n > 0 && !m->error && i < MUX_READS; i++) {
		n = read_now(m);
		if (n > 0)
			feed(m, (size_t)n);
	}
	return n == -ETIMEDOUT && !m->error && !m->connection->closing;
}

/* ---- nghttp2's callbacks: heads ---------------------------------------------------------------------------------- */

void weft__mux_free_head(struct mux_head *h)
{
	if (!h)
		return;
	weft__text_free(&h->text);
	free(h->fields);
	free(h);
}

static struct mux_stream *stream_of(nghttp2_session *session, int32_t id)
{
	return NG(session_get_stream_user_data)(session, id);
}

/* Fails the stream, and resets it. */
static void reset(struct mux_stream *s, int error, uint32_t code)
{
	weft__mux_fail(s, error);
	NG(submit_rst_stream)(s->mux->session, NGHTTP2_FLAG_NONE, s->id, code);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct mux *m = user;
	struct mux_stream *s = stream_of(session, frame->hd.stream_id);

	m->opening = s;
	if (!s)
		return 0;
	weft__mux_free_head(s->incoming);
	s->incoming = calloc(1, sizeof *s->incoming);
	if (!s->incoming)
		reset(s, -ENOMEM, NGHTTP2_INTERNAL_ERROR);
	return 0;
}

static struct field *add_field(struct mux_head *h)
{
	unsigned room = h->room ? 2 * h->room : 16;
	struct field *more = h->count < h->room ? h->fields : realloc(h->fields, room * sizeof *more);

	if (!more)
		return NULL;
	h->room = h->count < h->room ? h->room : room;
	h->fields = more;
	return &more[h->count++];
}

static bool add_text(struct text *t, const uint8_t *data, size_t n, uint32_t *offset, uint32_t *length)
{
	*offset = (uint32_t)t->length;
	*length = (uint32_t)n;
	return weft__text_add(t, (const char *)data, n);
}

/* Adds a field. All heads of a response, with its trailer, must not exceed the limit. */
static void note_field(struct mux_stream *s, const uint8_t *name, size_t length, const uint8_t *value,
		       size_t value_length)
{
	const weft_http_client_config_t *config = &s->mux->client->config;
	struct mux_head *h = s->incoming;
	struct field *f;

	s->head_bytes += length + value_length;
	if (s->head_bytes > config->header_bytes || h->count == config->headers) {
		reset(s, -EMSGSIZE, NGHTTP2_CANCEL);
		return;
	}
	f = add_field(h);
	if (!f || !add_text(&h->text, name, length, &f->name, &f->name_length) ||
	    !add_text(&h->text, value, value_length, &f->value, &f->value_length))
		reset(s, -ENOMEM, NGHTTP2_INTERNAL_ERROR);
}

/* nghttp2 accepts only :status, with three digits. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t length,
		     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
	struct mux_stream *s = ((struct mux *)user)->opening;

	(void)session;
	(void)frame;
	(void)flags;
	if (!s || s->error) /* the stream has failed: the field is dropped */
		return 0;
	if (*name == ':')
		s->incoming->status = (value[0] - '0') * 100 + (value[1] - '0') * 10 + (value[2] - '0');
	else
		note_field(s, name, length, value, value_length);
	return 0;
}

/* Fails the stream: nghttp2 would only ignore the field. */
static int on_invalid_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t length,
			     const uint8_t *value, size_t value_length, uint8_t flags, void *user)
{
	struct mux_stream *s = stream_of(session, frame->hd.stream_id);

	(void)name;
	(void)length;
	(void)value;
	(void)value_length;
	(void)flags;
	(void)user;
	if (s)
		reset(s, -EBADMSG, NGHTTP2_PROTOCOL_ERROR);
	return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}

static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int error, void *user)
{
	struct mux_stream *s = stream_of(session, frame->hd.stream_id);

	(void)error;
	(void)user;
	if (s)
		weft__mux_fail(s, -EBADMSG);
	return 0;
}

static void queue_head(struct mux_stream *s, struct mux_head *h)
{
	s->final = h->status >= 200;
	if (!s->final && ++s->informed > INFORM_MOST) {
		weft__mux_free_head(h);
		reset(s, -EBADMSG, NGHTTP2_ENHANCE_YOUR_CALM);
		return;
	}
	*s->last_head = h;
	s->last_head = &h->next;
}

static void on_headers(struct mux *m)
{
	struct mux_stream *s = m->opening;
	struct mux_head *h;

	m->opening = NULL;
	if (!s || s->error)
		return;
	h = s->incoming;
	s->incoming = NULL;
	if (s->final) {
		weft__mux_free_head(s->trailer);
		s->trailer = h;
	} else {
		queue_head(s, h);
	}
	weft__mux_wake(s);
}

/* ---- nghttp2's callbacks: other frames --------------------------------------------------------------------------- */

static void note_settings(struct mux *m)
{
	uint32_t most = NG(session_get_remote_settings)(m->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
	unsigned ours = m->client->config.streams;

	m->settled = true;
	weft__client_set_streams(m->connection, m->client, most < ours ? most : ours);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct mux *m = user;
	struct mux_stream *s;

	if (frame->hd.type == NGHTTP2_HEADERS)
		on_headers(m);
	else if (frame->hd.type == NGHTTP2_SETTINGS && !(frame->hd.flags & NGHTTP2_FLAG_ACK))
		note_settings(m);
	else if (frame->hd.type == NGHTTP2_GOAWAY)
		weft__client_set_closing(m->connection, m->client,
					 frame->goaway.error_code == NGHTTP2_HTTP_1_1_REQUIRED);
	if (frame->hd.type > NGHTTP2_HEADERS || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	s = stream_of(session, frame->hd.stream_id);
	if (s && !s->error) {
		s->ended = true;
		weft__mux_wake(s);
	}
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t length, void *user)
{
	struct mux_stream *s = stream_of(session, id);

	(void)flags;
	(void)user;
	NG(session_consume_connection)(session, length);
	if (!s || s->error)
		return 0;
	if (!weft__text_add(&s->body, (const char *)data, length))
		reset(s, -ENOMEM, NGHTTP2_INTERNAL_ERROR);
	weft__mux_wake(s);
	return 0;
}

/* nghttp2 closes streams above the last stream of a GOAWAY with REFUSED_STREAM. */
static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *user)
{
	struct mux *m = user;
	struct mux_stream *s = stream_of(session, id);

	if (!s)
		return 0;
	s->closed = true;
	s->refused = code == NGHTTP2_REFUSED_STREAM && !s->final;
	s->wants_1 = code == NGHTTP2_HTTP_1_1_REQUIRED && WEFT_NO_CANARY(mux_forgets_version);
	if (s->wants_1)
		weft__client_set_closing(m->connection, m->client, true);
	weft__mux_fail(s, s->refused ? -EAGAIN : -ECONNRESET);
	weft__mux_wake(s);
	return 0;
}

/* Handles nghttp2's reaction to a server that breaks a rule: it resets the stream, or ends the connection. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
	struct mux_stream *s = stream_of(session, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR)
		lose(user, -EBADMSG);
	if (!s)
		return 0;
	if (frame->hd.type == NGHTTP2_RST_STREAM)
		weft__mux_fail(s, -EBADMSG);
	s->begun |= frame->hd.type == NGHTTP2_HEADERS;
	if (frame->hd.type <= NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
		s->sent = true;
	weft__mux_wake(s);
	return 0;
}

void weft__h2_set_client_callbacks(nghttp2_session_callbacks *c)
{
	H2_SET_RECEIVE_CALLBACKS(c);
	NG(session_callbacks_set_on_frame_send_callback)(c, on_frame_sent);
}

/* ---- the beginning and the end ----------------------------------------------------------------------------------- */

static bool send_settings(struct mux *m)
{
	const weft_http_client_config_t *config = &m->client->config;
	uint64_t list = config->header_bytes + 32ull * config->headers;
	const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
	    {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, MUX_WINDOW},
	    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, list < UINT32_MAX ? (uint32_t)list : UINT32_MAX},
	};

	return !NG(submit_settings)(m->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) &&
	       !NG(session_set_local_window_size)(m->session, NGHTTP2_FLAG_NONE, 0, MUX_WINDOW_ALL);
}

static int await_settings(struct mux *m, uint64_t deadline)
{
	int error = 0;

	weft__mux_lock(m);
	weft_defer(unlock, m);
	weft__mux_flush(m);
	while (!m->settled && !m->error && !error)
		error = receive(m, deadline);
	return m->error ? m->error : error;
}

int weft__mux_open(weft_http_client_t *c, struct connection *connection, uint64_t deadline)
{
	struct mux *m;

	if (!weft__h2_is_available())
		return -ENOTSUP;
	m = calloc(1, sizeof *m);
	if (!m)
		return -ENOMEM;
	m->client = c;
	m->connection = connection;
	m->patience = (struct h2_patience){H2_PATIENCE, weft_now()};
	if (NG(session_client_new2)(&m->session, NG(client_callbacks), m, NG(option))) {
		free(m);
		return -ENOMEM;
	}
	connection->mux = m;
	return send_settings(m) ? await_settings(m, deadline) : -ENOMEM;
}

static void free_mux(struct mux *m)
{
	NG(session_del)(m->session);
	free(m->in);
	free(m->out.data);
	free(m);
}

void weft__mux_close(struct mux *m)
{
	if (!m->error) {
		weft__mux_lock(m);
		NG(session_terminate_session)(m->session, NGHTTP2_NO_ERROR);
		weft__mux_flush(m);
		weft_mutex_unlock(&m->lock);
	}
	free_mux(m);
}

#else

int weft__mux_open(weft_http_client_t *c, struct connection *connection, uint64_t deadline)
{
	(void)c;
	(void)connection;
	(void)deadline;
	return -ENOTSUP;
}

bool weft__mux_is_usable(struct mux *m)
{
	(void)m;
	return false;
}

void weft__mux_close(struct mux *m)
{
	(void)m;
}

const struct client_protocol weft__client_http2;

#endif
