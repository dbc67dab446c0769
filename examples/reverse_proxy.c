/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * reverse_proxy.c: answers requests by asking other servers.
 *
 *   ./weft run examples/reverse_proxy.c -- [PORT] URL…
 *   ./weft run examples/reverse_proxy.c -- 8080 http://127.0.0.1:9000 http://127.0.0.1:9001
 *
 * Requests go to the servers in turn; a server that cannot be reached is skipped. Bodies are forwarded as they arrive,
 * in both directions at the same time, and only as fast as the other side reads. SIGINT and SIGTERM end the program
 * when the requests in progress are answered, or after 10 seconds.
 */
#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <weft/http.h>
#include <weft/http_client.h>

enum { PIECE = 8192, FIELDS = 8192 /* maximum size of a head's fields in bytes */ };

static struct proxy {
	weft_http_client_t *client;
	weft_http_server_t *server;
	char **urls; /* of the backend servers */
	int count;
	_Atomic unsigned turn;
	sigset_t signals;
} proxy;

/* ---- fields ------------------------------------------------------------------------------------------------------ */

/* Returns whether `name` is a word of the comma-separated list. */
static bool is_listed(weft_http_text_t list, weft_http_text_t name)
{
	const char *at = list.data, *end = at + list.length;
	size_t length;

	for (; at && at < end; at += length + 1) {
		for (length = 0; at + length < end && !strchr(", \t", at[length]); length++)
			;
		if (length == name.length && !strncasecmp(at, name.data, length))
			return true;
	}
	return false;
}

/* RFC 9110, 7.6.1: fields of one connection, and what this program adds. Fields with names that are too long are
 * dropped, too. */
static bool is_dropped(weft_http_text_t name, weft_http_text_t connection, const char *words)
{
	return name.length > 255 || is_listed(connection, name) ||
	       is_listed((weft_http_text_t){words, strlen(words)}, name);
}

static char *copy(weft_http_text_t text, char *to, size_t size)
{
	snprintf(to, size, "%.*s", (int)text.length, text.data ? text.data : "");
	return to;
}

static void add_fields(weft_http_request_t *r, const weft_http_t *http)
{
	weft_http_text_t name, value, connection = weft_http_header(http, "Connection");
	const weft_address_t *from = weft_http_peer(http);
	char n[256], v[FIELDS + 100], peer[64];

	for (unsigned i = 0; weft_http_header_at(http, i, &name, &value); i++)
		if (!is_dropped(name, connection, "host,proxy-connection,x-forwarded-for"))
			weft_http_request_add_header(r, copy(name, n, sizeof n), copy(value, v, sizeof v));
	if (getnameinfo((const struct sockaddr *)&from->address, from->size, peer, sizeof peer, NULL, 0,
			NI_NUMERICHOST))
		strcpy(peer, "unknown");
	value = weft_http_header(http, "X-Forwarded-For");
	snprintf(v, sizeof v, value.data ? "%.*s, %s" : "%.*s%s", (int)value.length, value.data ? value.data : "",
		 peer);
	weft_http_request_add_header(r, "X-Forwarded-For", v);
	value = weft_http_header(http, "Host");
	snprintf(v, sizeof v, strchr(peer, ':') ? "for=\"[%s]\";host=\"%.*s\"" : "for=%s;host=\"%.*s\"", peer,
		 (int)value.length, value.data ? value.data : "");
	weft_http_request_add_header(r, "Forwarded", v);
	weft_http_request_add_header(r, "Via", "1.1 weft");
}

static void copy_fields(weft_http_t *http, const weft_http_request_t *r)
{
	weft_http_text_t name, value, connection = weft_http_response_header(r, "Connection");
	char n[256], v[FIELDS + 1];

	for (unsigned i = 0; weft_http_response_header_at(r, i, &name, &value); i++)
		if (!is_dropped(name, connection, "keep-alive,proxy-connection,te,trailer,upgrade"))
			weft_http_add_header(http, copy(name, n, sizeof n), copy(value, v, sizeof v));
}

/* ---- an exchange ------------------------------------------------------------------------------------------------- */

struct exchange {
	weft_http_t *http;
	weft_http_request_t *request; /* to a backend server */
	bool begun;		      /* whether the response was begun */
	char data[PIECE];	      /* a piece of the request's body */
	ssize_t length;
};

static void inform(weft_http_request_t *r, int status, void *exchange)
{
	struct exchange *x = exchange;

	copy_fields(x->http, r);
	weft_http_inform(x->http, status); /* it refuses 100, because this server sends that itself */
}

/* Forwards a piece of the response. Returns its length; 0: the response is complete; or a negative errno. */
static ssize_t give_piece(struct exchange *x)
{
	char data[PIECE], n[256], v[FIELDS + 1];
	weft_http_text_t name, value;
	int status = weft_http_response(x->request);
	ssize_t length;

	if (status < 0)
		return status;
	if (!x->begun) {
		copy_fields(x->http, x->request);
		weft_http_set_status(x->http, status);
		if (weft_http_response_length(x->request) != WEFT_NEVER)
			weft_http_set_length(x->http, weft_http_response_length(x->request));
		x->begun = true;
	}
	length = weft_http_response_read(x->request, data, sizeof data);
	for (unsigned i = 0; !length && weft_http_response_trailer_at(x->request, i, &name, &value); i++)
		weft_http_add_trailer(x->http, copy(name, n, sizeof n), copy(value, v, sizeof v));
	if (length < 0 || weft_http_write(x->http, data, (size_t)length) != length)
		return length < 0 ? length : -EPIPE;
	return length || weft_http_flush(x->http) < 0 ? length : 0;
}

