/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server: listeners, the life of a connection, and its end.
 *
 * A connection's task belongs to no scope, so that a handler that fails ends only its own connection; the server counts
 * its connections, and keeps them in a list for weft_http_stop. Each connection has a scope of its own, which
 * weft_http_stop cancels when its time is over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/exchange.h"
#include "http/tls.h"

/* A call of weft_http_serve, on its stack. */
struct serving {
	struct serving *next;
	weft_http_server_t *server;
	weft_http_tls_t *tls; /* NULL: plain connections */
	weft_scope_t *scope;
	bool has_room; /* for the next connection */
};

#define SECOND 1000000000ull
#define LINGER_TIME (1 * SECOND)  /* a closed connection waits so long for data, which it discards */
#define LINGER_MOST (10 * SECOND) /* the most time for that */

enum { SHORTAGE_PAUSE = 10000000 };

/* ---- making a server --------------------------------------------------------------------------------------------- */

static void set_defaults(weft_http_config_t *c)
{
#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))
	DEFAULT(c->request_line, 8192);
	DEFAULT(c->header_bytes, 16384);
	DEFAULT(c->headers, 100);
	DEFAULT(c->body, 1 << 20);
	DEFAULT(c->streams, 100);
	DEFAULT(c->header_time, 10 * SECOND);
	DEFAULT(c->body_time, 10 * SECOND);
	DEFAULT(c->idle_time, 60 * SECOND);
	DEFAULT(c->write_time, 30 * SECOND);
#undef DEFAULT
}

int weft_http_open(weft_http_server_t **server, const weft_http_config_t *config)
{
	weft_http_server_t *s;

	if (!server || (config && config->flags & ~(unsigned)WEFT_HTTP_TIMING))
		return -EINVAL;
	s = aligned_alloc(_Alignof(weft_http_server_t), sizeof *s);
	if (!s)
		return -ENOMEM;
	memset(s, 0, sizeof *s);
	if (config)
		s->config = *config;
	set_defaults(&s->config);
	pthread_mutex_init(&s->pool.lock, NULL);
	s->last = &s->routes;
	s->room = (weft_sem_t)WEFT_SEM(s->config.connections);
	*server = s;
	return 0;
}

void weft_http_close(weft_http_server_t *server)
{
	if (!server)
		return;
	weft__http_free_routes(server);
	weft__http_free_shares(server);
	weft__http_free_pages(server);
	free(server);
}

void weft_http_stats(const weft_http_server_t *s, weft_http_stats_t *stats)
{
	*stats = (weft_http_stats_t){0};
	stats->connections = atomic_load_explicit(&s->connected, memory_order_relaxed);
	stats->accepted = atomic_load_explicit(&s->accepted, memory_order_relaxed);
	weft__http_sum_shares(s, stats);
}

/* Locks even if the caller is being cancelled: the lists must stay correct. */
void weft__http_lock(weft_http_server_t *server)
{
	weft_shield_begin();
	weft_mutex_lock(&server->lock);
}

void weft__http_unlock(weft_http_server_t *server)
{
	weft_mutex_unlock(&server->lock);
	weft_shield_end();
}

/* ---- an exchange ------------------------------------------------------------------------------------------------- */

/* 0: the connection was lost before the response began. */
static int sent_status(const weft_http_t *x)
{
	return x->lost && !x->e->streaming ? 0 : x->e->status;
}

static __attribute__((noinline)) void log_exchange(weft_http_t *x)
{
	const weft_http_config_t *config = &x->server->config;
	const char *method = weft_http_method(x);
	weft_http_entry_t entry = {.peer = weft_http_peer(x), .version = weft_http_version(x)};

	if (x->e->head_done) {
		entry.method = (weft_http_text_t){method, strlen(method)};
		entry.target = weft_http_target(x);
	}
	entry.status = sent_status(x);
	entry.received = x->e->received;
	entry.sent = x->e->sent;
	entry.begun = x->e->begun;
	entry.nanoseconds = weft_now() - x->e->begun;
	config->log(&entry, config->log_context);
}

void weft__http_complete(weft_http_t *x)
{
	weft__http_finish(x);
	weft__http_answered(x->server, sent_status(x));
	if (x->server->config.log)
		log_exchange(x);
}

void weft__http_note_begin(weft_http_t *x)
{
	const weft_http_config_t *config = &x->server->config;

	if (config->log || config->flags & WEFT_HTTP_TIMING)
		x->e->begun = weft_now();
}

static void refuse(weft_http_t *x, int status)
{
	x->keep = false;
	weft__http_answer(x, status);
}

/* A close while the peer still sends would reset the connection, and the peer might lose the response: reads until the
 * peer has seen the end. Not inlined: a waiting connection must not have this buffer on its stack. */
static __attribute__((noinline)) void linger(weft_http_t *x)
{
	uint64_t until = weft_now() + LINGER_MOST;
	char text[1024];
	ssize_t n;

	if (weft__stream_finish(&x->stream))
		return;
	do
		n = weft_read_until(x->stream.fd, text, sizeof text, weft_now() + LINGER_TIME);
	while (n > 0 && weft_now() < until);
}

