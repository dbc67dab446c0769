/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For libFuzzer: a server, and one client that sends an input's bytes and receives until the server closes
 * the connection. */
#ifndef WEFT_TESTS_HTTP_FUZZ_SERVER_H
#define WEFT_TESTS_HTTP_FUZZ_SERVER_H

#include "fuzz.h"

#include <weft/http.h>

static struct answer {
	unsigned char data[8 * FUZZ_MOST];
	size_t length;
} answer;

struct service {
	weft_http_server_t *server;
	int fd;
};

static void hello(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", "hello\n", 6);
}

static void echo(weft_http_t *http, void *context)
{
	weft_http_text_t name, value;
	char data[500];
	ssize_t n;

	(void)context;
	for (unsigned i = 0; weft_http_header_at(http, i, &name, &value); i++)
		weft_http_write(http, value.data, value.length);
	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		if (weft_http_write(http, data, (size_t)n) != n)
			return;
	value = weft_http_trailer(http, "x-sum");
	weft_http_query_value(http, "a", data, sizeof data);
	weft_http_write(http, value.data, value.length);
	weft_http_add_trailer(http, "X-End", "yes");
}

static void *serve(void *service)
{
	const struct service *s = service;

	weft_http_serve_connection(s->server, s->fd);
	return NULL;
}

static void *send_all(void *fd)
{
	(void)fuzz_send(*(int *)fd, 0, fuzz.length);
	weft_shutdown(*(int *)fd, SHUT_WR);
	return NULL;
}

static void *exchange(void *pass)
{
	const weft_http_config_t config = {.body = 10000, .headers = 20, .streams = 10};
	struct service service;
	weft_scope_t scope;
	int fds[2];
	ssize_t n;

	CHECK(!weft_http_open(&service.server, &config));
	CHECK(!weft_http_route(service.server, "GET /", hello, NULL));
	CHECK(!weft_http_route(service.server, "* /:name", echo, NULL));
	CHECK(!weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	service.fd = fds[1];
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serve, &service));
	CHECK(!weft_scope_spawn(&scope, send_all, &fds[0]));
	answer.length = 0;
	do {
		n = weft_read(fds[0], answer.data + answer.length, sizeof answer.data - answer.length);
		answer.length += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	CHECK(!weft_scope_wait(&scope));
	weft_close(fds[0]);
	CHECK(!weft_http_stop(service.server, weft_now() + 100 * SECOND));
	weft_http_close(service.server);
	return pass;
}

#endif