/* doc: begin give_bodies */
/* Forwards both bodies. If the server stops reading, it may be answering already, so the response is read, too. */
static ssize_t give_bodies(struct exchange *x, size_t sent)
{
	ssize_t n = 1;
	int error;

	while (n > 0 && x->length > 0) {
		if (sent == (size_t)x->length) {
			x->length = weft_http_read(x->http, x->data, sizeof x->data);
			sent = 0;
			continue;
		}
		n = weft_http_request_write(x->request, x->data + sent, (size_t)x->length - sent);
		if (n < 0)
			return n;
		sent += (size_t)n;
		n = sent < (size_t)x->length ? give_piece(x) : 1;
	}
	while (n > 0 && x->length == 0 && (error = weft_http_request_finish(x->request)) != 0)
		n = error == -EINPROGRESS ? give_piece(x) : error;
	while (n > 0 && x->length == 0)
		n = give_piece(x);
	return n;
}
/* doc: end give_bodies */

/* Begins the request to one server: sends its head and the first piece of its body, or reads the response. */
static ssize_t begin(struct exchange *x, const char *url)
{
	weft_http_text_t target = weft_http_target(x->http), length = weft_http_header(x->http, "Content-Length");
	char whole[2 * FIELDS];
	int error;

	snprintf(whole, sizeof whole, "%.*s%.*s", (int)strlen(url) - (url[strlen(url) - 1] == '/'), url,
		 (int)target.length, target.data);
	weft_http_request_close(x->request); /* the request to the server tried before */
	x->request = NULL;
	error = weft_http_request_open(proxy.client, weft_http_method(x->http), whole, &x->request);
	if (error)
		return error;
	add_fields(x->request, x->http);
	weft_http_request_on_inform(x->request, inform, x);
	if (x->length == 0)
		return weft_http_response(x->request);
	if (length.data)
		weft_http_request_set_length(x->request, strtoull(length.data, NULL, 10));
	return weft_http_request_write(x->request, x->data, (size_t)x->length);
}

static void close_request(void *exchange)
{
	weft_http_request_close(((struct exchange *)exchange)->request);
}

/* Reports an error of the backend servers. If the response was begun it cannot carry an error: its connection is
 * closed. */
static void forward(weft_http_t *http, void *unused)
{
	struct exchange x = {.http = http};
	unsigned turn = proxy.turn++;
	ssize_t n = -ENOENT;

	(void)unused;
	x.length = weft_http_read(http, x.data, sizeof x.data);
	if (x.length < 0)
		return; /* the library answers */
	weft_defer(close_request, &x);
	for (int i = 0; i < proxy.count && n < 0; i++) {
		n = begin(&x, proxy.urls[(turn + (unsigned)i) % (unsigned)proxy.count]);
		if (n != -ECONNREFUSED && n != -EHOSTUNREACH && n != -ENETUNREACH && n != -ENOENT)
			break;
	}
	if (n >= 0)
		n = give_bodies(&x, x.length ? (size_t)n : 0);
	if (n >= 0 || x.length < 0)
		return;
	if (x.begun)
		weft_task_fail((int)n);
	weft_http_reply(http, n == -ETIMEDOUT ? 504 : n == -EINVAL ? 400 : 502, NULL, NULL, 0);
}

/* ---- the program ------------------------------------------------------------------------------------------------- */

static void *stop(void *unused)
{
	weft_sigwait(&proxy.signals, NULL);
	weft_http_stop(proxy.server, weft_now() + 10 * 1000000000ull);
	return unused;
}

static void *run(void *port)
{
	weft_http_config_t config = {.body = UINT64_MAX, .header_bytes = FIELDS};
	weft_http_client_config_t behind = {.flags = WEFT_HTTP_NO_REDIRECTS, .header_bytes = FIELDS};
	int listener = weft_listen("127.0.0.1", (unsigned)atoi(port), 0, 0);
	int error = listener < 0 ? listener : weft_http_open(&proxy.server, &config);

	WEFT_SCOPE(scope);
	error = error ? error : weft_http_client_open(&proxy.client, &behind);
	error = error ? error : weft_http_route(proxy.server, "* /*path", forward, NULL);
	error = error ? error : weft_scope_spawn(&scope, stop, NULL);
	if (!error)
		printf("listening at 127.0.0.1:%d\n", weft_port(listener));
	fflush(stdout);
	error = error ? error : weft_http_serve(proxy.server, listener);
	if (error) {
		fprintf(stderr, "reverse_proxy: port %s: %s\n", (char *)port, strerror(-error));
		weft_task_fail(error);
	}
	weft_scope_wait(&scope);
	weft_close(listener);
	weft_http_close(proxy.server);
	weft_http_client_close(proxy.client);
	return NULL;
}

int main(int argc, char **argv)
{
	bool has_port = argc > 1 && !strchr(argv[1], ':');

	proxy.urls = argv + 1 + has_port;
	proxy.count = argc - 1 - has_port;
	if (proxy.count < 1) {
		fprintf(stderr, "usage: reverse_proxy [PORT] URL...\n");
		return 2;
	}
	sigemptyset(&proxy.signals);
	sigaddset(&proxy.signals, SIGINT);
	sigaddset(&proxy.signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &proxy.signals, NULL);
	return weft_rt_run(NULL, run, has_port ? argv[1] : "8080", NULL) != 0;
}
