/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A connection of HTTP/2: its task, which receives, the writer, and its end.
 *
 * The first task that has frames to send starts a writer. The writer lets all other tasks run before it asks nghttp2
 * for frames: streams that are answered together are sent together. A full buffer is sent before the next frame is
 * made, so nghttp2 queues no body data, and handlers wait while the peer does not read.
 *
 * Rejected: a writer for the connection's whole life, whose stack an idle connection would keep; and writes by the task
 * that receives, which would not read while the peer does not read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/exchange.h"

#if !defined(WEFT_WITHOUT_NGHTTP2) && __has_include(<nghttp2/nghttp2.h>)
#include <dlfcn.h>

#include "http/h2.h"

/* ---- the library ------------------------------------------------------------------------------------------------- */

struct nghttp2 weft__nghttp2;

static bool find_functions(void *library)
{
#define F(name)                                                                                                        \
	weft__nghttp2.name = (__typeof__(weft__nghttp2.name))dlsym(library, "nghttp2_" #name);                         \
	if (!weft__nghttp2.name)                                                                                       \
		return false;
	NGHTTP2_FUNCTIONS(F)
#undef F
	return true;
}

/* Newer versions count a CONTINUATION again for each piece in which its head arrives, so check_frame counts frames
 * instead. */
static void lift_limit(void *library)
{
	void (*set)(nghttp2_option *, size_t) = (__typeof__(set))dlsym(library, "nghttp2_option_set_max_continuations");

	if (set)
		set(NG(option), SIZE_MAX);
}

static bool load(void)
{
	void *library = dlopen("libnghttp2.so.14", RTLD_NOW | RTLD_LOCAL);

	if (!library || !find_functions(library) || NG(option_new)(&NG(option)) ||
	    NG(session_callbacks_new)(&NG(callbacks)) || NG(session_callbacks_new)(&NG(client_callbacks)))
		return false;
	NG(option_set_no_auto_window_update)(NG(option), 1);
	NG(option_set_no_closed_streams)(NG(option), 1);
	NG(option_set_server_fallback_rfc7540_priorities)(NG(option), 1); /* their frames are checked */
	NG(option_set_max_outbound_ack)(NG(option), H2_ACKS);
	lift_limit(library);
	weft__h2_set_receive_callbacks(NG(callbacks));
	weft__h2_set_send_callbacks(NG(callbacks));
	weft__h2_set_client_callbacks(NG(client_callbacks));
	return true;
}

static bool is_loaded;

static void load_once(void)
{
	is_loaded = load();
}

/* On a helper thread: the dynamic linker needs more stack than a task may have. */
static int64_t load_library(void *unused)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)unused;
	pthread_once(&once, load_once);
	return is_loaded;
}