/* One request and its response. False: the connection ends. */
static bool exchange(weft_http_t *x)
{
	bool whole = !weft__http_send_last(x) && weft__http_read_head(x);
	int status = x->e ? x->e->failed : 0;

	if (!whole && (!status || x->lost))
		return false;
	weft__http_note_begin(x);
	if (whole) {
		x->e->head_only = x->e->parser.method == HTTP_HEAD;
		status = weft__http_check_head(x);
	}
	if (status)
		refuse(x, status);
	else
		weft__http_dispatch(x);
	weft__http_complete(x);
	if (x->keep && !x->lost && weft__http_drain(x)) {
		weft__http_next(x);
		return true;
	}
	/* The peer may be sending its next request. */
	if (!x->lost && !weft__http_send(x) && !WEFT_CANARY(http_closes_at_once))
		linger(x);
	return false;
}

/* ---- a connection ------------------------------------------------------------------------------------------------ */

static void enlist(weft_http_t *x)
{
	weft_http_server_t *s = x->server;

	weft__http_lock(s);
	x->next = s->connections;
	if (x->next)
		x->next->previous = x;
	s->connections = x;
	weft__http_unlock(s);
	atomic_fetch_add_explicit(&s->connected, 1, memory_order_relaxed);
}

static void delist(weft_http_t *x)
{
	weft_http_server_t *s = x->server;

	weft__http_lock(s);
	if (x->previous)
		x->previous->next = x->next;
	else
		s->connections = x->next;
	if (x->next)
		x->next->previous = x->previous;
	weft__http_unlock(s);
	atomic_fetch_sub_explicit(&s->connected, 1, memory_order_relaxed);
}

static void end_connection(void *connection)
{
	weft_http_t *x = connection;

	weft__http_drop_buffers(x);
	delist(x);
	weft__stream_close(&x->stream);
	(void)weft_scope_wait(x->scope); /* which has no tasks */
}

static void set_up(weft_http_t *x, weft_http_server_t *server, int fd)
{
	*x = (weft_http_t){.server = server,
			   .protocol = &weft__http1,
			   .stream = {.fd = fd},
			   .simulated = !strcmp(weft_io_backend(), "simulated")};
}

/* In plain text, which is all that the client speaks. */
static void refuse_plain_request(weft_http_t *x)
{
	static const char text[] = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 30\r\n"
				   "Connection: close\r\n\r\n400 This port is for https://\n";

	(void)weft__stream_write(&x->stream, text, sizeof text - 1, weft__after(x->server->config.write_time));
}

/* False: the handshake has failed. weft_http_stop may end a handshake, because no request has begun. */
static bool begin_tls(weft_http_t *x, weft_http_tls_t *tls)
{
	const weft_http_config_t *config = &x->server->config;
	int error;

	atomic_store(&x->idle, true);
	if (atomic_load(&x->server->stopping))
		return false;
	error = weft__tls_accept(&x->stream, x->stream.fd, tls, weft__h2_is_available() ? "h2,http/1.1" : "http/1.1",
				 weft__after(config->header_time));
	atomic_store(&x->idle, false);
	if (error == -EPROTONOSUPPORT)
		refuse_plain_request(x);
	if (error)
		linger(x); /* so that the peer receives the alert */
	return !error;
}

static bool chose_http2(const weft_http_t *x)
{
	const char *protocol = weft__tls_alpn(&x->stream);

	return protocol && !strcmp(protocol, "h2");
}

static void serve(weft_http_server_t *server, int fd, weft_http_tls_t *tls)
{
	weft_scope_t scope;
	weft_http_t x;

	set_up(&x, server, fd);
	x.scope = &scope;
	weft_scope_open(&scope, WEFT_NEVER);
	enlist(&x);
	weft_defer(end_connection, &x);
	if (atomic_load(&server->forced) || (tls && !begin_tls(&x, tls)))
		return;
	x.preface = tls && chose_http2(&x);
	while (!x.preface && exchange(&x))
		;
	if (!x.preface)
		return;
	weft__h2_serve(&x);
	if (!x.lost)
		linger(&x);
}

/* Runs even if a handler ends its task. */
static void leave(void *server)
{
	weft_group_done(&((weft_http_server_t *)server)->open);
}

void weft_http_serve_connection(weft_http_server_t *server, int fd)
{
	weft_group_add(&server->open, 1);
	weft_defer(leave, server);
	serve(server, fd, NULL);
}

/* ---- accepting --------------------------------------------------------------------------------------------------- */

struct arrival {
	weft_http_server_t *server;
	weft_http_tls_t *tls;
	int fd;
};

static void give_room(void *argument)
{
	weft_http_server_t *server = argument;

	if (server->config.connections)
		weft_sem_give(&server->room, 1);
}

static void *run_connection(void *argument)
{
	struct arrival a = *(struct arrival *)argument;

	free(argument);
	weft_defer(leave, a.server);
	weft_defer(give_room, a.server);
	serve(a.server, a.fd, a.tls);
	return NULL;
}

