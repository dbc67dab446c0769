/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A server for test clients of other projects: serve [CERTIFICATE KEY]. Prints its port, and serves until its standard
 * input ends; with a certificate it speaks TLS.
 */
#include "handlers.h"

#include <weft/http.h>

/* Reads the body before it answers. */
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

static void *serve_until_input_ends(void *files)
{
	char *const *file = files;
	weft_http_config_t config = {.body = 16 << 20};
	struct served s = {.listener = weft_listen("127.0.0.1", 0, 0, 0)};
	weft_scope_t scope;
	char byte;

	CHECK(s.listener >= 0 && !weft_http_open(&s.server, &config));
	CHECK(!file[0] || !weft_http_tls_open(&s.tls, file[0], file[1], NULL));
	CHECK(!weft_http_route(s.server, "* /", hello, NULL));
	CHECK(!weft_http_route(s.server, "* /echo", echo, NULL));
	CHECK(!weft_http_route(s.server, "* /length", body_length, NULL));
	printf("%d\n", weft_port(s.listener));
	fflush(stdout);
	weft_scope_open(&scope, WEFT_NEVER);
	CHECK(!weft_scope_spawn(&scope, serves, &s));
	CHECK(weft_read(0, &byte, 1) == 0);
	CHECK(!weft_http_stop(s.server, weft_now() + 10 * SECOND));
	CHECK(!weft_scope_wait(&scope));
	weft_http_close(s.server);
	weft_http_tls_close(s.tls);
	return files;
}

int main(int argc, char **argv)
{
	CHECK(argc == 1 || argc == 3);
	run_task(2, 0, serve_until_input_ends, argv + 1);
	return 0;
}
