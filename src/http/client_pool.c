/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The connections of a client. Permits are semaphores, so that requests wait in the order of their arrival; the lists
 * are under one lock, which is held for a few instructions. Connections are closed outside of it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"
#include "http/tls.h"

/* ---- hosts ------------------------------------------------------------------------------------------------------- */

static struct host **bucket_of(weft_http_client_t *c, weft_http_text_t origin)
{
	uint32_t hash = 2166136261u; /* FNV-1a */
	size_t i;

	for (i = 0; i < origin.length; i++)
		hash = (hash ^ (unsigned char)origin.data[i]) * 16777619u;
	return &c->hosts[hash % HOST_BUCKETS];
}

static struct host *make_host(weft_http_client_t *c, weft_http_text_t origin)
{
	struct host *h = calloc(1, sizeof *h + origin.length);

	if (!h)
		return NULL;
	h->room = (weft_sem_t)WEFT_SEM(c->config.host_connections);
	h->length = origin.length;
	memcpy(h->origin, origin.data, origin.length);
	return h;
}

/* Finds or makes the host of an origin, and counts a user. NULL: no memory. */
static struct host *use_host(weft_http_client_t *c, weft_http_text_t origin)
{
	struct host **bucket = bucket_of(c, origin), *h;

	weft__client_lock(c);
	for (h = *bucket; h; h = h->next)
		if (h->length == origin.length && !memcmp(h->origin, origin.data, origin.length))
			break;
	if (!h && (h = make_host(c, origin))) {
		h->next = *bucket;
		*bucket = h;
	}
	if (h)
		h->users++;
	weft__client_unlock(c);
	return h;
}

/* Under the lock. */
static void drop_host(weft_http_client_t *c, struct host *h)
{
	struct host **at;

	if (h->users || h->idle.newest || h->only_1) /* a shared connection has users */
		return;
	for (at = bucket_of(c, (weft_http_text_t){h->origin, h->length}); *at != h; at = &(*at)->next)
		;
	*at = h->next;
	free(h);
}

void weft__client_forget_hosts(weft_http_client_t *c)
{
	struct host *h;
	unsigned i;

	for (i = 0; i < HOST_BUCKETS; i++)
		while ((h = c->hosts[i])) {
			c->hosts[i] = h->next;
			free(h);
		}
}

/* ---- idle connections -------------------------------------------------------------------------------------------- */

static void push(struct idle_list *list, enum list_kind kind, struct connection *c)
{
	c->links[kind] = (struct link){NULL, list->newest};
	if (list->newest)
		list->newest->links[kind].newer = c;
	else
		list->oldest = c;
	list->newest = c;
}

static void unlink_from(struct idle_list *list, enum list_kind kind, struct connection *c)
{
	struct link *l = &c->links[kind];

	if (l->newer)
		l->newer->links[kind].older = l->older;
	else
		list->newest = l->older;
	if (l->older)
		l->older->links[kind].newer = l->newer;
	else
		list->oldest = l->newer;
}

/* Under the lock. */
static void add_idle(weft_http_client_t *c, struct connection *connection)
{
	push(&connection->host->idle, OF_HOST, connection);
	push(&c->idle, OF_ALL, connection);
	c->stats.idle++;
}

static void put_idle(weft_http_client_t *c, struct connection *connection)
{
	connection->idle_since = weft_now();
	weft__client_lock(c);
	add_idle(c, connection);
	weft__client_unlock(c);
}

/* Under the lock. */
static void take_out(weft_http_client_t *c, struct connection *connection)
{
	unlink_from(&connection->host->idle, OF_HOST, connection);
	unlink_from(&c->idle, OF_ALL, connection);
	c->stats.idle--;
}

/* Takes out the oldest idle connection of all, for the caller to close. Under the lock. */
static struct connection *take_oldest(weft_http_client_t *c)
{
	struct connection *oldest = c->idle.oldest;

	if (oldest) {
		take_out(c, oldest);
		c->stats.open--;
		drop_host(c, oldest->host);
	}
	return oldest;
}

static void end_connection(struct connection *connection)
{
	if (connection->mux)
		weft__mux_close(connection->mux);
	if (connection->stream.fd >= 0)
		weft__stream_close(&connection->stream);
	free(connection);
}

