/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For libFuzzer: a simulated world with a server and one client, which sends the bytes of an input in pieces and
 * receives until the server closes the connection. A deadlock, a livelock and a task that is left behind are failures
 * of weft_simulate.
 */
#ifndef WEFT_TESTS_HTTP_FUZZ_H
#define WEFT_TESTS_HTTP_FUZZ_H

#include "../sched/check.h"

#include <signal.h>
#include <sys/socket.h>
#include <weft/http.h>

enum { FUZZ_MOST = 1 << 17 };

static struct fuzz {
	unsigned char sent[FUZZ_MOST], got[8 * FUZZ_MOST];
	size_t length, got_length;
	unsigned pieces; /* how the bytes are cut: 0: not at all */
} fuzz;

static void fuzz_add(const void *data, size_t length)
{
	if (length > FUZZ_MOST - fuzz.length)
		length = FUZZ_MOST - fuzz.length;
	if (length)
		memcpy(fuzz.sent + fuzz.length, data, length);
	fuzz.length += length;
}

static void fuzz_hello(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", "hello\n", 6);
}

static void fuzz_echo(weft_http_t *http, void *context)
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

static void *fuzz_serve(void *server)
{
	int fd;

	memcpy(&fd, (char *)server + sizeof(void *), sizeof fd);
	weft_http_serve_connection(*(weft_http_server_t **)server, fd);
	return NULL;
}

static void *fuzz_send(void *fd)
{
	size_t at = 0, n;

	while (at < fuzz.length) {
		n = fuzz.pieces ? 1 + (at * 7 + fuzz.pieces) % (fuzz.pieces * 3) : fuzz.length;
		if (n > fuzz.length - at)
			n = fuzz.length - at;
		if (weft_write_all_until(*(int *)fd, fuzz.sent + at, n, WEFT_NEVER) != (ssize_t)n)
			break;
		at += n;
	}
	weft_shutdown(*(int *)fd, SHUT_WR);
	return NULL;
}

static void *fuzz_exchange(void *pass)
{
	const weft_http_config_t config = {.body = 10000, .headers = 20, .streams = 10};
	struct {
		weft_http_server_t *server;
		int fd;
	} service;
	weft_scope_t scope;
	int fds[2];
	ssize_t n;

	CHECK(!weft_http_open(&service.server, &config));
	CHECK(!weft_http_route(service.server, "GET /", fuzz_hello, NULL));
	CHECK(!weft_http_route(service.server, "* /:name", fuzz_echo, NULL));
	CHECK(!weft_socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
	service.fd = fds[1];
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, fuzz_serve, &service));
	CHECK(!weft_scope_spawn(&scope, fuzz_send, &fds[0]));
	do {
		n = weft_read(fds[0], fuzz.got + fuzz.got_length, sizeof fuzz.got - fuzz.got_length);
		fuzz.got_length += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	CHECK(!weft_scope_wait(&scope));
	weft_close(fds[0]);
	CHECK(!weft_http_stop(service.server, weft_now() + 100 * SECOND));
	weft_http_close(service.server);
	return pass;
}

static void fuzz_run(void)
{
	const weft_rt_config_t timeless = {.turn_cost = WEFT_NEVER};
	void *result = NULL;

	signal(SIGPIPE, SIG_IGN);
	fuzz.got_length = 0;
	CHECK(!weft_simulate(fuzz.pieces, &timeless, fuzz_exchange, &fuzz, &result));
	CHECK(result == &fuzz);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

#endif
