/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Clients, and the beginning and the end of requests. client_*.c have the steps in between. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "http/client.h"

#define SECOND 1000000000ull

enum {
	REQUEST_FLAGS = WEFT_HTTP_NO_REDIRECTS | WEFT_HTTP_EXPECT,
	CLIENT_FLAGS = REQUEST_FLAGS | WEFT_HTTP_PRIOR_KNOWLEDGE | WEFT_HTTP_ONLY_1
};

/* ---- clients ----------------------------------------------------------------------------------------------------- */

static void set_defaults(weft_http_client_config_t *c)
{
#define DEFAULT(field, value) ((field) = (field) ? (field) : (value))
	DEFAULT(c->connections, 256);
	DEFAULT(c->host_connections, 16);
	DEFAULT(c->streams, 100);
	DEFAULT(c->redirects, 10);
	DEFAULT(c->headers, 100);
	DEFAULT(c->header_bytes, 65536);
	DEFAULT(c->body, WEFT_NEVER);
	DEFAULT(c->wait_time, 30 * SECOND);
	DEFAULT(c->connect_time, 10 * SECOND);
	DEFAULT(c->header_time, 30 * SECOND);
	DEFAULT(c->read_time, 30 * SECOND);
	DEFAULT(c->write_time, 30 * SECOND);
	DEFAULT(c->idle_time, 60 * SECOND);
	DEFAULT(c->continue_time, 1 * SECOND);
#undef DEFAULT
}

static bool is_valid(const weft_http_client_config_t *c)
{
	return !(c->flags & ~(unsigned)CLIENT_FLAGS) &&
	       (!c->user_agent || weft__is_field_value(c->user_agent, strlen(c->user_agent)));
}

int weft_http_client_open(weft_http_client_t **client, const weft_http_client_config_t *config)
{
	weft_http_client_t *c;

	if (!client || (config && !is_valid(config)))
		return -EINVAL;
	c = calloc(1, sizeof *c);
	if (!c)
		return -ENOMEM;
	if (config)
		c->config = *config;
	set_defaults(&c->config);
	c->room = (weft_sem_t)WEFT_SEM(c->config.connections);
	*client = c;
	return 0;
}

int weft_http_client_close(weft_http_client_t *client)
{
	unsigned requests;

	if (!client)
		return 0;
	weft__client_lock(client);
	requests = client->requests;
	weft__client_unlock(client);
	if (requests)
		return -EBUSY;
	weft_http_client_close_idle(client);
	weft__client_forget_hosts(client);
	weft_http_tls_close(client->system_tls);
	free(client);
	return 0;
}

void weft_http_client_stats(weft_http_client_t *client, weft_http_client_stats_t *stats)
{
	weft__client_lock(client);
	*stats = client->stats;
	weft__client_unlock(client);
}

/* ---- requests ---------------------------------------------------------------------------------------------------- */

static bool is_method(const char *method)
{
	return weft__is_token(method, strlen(method)) && strlen(method) < sizeof((weft_http_request_t *)0)->method &&
	       strcmp(method, "CONNECT") != 0;
}

int weft_http_request_open(weft_http_client_t *client, const char *method, const char *url,
			   weft_http_request_t **request)
{
	weft_http_request_t *r;
	int error;

	if (!client || !method || !url || !request || !is_method(method))
		return -EINVAL;
	r = calloc(1, sizeof *r);
	if (!r)
		return -ENOMEM;
	error = weft__url_parse(&r->url, (weft_http_text_t){url, strlen(url)});
	if (error) {
		free(r);
		return error;
	}
	memcpy(r->method, method, strlen(method));
	r->client = client;
	r->deadline = WEFT_NEVER;
	r->flags = client->config.flags & REQUEST_FLAGS;
	weft__client_reset_response(r);
	weft__client_lock(client);
	client->requests++;
	weft__client_unlock(client);
	*request = r;
	return 0;
}

void weft_http_request_close(weft_http_request_t *r)
{
	weft_http_client_t *client;

	if (!r)
		return;
	client = r->client;
	weft__client_let_go(r);
	weft__text_free(&r->fields);
	weft__text_free(&r->out);
	weft__text_free(&r->trailer);
	free(r->head.data);
	free(r->body.data);
	free(r->fields_at);
	free(r->url.text);
	free(r->next.text);
	free(r);
	weft__client_lock(client);
	client->requests--;
	weft__client_unlock(client);
}