/* Closes connections that have been idle for longer than `time`. */
static void close_older(weft_http_client_t *c, uint64_t time)
{
	uint64_t now = weft_now();
	struct connection *old;

	do {
		weft__client_lock(c);
		old = c->idle.oldest;
		old = old && now - old->idle_since >= time ? take_oldest(c) : NULL;
		weft__client_unlock(c);
		if (old)
			end_connection(old);
	} while (old);
}

void weft_http_client_close_idle(weft_http_client_t *client)
{
	close_older(client, 0);
}

/* ---- for requests ------------------------------------------------------------------------------------------------ */

void weft__client_count(uint64_t *counter, weft_http_client_t *client)
{
	weft__client_lock(client);
	++*counter;
	weft__client_unlock(client);
}

/* ---- news of a host ---------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void enqueue(struct host *h, struct seeker *s)
{
	s->queued = true;
	s->previous = s->first ? NULL : h->last;
	s->next = s->first ? h->first : NULL;
	*(s->previous ? &s->previous->next : &h->first) = s;
	*(s->next ? &s->next->previous : &h->last) = s;
}

/* Under the lock. */
static void dequeue(struct host *h, struct seeker *s)
{
	s->queued = false;
	*(s->previous ? &s->previous->next : &h->first) = s->next;
	*(s->next ? &s->next->previous : &h->last) = s->previous;
}

/* Under the lock. Wakes the first seekers, because there may be room on a connection. */
static void tell_news(struct host *h, unsigned count)
{
	struct seeker *s;

	while (count-- && (s = h->first)) {
		dequeue(h, s);
		weft_event_set(&s->news);
	}
}

/* Under the lock. All requests that wait for the end of a probe may continue. */
static void end_probe(weft_http_request_t *r)
{
	if (!r->probes)
		return;
	r->probes = r->host->probing = false;
	tell_news(r->host, UINT_MAX);
}

/* If the news did not end the wait, passes them to the next seeker. */
static void stop_seeking(void *seeker)
{
	struct seeker *s = seeker;
	struct host *h = s->request->host;
	weft_http_client_t *c = s->request->client;

	weft__client_lock(c);
	if (s->queued)
		dequeue(h, s);
	else if (!s->heard)
		tell_news(h, 1);
	weft__client_unlock(c);
}

/* ---- joining or opening a connection ----------------------------------------------------------------------------- */

static bool may_speak_h2(const weft_http_request_t *r)
{
	unsigned flags = r->client->config.flags;

	if (r->only_1 || atomic_load_explicit(&r->host->only_1, memory_order_relaxed))
		return false;
	return r->url.secure ? !(flags & WEFT_HTTP_ONLY_1) : flags & WEFT_HTTP_PRIOR_KNOWLEDGE;
}

/* Under the lock. */
static bool join_shared(weft_http_request_t *r)
{
	struct connection *connection = may_speak_h2(r) ? r->host->shared.newest : NULL;

	for (; connection; connection = connection->links[OF_HOST].older)
		if (!connection->closing && connection->users < connection->streams) {
			connection->users++;
			r->connection = connection;
			return true;
		}
	return false;
}

/* Under the lock. The connection takes over the request's permits; other requests may join it. */
static void share(weft_http_request_t *r)
{
	struct connection *connection = r->connection;

	r->host_permit = r->client_permit = false;
	connection->users = 1;
	push(&r->host->shared, OF_HOST, connection);
	if (connection->streams > 1)
		tell_news(r->host, connection->streams - 1);
}

static bool has_permit(weft_sem_t *room, bool *permit)
{
	*permit = *permit || !weft_sem_take_until(room, 0);
	return *permit;
}

/* Under the lock. True: the request has joined a connection, or has all permits. *room: the permit that it needs next;
 * NULL: none while another request dials. */
static bool find_place(weft_http_request_t *r, weft_sem_t **room, bool **permit)
{
	struct host *h = r->host;

	*room = NULL;
	if (join_shared(r))
		return true;
	if (h->probing)
		return false;
	*room = &h->room;
	*permit = &r->host_permit;
	if (has_permit(*room, *permit)) {
		*room = &r->client->room;
		*permit = &r->client_permit;
	}
	if (!has_permit(*room, *permit))
		return false;
	h->probing = r->probes = !h->old && may_speak_h2(r);
	return true;
}

