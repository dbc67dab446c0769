/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Experiment B3: an HTTP/1.1 server by weft/http.h. Each connection has a task. WEFT_IO selects the back end.
 *
 * Deadlines, limits and routes are the defaults. `stack`: bytes of stack for the task of a connection. `tls`: 1: by
 * TLS.
 */
#define _GNU_SOURCE
#include "io_server.h"
#include "http_certificate.h"
#include "http_text.h"
#include <weft/http.h>

struct arguments {
	int count;
	char **all;
};

static void hello(weft_http_t *http, void *context)
{
	(void)context;
	weft_http_reply(http, 200, "text/plain", http_body, HTTP_BODY);
}

static weft_http_tls_t *open_tls(void)
{
	char folder[] = "/tmp/weft-lab-XXXXXX", certificate[64], key[64], command[64];
	weft_http_tls_t *tls;
	const char *why = NULL;
	int error;

	io_must(mkdtemp(folder), folder);
	http_make_certificate(folder);
	snprintf(certificate, sizeof(certificate), "%s/certificate.pem", folder);
	snprintf(key, sizeof(key), "%s/key.pem", folder);
	error = weft_http_tls_open(&tls, certificate, key, &why);
	snprintf(command, sizeof(command), "rm -rf -- %s", folder);
	io_must(!system(command), command);
	if (error == -ENOTSUP)
		lab_cannot("%s: apt-get install --no-install-recommends libssl-dev", why);
	io_check(error, "weft_http_tls_open");
	return tls;
}

/* The process ends with the load generator, so this never returns. */
static void serve(const struct arguments *given)
{
	weft_http_config_t config = {0};
	weft_http_server_t *server;
	weft_http_tls_t *tls = NULL;
	int listener = weft_listen("127.0.0.1", 0, 0, 0);

	io_check(listener, "listen");
	io_raise_limit(); /* before weft_http_open, which reads it */
	config.task.coro.stack_size = (size_t)lab_number(given->count, given->all, "stack", 0);
	io_check(weft_http_open(&server, &config), "weft_http_open");
	io_check(weft_http_route(server, "GET /", hello, NULL), "weft_http_route");
	if (lab_number(given->count, given->all, "tls", 0))
		tls = open_tls();
	io_start_load(given->count, given->all, weft_port(listener));
	io_check(tls ? weft_http_serve_tls(server, listener, tls) : weft_http_serve(server, listener),
		 "weft_http_serve");
}

static void *first(void *arguments)
{
	const char *wanted = getenv("WEFT_IO");

	if (wanted && strcmp(wanted, weft_io_backend()))
		lab_cannot("no %s here, but %s", wanted, weft_io_backend());
	serve(arguments);
	return arguments;
}

int main(int argc, char **argv)
{
	struct arguments given = {argc, argv};
	weft_rt_config_t config = {.workers = (unsigned)lab_number(argc, argv, "workers", 1)};

	errno = -weft_rt_run(&config, first, &given, NULL);
	if (errno)
		lab_die("the runtime");
	return 2;
}
