/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * hello.c: a small HTTP server. Ctrl-C ends it.
 *
 *   ./weft run examples/hello.c [-- PORT]
 *   curl http://127.0.0.1:8080/hello/you
 */
/* doc: begin server */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/http.h>

static void hello(weft_http_t *http, void *context)
{
	weft_http_text_t name = weft_http_param(http, "name");

	(void)context;
	weft_http_add_header(http, "Content-Type", "text/plain");
	weft_http_printf(http, "hello, %.*s\n", (int)name.length, name.data);
}

static void *serve(void *listener)
{
	weft_http_server_t *server;
	int error = weft_http_open(&server, NULL);

	if (!error)
		error = weft_http_route(server, "GET /hello/:name", hello, NULL);
	if (!error)
		error = weft_http_serve(server, *(int *)listener); /* until weft_http_stop */
	if (error)
		weft_task_fail(error);
	weft_http_close(server);
	return NULL;
}

int main(int argc, char **argv)
{
	int listener = weft_listen("127.0.0.1", argc > 1 ? (unsigned)atoi(argv[1]) : 8080, 0, 0);
	int error = listener;

	if (listener >= 0) {
		printf("http://127.0.0.1:%d/hello/you\n", weft_port(listener));
		fflush(stdout);
		error = weft_rt_run(NULL, serve, &listener, NULL);
	}
	if (error)
		fprintf(stderr, "hello: %s\n", strerror(-error));
	return error != 0;
}
/* doc: end server */
