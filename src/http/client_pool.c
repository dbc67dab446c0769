/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The connections of a client. Permits are semaphores, so that requests wait in the order of their arrival; the lists
 * are under one lock, which is held for a few instructions. Idle connections are closed outside of it.
 */
#include <errno.h>
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

/* The host of an origin, with one user more. NULL: no memory. */
static struct host *use_host(weft_http_client_t *c, weft_http_text_t origin)
{
	struct host **bucket = bucket_of(c, origin), *h;

	pthread_mutex_lock(&c->lock);
	for (h = *bucket; h; h = h->next)
		if (h->length == origin.length && !memcmp(h->origin, origin.data, origin.length))
			break;
	if (!h && (h = make_host(c, origin))) {
		h->next = *bucket;
		*bucket = h;
	}
	if (h)
		h->users++;
	pthread_mutex_unlock(&c->lock);
	return h;
}

/* Under the lock. */
static void drop_host(weft_http_client_t *c, struct host *h)
{
	struct host **at;

	if (h->users || h->idle.newest)
		return;
	for (at = bucket_of(c, (weft_http_text_t){h->origin, h->length}); *at != h; at = &(*at)->next)
		;
	*at = h->next;
	free(h);
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

static void put_idle(weft_http_client_t *c, struct connection *connection)
{
	connection->idle_since = weft_now();
	pthread_mutex_lock(&c->lock);
	push(&connection->host->idle, OF_HOST, connection);
	push(&c->idle, OF_ALL, connection);
	c->stats.idle++;
	pthread_mutex_unlock(&c->lock);
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
		pthread_mutex_lock(&c->lock);
		old = c->idle.oldest;
		old = old && now - old->idle_since >= time ? take_oldest(c) : NULL;
		pthread_mutex_unlock(&c->lock);
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
	pthread_mutex_lock(&client->lock);
	++*counter;
	pthread_mutex_unlock(&client->lock);
}

static int take_permit(weft_sem_t *room, bool *permit, uint64_t deadline)
{
	int error = *permit ? 0 : weft_sem_take_until(room, deadline);

	if (!error)
		*permit = true;
	return error;
}

static int take_permits(weft_http_request_t *r)
{
	uint64_t deadline = weft__client_until(r, r->client->config.wait_time);
	int error;

	if (!r->host)
		r->host = use_host(r->client, weft__url_origin(&r->url));
	if (!r->host)
		return -ENOMEM;
	error = take_permit(&r->host->room, &r->host_permit, deadline);
	return error ? error : take_permit(&r->client->room, &r->client_permit, deadline);
}

/* The server sends nothing now, unless it closes the connection, or misbehaves. */
static bool is_silent(struct connection *connection)
{
	int ready = weft__stream_wait(&connection->stream, 0);

	return ready == 0 || ready == -ETIMEDOUT;
}

/* Gives the request the newest idle connection of its host. */
static bool take_newest(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;
	struct connection *newest;

	pthread_mutex_lock(&c->lock);
	newest = r->host->idle.newest;
	if (newest)
		take_out(c, newest);
	pthread_mutex_unlock(&c->lock);
	r->connection = newest;
	return newest;
}

static void close_connection(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;

	if (!r->connection)
		return;
	pthread_mutex_lock(&c->lock);
	c->stats.open--;
	pthread_mutex_unlock(&c->lock);
	end_connection(r->connection);
	r->connection = NULL;
}

/* Counts a new connection. Idle ones are closed if they would be too many with it. */
static bool add_connection(weft_http_request_t *r)
{
	weft_http_client_t *c = r->client;
	struct connection *connection = calloc(1, sizeof *connection), *old;

	if (!connection)
		return false;
	connection->stream.fd = -1;
	connection->host = r->host;
	do {
		pthread_mutex_lock(&c->lock);
		old = c->stats.open >= c->config.connections ? take_oldest(c) : NULL;
		if (!old) {
			c->stats.open++;
			c->stats.dialed++;
		}
		pthread_mutex_unlock(&c->lock);
		if (old)
			end_connection(old);
	} while (old);
	r->connection = connection;
	return true;
}

/* An https connection trusts the configuration's authorities, or else the system's, which the first one opens. */
static int find_tls(weft_http_client_t *c, weft_http_tls_t **tls)
{
	weft_http_tls_t *made;
	int error;

	pthread_mutex_lock(&c->lock);
	*tls = c->config.tls ? c->config.tls : c->system_tls;
	pthread_mutex_unlock(&c->lock);
	if (*tls)
		return 0;
	error = weft_http_tls_client_open(&made, NULL, NULL);
	if (error)
		return error;
	pthread_mutex_lock(&c->lock);
	*tls = c->system_tls ? c->system_tls : made; /* another request may have been faster */
	c->system_tls = *tls;
	pthread_mutex_unlock(&c->lock);
	if (*tls != made)
		weft_http_tls_close(made);
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
	return tls ? weft__tls_connect(&r->connection->stream, fd, tls, r->url.name, "http/1.1", deadline) : 0;
}

/* Why a request needs a new connection: those that are idle are no better than the one that was closed. */
static void close_idle_of_host(weft_http_request_t *r)
{
	while (take_newest(r))
		close_connection(r);
}

int weft__client_connect(weft_http_request_t *r, bool fresh)
{
	int error = take_permits(r);

	if (error)
		return error;
	close_older(r->client, r->client->config.idle_time);
	if (fresh)
		close_idle_of_host(r);
	r->reused = true;
	while (take_newest(r)) {
		if (is_silent(r->connection) || WEFT_CANARY(http_client_trusts_idle))
			return 0;
		close_connection(r);
	}
	r->reused = false;
	error = dial(r);
	if (error)
		weft__client_release(r, false);
	return error;
}

void weft__client_release(weft_http_request_t *r, bool keep)
{
	weft_http_client_t *c = r->client;
	struct host *host = r->host;

	if (!host)
		return;
	if (keep && r->connection)
		put_idle(c, r->connection);
	else
		close_connection(r);
	r->connection = NULL;
	if (r->client_permit)
		weft_sem_give(&c->room, 1);
	if (r->host_permit)
		weft_sem_give(&host->room, 1);
	r->client_permit = r->host_permit = false;
	r->host = NULL;
	pthread_mutex_lock(&c->lock);
	host->users--;
	drop_host(c, host);
	pthread_mutex_unlock(&c->lock);
}