/* Closes the connection if there is no memory for it. */
static int start_connection(weft_http_server_t *server, weft_http_tls_t *tls, int fd)
{
	struct arrival *a = malloc(sizeof *a);
	int error = a ? 0 : -ENOMEM;

	if (a) {
		*a = (struct arrival){server, tls, fd};
		weft_group_add(&server->open, 1);
		error = weft_spawn_detached(run_connection, a, &server->config.task);
		if (error)
			weft_group_done(&server->open);
	}
	if (error) {
		free(a);
		weft_close(fd);
	}
	return error;
}

/* Descriptors and memory become free when connections end. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOBUFS || error == -ENOMEM || error == -EDQUOT ||
	       error == -EAGAIN || error == -ENOSPC;
}

/* The connection was lost before it was accepted; Linux also reports errors of the network here. */
static bool is_of_one_connection(int error)
{
	switch (-error) {
	case ECONNABORTED:
	case EPROTO:
	case ENETDOWN:
	case ENOPROTOOPT:
	case EHOSTDOWN:
	case ENONET:
	case EHOSTUNREACH:
	case EOPNOTSUPP:
	case ENETUNREACH:
	case EPERM: /* a firewall's rule */
	case EINTR:
		return true;
	default:
		return false;
	}
}

/* A cancellation may end the task in either wait: then end_serving returns the permit. */
static int accept_one(struct serving *s, int listener)
{
	weft_http_server_t *server = s->server;
	int fd, error = 0;

	if (server->config.connections && !s->has_room) {
		error = weft_sem_take_until(&server->room, WEFT_NEVER);
		if (error)
			return error;
		s->has_room = true;
	}
	fd = weft_accept(listener, NULL, NULL, 0);
	if (fd < 0)
		return fd;
	s->has_room = false; /* the connection holds the permit */
	error = start_connection(server, s->tls, fd);
	if (error)
		give_room(server);
	else
		atomic_fetch_add_explicit(&server->accepted, 1, memory_order_relaxed);
	return error;
}

static void begin_serving(struct serving *s)
{
	weft__http_lock(s->server);
	s->next = s->server->listeners;
	s->server->listeners = s;
	weft__http_unlock(s->server);
}

static void end_serving(void *serving)
{
	struct serving *s = serving, **at;

	weft__http_lock(s->server);
	for (at = &s->server->listeners; *at != s; at = &(*at)->next)
		;
	*at = s->next;
	weft__http_unlock(s->server);
	if (s->has_room)
		give_room(s->server);
}

static int accept_all(weft_http_server_t *server, int listener, weft_http_tls_t *tls)
{
	struct serving s = {.server = server, .tls = tls};
	int error = 0;

	if (!weft_rt_current())
		return -EPERM;
	WEFT_SCOPE(scope);
	s.scope = &scope;
	begin_serving(&s);
	weft_defer(end_serving, &s);
	while (!atomic_load(&server->stopping)) {
		error = accept_one(&s, listener);
		if (is_shortage(error))
			error = weft_sleep(SHORTAGE_PAUSE);
		else if (is_of_one_connection(error))
			error = 0;
		if (error)
			break;
	}
	return atomic_load(&server->stopping) ? 0 : error;
}

int weft_http_serve(weft_http_server_t *server, int listener)
{
	return accept_all(server, listener, NULL);
}

int weft_http_serve_tls(weft_http_server_t *server, int listener, weft_http_tls_t *tls)
{
	return tls && weft__tls_is_server(tls) ? accept_all(server, listener, tls) : -EINVAL;
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

/* An idle connection sees an end of its input. Data that have arrived before are still read, and answered. HTTP/2 has a
 * frame for that. */
static void end_idle(weft_http_server_t *server)
{
	weft_http_t *x;

	weft__http_lock(server);
	for (x = server->connections; x; x = x->next)
		if (x->h2)
			weft__h2_stop(x->h2);
		else if (atomic_load(&x->idle))
			weft_shutdown(x->stream.fd, SHUT_RD);
	weft__http_unlock(server);
}

static void cancel_all(weft_http_server_t *server)
{
	weft_http_t *x;

	atomic_store(&server->forced, true);
	weft__http_lock(server);
	for (x = server->connections; x; x = x->next)
		weft_scope_cancel(x->scope, -ECANCELED);
	weft__http_unlock(server);
}

int weft_http_stop(weft_http_server_t *server, uint64_t deadline)
{
	struct serving *s;
	int error;

	atomic_store(&server->stopping, true);
	weft__http_lock(server);
	for (s = server->listeners; s; s = s->next)
		weft_scope_cancel(s->scope, -ECANCELED);
	weft__http_unlock(server);
	end_idle(server);
	error = weft_group_wait_until(&server->open, deadline);
	if (error != -ETIMEDOUT)
		return error;
	cancel_all(server);
	error = weft_group_wait(&server->open);
	return error ? error : -ETIMEDOUT;
}