/* Waits once for a connection or permits. 1: the request has them; 0: not yet; or a negative errno. */
static int seek_place(weft_http_request_t *r, bool first, uint64_t deadline)
{
	struct seeker s = {.request = r, .first = first};
	weft_case_t cases[2] = {{.event = &s.news}};
	bool found, *permit = NULL;
	int done;

	weft__client_lock(r->client);
	found = find_place(r, &cases[1].sem, &permit);
	if (!found)
		enqueue(r->host, &s);
	weft__client_unlock(r->client);
	if (found)
		return 1;
	weft_defer(stop_seeking, &s);
	done = weft_select_until(cases, 2, deadline);
	s.heard = done == 0;
	if (done == 1)
		*permit = true;
	return done < 0 ? done : 0;
}

static int get_place(weft_http_request_t *r)
{
	uint64_t deadline = weft__client_until(r, r->client->config.wait_time);
	bool first = false;
	int found;

	if (!r->host)
		r->host = use_host(r->client, weft__url_origin(&r->url));
	if (!r->host)
		return -ENOMEM;
	do {
		found = seek_place(r, first, deadline);
		first = true; /* a request that has waited stays before later requests */
	} while (!found);
	return found < 0 ? found : 0;
}

/* Does the server send nothing at present? It sends only if it closes the connection, or misbehaves. */
static bool is_silent(struct connection *connection)
{
	int ready = weft__stream_wait(&connection->stream, 0);

	return ready == 0 || ready == -ETIMEDOUT;
}

static bool is_usable(const weft_http_request_t *r)
{
	struct connection *c = r->connection;

	return c->mux ? may_speak_h2(r) && weft__mux_is_usable(c->mux)
		      : is_silent(c) || WEFT_CANARY(http_client_trusts_idle);
}

/* Gives the request the newest idle connection of its host. */
static bool take_newest(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;
	struct connection *newest;

	weft__client_lock(c);
	newest = r->host->idle.newest;
	if (newest)
		take_out(c, newest);
	weft__client_unlock(c);
	r->connection = newest;
	return newest;
}

static void close_connection(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;

	if (!r->connection)
		return;
	weft__client_lock(c);
	c->stats.open--;
	weft__client_unlock(c);
	end_connection(r->connection);
	r->connection = NULL;
}

/* Counts a new connection. Closes idle connections if there would be too many with it. */
static bool add_connection(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;
	struct connection *connection = calloc(1, sizeof *connection), *old;

	if (!connection)
		return false;
	connection->stream.fd = -1;
	connection->host = r->host;
	do {
		weft__client_lock(c);
		old = c->stats.open >= c->config.connections ? take_oldest(c) : NULL;
		if (!old) {
			c->stats.open++;
			c->stats.dialed++;
		}
		weft__client_unlock(c);
		if (old)
			end_connection(old);
	} while (old);
	r->connection = connection;
	return true;
}

/* Finds the authorities for https: the configuration's, or else the system's, which the first request opens. */
static int find_tls(weft_http_client_t *c, weft_http_tls_t **tls)
{
	weft_http_tls_t *made;
	int error;

	weft__client_lock(c);
	*tls = c->config.tls ? c->config.tls : c->system_tls;
	weft__client_unlock(c);
	if (*tls)
		return 0;
	error = weft_http_tls_client_open(&made, NULL, NULL);
	if (error)
		return error;
	weft__client_lock(c);
	*tls = c->system_tls ? c->system_tls : made; /* another request may have been faster */
	c->system_tls = *tls;
	weft__client_unlock(c);
	if (*tls != made)
		weft_http_tls_close(made);
	return 0;
}

/* The protocols that the client offers by TLS. */
static const char *protocols_of(const weft_http_request_t *r)
{
	return may_speak_h2(r) && weft__h2_is_available() ? "h2,http/1.1" : "http/1.1";
}

static int begin_protocol(weft_http_request_t *r, weft_http_tls_t *tls, uint64_t deadline)
{
	struct connection *connection = r->connection;
	struct stream *stream = &connection->stream;
	int error = tls ? weft__tls_connect(stream, stream->fd, tls, r->url.name, protocols_of(r), deadline) : 0;

	if (error)
		return error;
	if (tls ? !strcmp(weft__tls_alpn(stream), "h2") : may_speak_h2(r))
		return weft__mux_open(r->client, connection, deadline);
	return 0;
}

static int dial(weft_http_request_t *r)
{
	uint64_t deadline = weft__client_until(r, r->client->config.connect_time);
	weft_http_tls_t *tls = NULL;
	int fd, error = r->url.secure ? find_tls(r->client, &tls) : 0;

	if (error)
		return error;
	if (!add_connection(r))
		return -ENOMEM;
	fd = weft_dial_until(r->url.name, r->url.port, deadline);
	if (fd < 0)
		return fd;
	r->connection->stream.fd = fd;
	return begin_protocol(r, tls, deadline);
}