static bool is_ours(const char *name)
{
	static const char *const names[] = {"content-length", "transfer-encoding",
					    "connection",     "expect",
					    "keep-alive",     "te",
					    "trailer",	      "upgrade"};
	size_t i;

	for (i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return false;
}

int weft_http_request_add_header(weft_http_request_t *r, const char *name, const char *value)
{
	struct text *t = &r->fields;
	size_t length = t->length;

	if (r->begun)
		return -EALREADY;
	if (!name || !value || !weft__is_token(name, strlen(name)) || is_ours(name) ||
	    !weft__is_field_value(value, strlen(value)))
		return -EINVAL;
	if (weft__text_add(t, name, strlen(name)) && weft__text_add(t, ": ", 2) &&
	    weft__text_add(t, value, strlen(value)) && weft__text_add(t, "\r\n", 2))
		return 0;
	t->length = length;
	return -ENOMEM;
}

int weft_http_request_set_body(weft_http_request_t *r, const void *data, size_t length)
{
	if (r->begun)
		return -EALREADY;
	r->kind = IN_MEMORY;
	r->data = data;
	r->length = length;
	return 0;
}

int weft_http_request_set_length(weft_http_request_t *r, uint64_t length)
{
	if (r->begun)
		return -EALREADY;
	if (r->kind == IN_MEMORY)
		return -EINVAL;
	r->kind = WITH_LENGTH;
	r->length = length;
	return 0;
}

int weft_http_request_set_flags(weft_http_request_t *r, unsigned flags)
{
	if (r->begun)
		return -EALREADY;
	if (flags & ~(unsigned)REQUEST_FLAGS)
		return -EINVAL;
	r->flags = flags;
	return 0;
}

void weft_http_request_set_deadline(weft_http_request_t *r, uint64_t deadline)
{
	r->deadline = deadline;
}

void weft_http_request_on_inform(weft_http_request_t *r, weft_http_inform_t *inform, void *context)
{
	r->inform = inform;
	r->inform_context = context;
}

/* ---- the exchange ------------------------------------------------------------------------------------------------ */

/* RFC 9110, 9.2.2. */
static bool is_idempotent(const char *method)
{
	static const char *const methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
	size_t i;

	for (i = 0; i < sizeof methods / sizeof *methods; i++)
		if (!strcmp(method, methods[i]))
			return true;
	return false;
}

/* May a failed request be repeated? The server closed an idle connection while the request was in transit, or has
 * reported that it did not process the request, or requires HTTP/1.1. A closed connection does not prove that the
 * server did not process the request. */
static bool may_be_repeated(const weft_http_request_t *r, int error)
{
	if ((error != -ECONNRESET && error != -EPIPE && error != -EAGAIN) || r->started ||
	    WEFT_CANARY(http_client_sends_once))
		return false;
	if (r->wants_1)
		return !r->only_1 && is_idempotent(r->method);
	return !r->repeated && (r->refused || (r->reused && is_idempotent(r->method)));
}

/* Connects, and sends a request without a body, or with a body in memory. */
static int send_whole(weft_http_request_t *r)
{
	int error;

	r->sent = r->last = false;
	r->write_error = 0;
	r->chunk = r->written = 0;
	weft__client_reset_response(r);
	error = weft__client_connect(r, r->repeated && !r->refused);
	r->refused = r->wants_1 = false;
	return error ? error : weft__client_send(r);
}

static int attempt(weft_http_request_t *r)
{
	int error = r->connection ? 0 : send_whole(r);

	if (error || r->final)
		return error;
	return weft__client_receive_head(r, weft__client_until(r, r->client->config.header_time));
}

static int exchange(weft_http_request_t *r)
{
	bool streams = r->connection;
	int error = attempt(r);

	while (error && !streams && may_be_repeated(r, error)) {
		r->error = 0;
		r->repeated = true;
		r->only_1 |= r->wants_1;
		weft__client_let_go(r);
		weft__client_count(&r->client->stats.repeated, r->client);
		error = attempt(r);
	}
	return error;
}

/* Is a body that the caller sends incomplete? */
static bool is_unfinished(const weft_http_request_t *r)
{
	if (r->sent || r->final || r->write_error)
		return false;
	return r->connection || (r->kind == WITH_LENGTH && r->length);
}

int weft_http_response(weft_http_request_t *r)
{
	int next;

	if (r->error || r->answered)
		return r->error ? r->error : r->status;
	if (is_unfinished(r))
		return -EINPROGRESS;
	r->begun = true;
	do {
		next = exchange(r);
		if (!next)
			next = weft__client_redirect(r);
	} while (next > 0);
	if (next < 0)
		return r->error = next;
	r->answered = true;
	if (r->complete && r->sent)
		weft__client_let_go(r);
	return r->status;
}

unsigned weft_http_response_version(const weft_http_request_t *r)
{
	return r->version;
}

uint64_t weft_http_response_length(const weft_http_request_t *r)
{
	return r->announced;
}

const char *weft_http_response_url(const weft_http_request_t *r)
{
	return r->url.text;
}

/* ---- in one call ------------------------------------------------------------------------------------------------- */

static ssize_t read_answer(weft_http_request_t *r, void *data, size_t size, int *status)
{
	int answer = weft_http_response(r);

	if (answer < 0)
		return answer;
	if (status)
		*status = answer;
	return weft_http_response_read_all(r, data, size);
}

ssize_t weft_http_get(weft_http_client_t *client, const char *url, void *data, size_t size, int *status)
{
	weft_http_request_t *r;
	int error = weft_http_request_open(client, "GET", url, &r);

	if (error)
		return error;
	weft_defer(weft_http_request_close, r);
	return read_answer(r, data, size, status);
}

ssize_t weft_http_post(weft_http_client_t *client, const char *url, const char *type, const void *body, size_t length,
		       void *data, size_t size, int *status)
{
	weft_http_request_t *r;
	int error = weft_http_request_open(client, "POST", url, &r);

	if (error)
		return error;
	weft_defer(weft_http_request_close, r);
	weft_http_request_set_body(r, body, length);
	if (type)
		error = weft_http_request_add_header(r, "Content-Type", type);
	return error ? error : read_answer(r, data, size, status);
}