bool weft__h2_is_available(void)
{
	static _Atomic int known = -1;
	int64_t n = atomic_load_explicit(&known, memory_order_acquire);

	if (n < 0) {
		n = weft_call(load_library, NULL);
		if (n >= 0)
			atomic_store_explicit(&known, (int)n, memory_order_release);
	}
	return n > 0;
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

/* Nothing can be sent: makes the connection's task see the end of its input. */
static void lose(struct h2 *h2)
{
	h2->lost = true;
	weft_shutdown(h2->connection->stream.fd, SHUT_RDWR);
}

static void put_rest(struct h2_output *out)
{
	size_t room = out->room - out->length, n = out->rest_length < room ? out->rest_length : room;

	if (!n)
		return;
	weft__h2_put(out, out->rest, n);
	out->rest += n;
	out->rest_length -= n;
}

bool weft__h2_fill(struct h2_output *out, nghttp2_session *session)
{
	ssize_t n = 1;

	put_rest(out);
	while (n > 0 && !out->rest_length) {
		n = NG(session_mem_send)(session, &out->rest);
		out->rest_length = n > 0 ? (size_t)n : 0;
		put_rest(out);
	}
	return n >= 0;
}

/* Fills the writer's buffer. False: there is nothing to send, and the writer ends. */
static bool fill(struct h2 *h2)
{
	h2->out.length = 0;
	if (!weft__h2_fill(&h2->out, h2->session))
		lose(h2);
	return h2->out.length && !h2->lost;
}

/* On the stack of its task. */
struct writer {
	struct h2 *h2;
	char *data;
	bool over;    /* all frames were sent */
	bool drained; /* and no frames will come, in either direction */
};

/* False: there is nothing to send, and another task may start the next writer. */
static bool next_batch(struct writer *w)
{
	struct h2 *h2 = w->h2;

	weft__h2_lock(h2);
	h2->out.data = w->data;
	h2->out.room = H2_WRITE;
	w->over = !fill(h2);
	if (w->over) {
		h2->writing = false;
		w->drained = !h2->drained && !h2->lost && !NG(session_want_read)(h2->session);
	}
	if (w->drained) {
		h2->drained = true;
		weft_cond_broadcast(&h2->changed);
	}
	weft__h2_unlock(h2);
	return !w->over;
}

static bool send_batch(const struct writer *w)
{
	weft_http_t *x = w->h2->connection;
	size_t length = w->h2->out.length;
	ssize_t n = weft__stream_write(&x->stream, w->data, length, weft__after(x->server->config.write_time));

	if (n > 0)
		weft__http_sent(x->server, (size_t)n);
	return n == (ssize_t)length;
}

static void end_writer(void *writer)
{
	struct writer *w = writer;

	free(w->data);
	if (w->drained)
		weft__stream_finish(&w->h2->connection->stream);
	if (!w->over) {
		weft__h2_lock(w->h2);
		lose(w->h2);
		w->h2->writing = false;
		weft__h2_unlock(w->h2);
	}
	weft_group_done(&w->h2->tasks);
}

static void *write_frames(void *connection)
{
	struct writer w = {.h2 = connection};

	weft_defer(end_writer, &w);
	weft_task_yield(); /* streams that are about to end add their frames */
	w.data = malloc(H2_WRITE);
	while (w.data && next_batch(&w) && send_batch(&w))
		;
	return NULL;
}

void weft__h2_wake_writer(struct h2 *h2)
{
	if (h2->writing || h2->lost || h2->drained || !NG(session_want_write)(h2->session))
		return;
	h2->writing = true;
	weft_group_add(&h2->tasks, 1);
	if (weft_spawn_detached(write_frames, h2, &h2->connection->server->config.task)) {
		h2->writing = false;
		lose(h2);
		weft_group_done(&h2->tasks);
	}
}

/* ---- receiving --------------------------------------------------------------------------------------------------- */

void weft__h2_terminate(struct h2 *h2, uint32_t code)
{
	if (!h2->hostile)
		NG(session_terminate_session)(h2->session, code);
	h2->hostile = true;
}

/* Resets streams whose responses the client has not accepted since the preceding call. */
static void reset_stale(struct h2 *h2)
{
	struct h2_stream *s, *next;

	for (s = h2->streams; s; s = next) {
		next = s->next;
		if (s->stale)
			weft__h2_reset(s, NGHTTP2_CANCEL);
		s->stale = !s->running;
	}
}

static uint64_t idle_until(const struct h2 *h2, uint64_t now)
{
	uint64_t time = h2->connection->server->config.idle_time;

	return weft__from(h2->open || h2->running ? now : h2->idle_from, time);
}

/* With the lock held. */
static uint64_t receive_until(struct h2 *h2, uint64_t now)
{
	const weft_http_config_t *config = &h2->connection->server->config;
	uint64_t until = idle_until(h2, now);

	if (h2->settled && !h2->opening)
		h2->head_until = 0;
	else if (!h2->head_until)
		h2->head_until = weft__from(now, config->header_time);
	if (h2->head_until && h2->head_until < until)
		until = h2->head_until;
	return h2->open && h2->scan_at < until ? h2->scan_at : until;
}

/* The deadline of a wait has passed. */
static void expire(struct h2 *h2, uint64_t now)
{
	if (h2->head_until && h2->head_until <= now)
		weft__h2_terminate(h2, NGHTTP2_ENHANCE_YOUR_CALM);
	else if (idle_until(h2, now) <= now)
		weft__h2_terminate(h2, NGHTTP2_NO_ERROR);
	if (h2->scan_at <= now) {
		reset_stale(h2);
		h2->scan_at = weft__from(now, h2->connection->server->config.write_time);
	}
	weft__h2_wake_writer(h2);
}

static void release_input(struct h2 *h2)
{
	if (h2->capacity == IN_SIZE)
		weft__http_give_page(h2->connection->server, h2->in);
	else
		free(h2->in);
	h2->in = NULL;
	h2->capacity = 0;
}

static bool take_input(struct h2 *h2, size_t capacity)
{
	release_input(h2);
	h2->in = capacity == IN_SIZE ? weft__http_take_page(h2->connection->server) : malloc(capacity);
	h2->capacity = h2->in ? capacity : 0;
	return h2->in;
}

/* Frees the memory that a silent connection does not need. */
static void release_spares(struct h2 *h2)
{
	release_input(h2);
	weft__h2_lock(h2);
	weft__h2_free_spares(h2);
	weft__h2_unlock(h2);
}

/* Waits until `until` at most. -EAGAIN: a part of that time has passed, or data can be read. */
static ssize_t receive_once(struct h2 *h2, uint64_t now, uint64_t until)
{
	struct stream *stream = &h2->connection->stream;
	uint64_t hold = weft__from(now, HOLD_TIME);
	ssize_t n;

	if (!h2->in) {
		n = weft__stream_wait(stream, until);
		if (n > 0)
			return take_input(h2, IN_SIZE) ? -EAGAIN : -ENOMEM;
		return n ? n : -ETIMEDOUT;
	}
	n = weft__stream_read(stream, h2->in, h2->capacity, hold < until ? hold : until);
	if (n != -ETIMEDOUT || until <= hold)
		return n;
	release_spares(h2);
	return -EAGAIN;
}

/* @return bytes; 0, or a negative errno: the connection ends */
static ssize_t receive(struct h2 *h2)
{
	uint64_t now, until;
	ssize_t n;
	bool ends;

	do {
		now = weft_now();
		weft__h2_lock(h2);
		until = receive_until(h2, now);
		if (until <= now)
			expire(h2, now);
		ends = h2->hostile || h2->lost;
		weft__h2_unlock(h2);
		if (ends)
			return 0;
		n = until <= now ? -ETIMEDOUT : receive_once(h2, now, until);
	} while (n == -EAGAIN || n == -ETIMEDOUT);
	if (n > 0)
		weft__http_received(h2->connection->server, (size_t)n);
	return n;
}

/* Starts a task for each received request. */
static void start_streams(struct h2 *h2)
{
	struct h2_stream *s = h2->arrived, *next;

	h2->arrived = NULL;
	h2->last = &h2->arrived;
	for (; s; s = next) {
		next = s->next_arrived;
		weft_group_add(&h2->tasks, 1);
		if (!weft_spawn_detached(weft__h2_run_stream, s, &h2->connection->server->config.task))
			continue;
		weft__h2_lock(h2);
		s->running = false;
		h2->running--;
		if (s->closed)
			weft__h2_free_stream(s);
		else
			weft__h2_reset(s, NGHTTP2_REFUSED_STREAM);
		weft__h2_wake_writer(h2);
		weft__h2_unlock(h2);
		weft_group_done(&h2->tasks);
	}
}

/* False: the connection ends. */
static bool feed(struct h2 *h2, const char *data, size_t length)
{
	bool goes_on;

	weft__h2_lock(h2);
	goes_on = weft__h2_feed(h2, data, length);
	weft__h2_wake_writer(h2);
	weft__h2_unlock(h2);
	start_streams(h2);
	return goes_on;
}

/* Gives a larger buffer to a connection that fills a page. */
static bool feed_input(struct h2 *h2, size_t length)
{
	return feed(h2, h2->in, length) && (length < IN_SIZE || h2->capacity > IN_SIZE || take_input(h2, H2_READ));
}

static void receive_all(struct h2 *h2)
{
	weft_http_t *x = h2->connection;
	struct exchange *e = x->e;
	ssize_t n;

	/* Feeds at least the preface, which makes nghttp2 send the server's own preface. */
	if (!feed(h2, e ? e->in + e->head : "", e ? e->filled - e->head : 0))
		return;
	weft__http_drop_buffers(x);
	do
		n = receive(h2);
	while (n > 0 && feed_input(h2, (size_t)n));
}

/* ---- the end ----------------------------------------------------------------------------------------------------- */

/* RFC 9113 §6.8: the client first learns that it must send no more requests, and then which requests were seen. */
static void announce_end(struct h2 *h2)
{
	uint64_t until = weft__after(H2_STOP_TIME);

	NG(submit_shutdown_notice)(h2->session);
	NG(submit_ping)(h2->session, NGHTTP2_FLAG_NONE, NULL);
	weft__h2_wake_writer(h2);
	while (!h2->answered && !h2->ended && !weft_cond_wait_until(&h2->changed, &h2->lock, until))
		;
	NG(submit_goaway)
	(h2->session, NGHTTP2_FLAG_NONE, NG(session_get_last_proc_stream_id)(h2->session), NGHTTP2_NO_ERROR, NULL, 0);
	weft__h2_wake_writer(h2);
}

static void end_stop(void *connection)
{
	struct h2 *h2 = connection;

	weft__h2_unlock(h2);
	weft_group_done(&h2->tasks);
}

/* Closes a connection without streams if the client does not close it. */
static void *stop(void *connection)
{
	struct h2 *h2 = connection;
	uint64_t until;

	weft__h2_lock(h2);
	weft_defer(end_stop, h2);
	announce_end(h2);
	while (!h2->drained && !h2->ended && !weft_cond_wait(&h2->changed, &h2->lock))
		;
	until = weft__after(H2_STOP_TIME);
	while (!h2->ended && !weft_cond_wait_until(&h2->changed, &h2->lock, until))
		;
	if (!h2->ended)
		weft_shutdown(h2->connection->stream.fd, SHUT_RD);
	return NULL;
}

void weft__h2_begin_stop(struct h2 *h2)
{
	if (h2->stopping || h2->ended)
		return;
	h2->stopping = true;
	weft_group_add(&h2->tasks, 1);
	if (weft_spawn_detached(stop, h2, &h2->connection->server->config.task)) {
		weft_group_done(&h2->tasks);
		lose(h2);
	}
}

void weft__h2_stop(struct h2 *h2)
{
	weft__h2_lock(h2);
	weft__h2_begin_stop(h2);
	weft__h2_unlock(h2);
}

/* Tells handlers that the client has gone. */
static void end_streams(struct h2 *h2)
{
	struct h2_stream *s;

	weft__h2_lock(h2);
	h2->ended = true;
	for (s = h2->streams; s; s = s->next)
		weft__h2_tell_gone(s);
	weft_cond_broadcast(&h2->changed);
	weft__h2_unlock(h2);
}

static void cancel_streams(struct h2 *h2)
{
	struct h2_stream *s;
	weft_scope_t *scope;

	__atomic_store_n(&h2->cancelled, true, __ATOMIC_SEQ_CST);
	weft__h2_lock(h2);
	for (s = h2->streams; s; s = s->next) {
		scope = atomic_load(&s->scope);
		if (scope)
			weft_scope_cancel(scope, -ECANCELED);
	}
	weft__h2_unlock(h2);
}

static void set_connection(weft_http_t *x, struct h2 *h2)
{
	weft__http_lock(x->server);
	x->h2 = h2;
	weft__http_unlock(x->server);
}

static void free_connection(struct h2 *h2)
{
	release_spares(h2);
	while (h2->streams)
		weft__h2_free_stream(h2->streams);
	weft__h2_free_spares(h2);
	NG(session_del)(h2->session);
	free(h2);
}

/* Ends a running writer, which would wait for the client. */
static void end_writing(struct h2 *h2)
{
	weft__h2_lock(h2);
	if (h2->writing)
		lose(h2);
	weft__h2_unlock(h2);
}

/* Runs even if the connection's task is cancelled. */
static void end_connection(void *connection)
{
	struct h2 *h2 = connection;
	weft_http_t *x = h2->connection;

	set_connection(x, NULL);
	end_streams(h2);
	cancel_streams(h2);
	end_writing(h2);
	weft_shield_begin();
	weft_group_wait(&h2->tasks);
	weft_shield_end();
	x->lost = h2->lost;
	free_connection(h2);
}

/* ---- the beginning ----------------------------------------------------------------------------------------------- */

/* Announces the limits. Priorities are ignored (RFC 9218 §2.1). */
static bool send_settings(struct h2 *h2)
{
	const weft_http_config_t *config = &h2->connection->server->config;
	uint64_t list = config->header_bytes + config->request_line + 32ull * config->headers;
	const nghttp2_settings_entry settings[] = {
	    {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, config->streams},
	    {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, list < UINT32_MAX ? (uint32_t)list : UINT32_MAX},
	    {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
	};

	return !NG(submit_settings)(h2->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) &&
	       !NG(session_set_local_window_size)(h2->session, NGHTTP2_FLAG_NONE, 0, H2_WINDOW);
}

static struct h2 *open_connection(weft_http_t *x)
{
	struct h2 *h2 = calloc(1, sizeof *h2);

	if (!h2)
		return NULL;
	h2->connection = x;
	h2->last = &h2->arrived;
	h2->frames.payload = H2_PREFACE;
	h2->idle_from = weft_now();
	h2->patience = (struct h2_patience){H2_PATIENCE, h2->idle_from};
	h2->scan_at = weft__from(h2->idle_from, x->server->config.write_time);
	if (!NG(session_server_new2)(&h2->session, NG(callbacks), h2, NG(option)) && send_settings(h2))
		return h2;
	NG(session_del)(h2->session);
	free(h2);
	return NULL;
}

void weft__h2_serve(weft_http_t *x)
{
	struct h2 *h2 = open_connection(x);

	if (!h2) {
		x->lost = true;
		return;
	}
	weft_defer(end_connection, h2);
	set_connection(x, h2);
	if (atomic_load(&x->server->stopping)) /* weft_http_stop may have run before */
		weft__h2_stop(h2);
	receive_all(h2);
	end_streams(h2);
	weft_group_wait(&h2->tasks);
}

#else

bool weft__h2_is_available(void)
{
	return false;
}

void weft__h2_serve(weft_http_t *x)
{
	(void)x;
}

void weft__h2_stop(struct h2 *h2)
{
	(void)h2;
}

#endif