/* The server closed a reused connection, so its other idle connections are probably closed, too: closes them. */
static void close_idle_of_host(weft_http_request_t *r)
{
	while (take_newest(r))
		close_connection(r);
}

static void give_permits(weft_http_request_t *r)
{
	if (r->client_permit)
		weft_sem_give(&r->client->room, 1);
	if (r->host_permit)
		weft_sem_give(&r->host->room, 1);
	r->client_permit = r->host_permit = false;
}

/* The request has a connection. It needs no permits for a shared connection, but may have taken permits before it
 * joined. */
static void use_connection(weft_http_request_t *r)
{
	weft__client_lock(r->client);
	r->host->old = !r->connection->mux;
	if (r->connection->mux && !r->connection->users)
		share(r);
	if (r->connection->mux) {
		r->protocol = &weft__client_http2;
		give_permits(r);
	}
	end_probe(r);
	weft__client_unlock(r->client);
}

static bool use_idle(weft_http_request_t *r)
{
	while (take_newest(r)) {
		if (is_usable(r))
			return true;
		close_connection(r);
	}
	return false;
}

/* Gets an idle connection, or a new one. */
static int get_connection(weft_http_request_t *r, bool fresh)
{
	close_older(r->client, r->client->config.idle_time);
	if (fresh)
		close_idle_of_host(r);
	r->reused = use_idle(r);
	return r->reused ? 0 : dial(r);
}

int weft__client_connect(weft_http_request_t *r, bool fresh)
{
	int error;

	r->protocol = &weft__client_http1; /* until TLS has chosen */
	error = get_place(r);
	r->reused = r->connection;
	if (!error && !r->connection)
		error = get_connection(r, fresh);
	if (error)
		weft__client_release(r, false);
	else
		use_connection(r);
	return error;
}

/* Under the lock. The last user of a shared connection makes it idle. True: it is to be closed instead. */
static bool leave_shared(weft_http_client_t *c, struct connection *connection)
{
	struct host *h = connection->host;

	if (--connection->users) {
		if (!connection->closing && connection->users < connection->streams)
			tell_news(h, 1);
		return false;
	}
	unlink_from(&h->shared, OF_HOST, connection);
	if (connection->closing)
		c->stats.open--;
	else
		add_idle(c, connection);
	weft_sem_give(&c->room, 1);
	weft_sem_give(&h->room, 1);
	return connection->closing;
}

void weft__client_set_streams(struct connection *connection, weft_http_client_t *c, unsigned streams)
{
	weft__client_lock(c);
	if (connection->users && streams > connection->streams)
		tell_news(connection->host, streams - connection->streams);
	connection->streams = streams;
	weft__client_unlock(c);
}

void weft__client_set_closing(struct connection *connection, weft_http_client_t *c, bool only_1)
{
	weft__client_lock(c);
	connection->closing = true;
	if (only_1 && !connection->host->only_1 && c->remembered < REMEMBERED) {
		/* Relaxed: a request that does not see it uses HTTP/2, and the server resets it with
		 * HTTP_1_1_REQUIRED. */
		atomic_store_explicit(&connection->host->only_1, true, memory_order_relaxed);
		c->remembered++;
	}
	weft__client_unlock(c);
}

/* Under the lock. */
static void drop_user(weft_http_request_t *r, struct host *host)
{
	end_probe(r);
	r->host = NULL;
	host->users--;
	drop_host(r->client, host);
}

static void release_shared(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;
	struct connection *connection = r->connection;
	uint64_t now = weft_now();
	bool closes;

	r->connection = NULL;
	weft__client_lock(c);
	connection->idle_since = now;
	closes = leave_shared(c, connection);
	drop_user(r, r->host);
	weft__client_unlock(c);
	if (closes)
		end_connection(connection);
}

void weft__client_release(weft_http_request_t *r, bool keep)
{
	weft_http_client_t *c = r->client;
	struct host *host = r->host;

	if (!host)
		return;
	if (r->connection && r->protocol == &weft__client_http2) {
		release_shared(r);
		return;
	}
	if (keep && r->connection)
		put_idle(c, r->connection);
	else
		close_connection(r);
	r->connection = NULL;
	give_permits(r);
	weft__client_lock(c);
	drop_user(r, host);
	weft__client_unlock(c);
}
