/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A server for clients of other projects (clients). Prints its port, and serves until its standard input ends. */
#include "../sched/check.h"

#include <weft/http.h>

static void hello(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", "hello\n", 6);
}

static void echo(weft_http_t *http, void *context)
{
	char data[5000];
	ssize_t n;

	(void)context;
	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		if (weft_http_write(http, data, (size_t)n) != n)
			return;
}

/* Reads the body first. */
static void body_length(weft_http_t *http, void *context)
{
	char data[5000];
	size_t sum = 0;
	ssize_t n;

	(void)context;
	while ((n = weft_http_read(http, data, sizeof data)) > 0)
		sum += (size_t)n;
	if (!n)
		weft_http_printf(http, "%zu bytes\n", sum);
}

static void *serves(void *server)
{
	int listener = weft_listen("127.0.0.1", 0, 0, 0);

	CHECK(listener >= 0);
	printf("%d\n", weft_port(listener));
	fflush(stdout);
	CHECK(!weft_http_serve(server, listener));
	return NULL;
}

static void *serve_until_input_ends(void *pass)
{
	weft_http_config_t config = {.body = 16 << 20};
	weft_http_server_t *server;
	weft_scope_t scope;
	char byte;

	CHECK(!weft_http_open(&server, &config));
	CHECK(!weft_http_route(server, "* /", hello, NULL));
	CHECK(!weft_http_route(server, "* /echo", echo, NULL));
	CHECK(!weft_http_route(server, "* /length", body_length, NULL));
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serves, server));
	CHECK(weft_read(0, &byte, 1) == 0);
	CHECK(!weft_http_stop(server, weft_now() + 10 * SECOND));
	CHECK(!weft_scope_wait(&scope));
	weft_http_close(server);
	return pass;
}

int main(void)
{
	run_task(2, 0, serve_until_input_ends, &(int){0});
	return 0;
}
